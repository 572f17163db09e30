/** An event of a stream (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export interface ServerEvent {
  readonly event: string;
  /** Where a reader that reconnects continues; undefined: the event has none. */
  readonly id: string | undefined;
  readonly data: unknown;
}

/** Reads server-sent events whose data is JSON. Throws a RangeError for an event longer than `charsMax`. */
export async function* readServerEvents(
  body: AsyncIterable<Uint8Array>,
  charsMax: number,
): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true });
    if (text.length > charsMax) throw new RangeError("an event has no end");
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const event = eventOf(text.slice(0, end));
      text = text.slice(end + 2);
      if (event !== undefined) yield event;
    }
  }
}

/** Undefined for a comment. */
function eventOf(block: string): ServerEvent | undefined {
  const lines = block.split("\n");
  const value = (name: string): string | undefined =>
    lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const data = value("data");
  if (data === undefined) return undefined;
  return { event: value("event") ?? "", id: value("id"), data: JSON.parse(data) };
}
