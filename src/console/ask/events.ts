/** A server-sent event. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

/** Reads one event; undefined for a comment. */
export function readEvent(block: string): ServerEvent | undefined {
  const lines = block.split("\n");
  const fieldOf = (name: string): string[] =>
    lines
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).replace(/^ /, ""));
  const data = fieldOf("data");
  return data.length === 0 ? undefined : { event: fieldOf("event")[0] ?? "message", data: data.join("\n") };
}
