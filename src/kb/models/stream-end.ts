/** A response whose end can be told from a connection that broke off. */
export interface WatchedStream {
  readonly response: Response;
  /** Whether the endpoint sent `data: [DONE]`, which ends a stream of chat completions. */
  isOver(): boolean;
}

/** Longest line that marks an end. */
const MARK_CHARS = 32;

/** Passes a response of server-sent events on, and notices the mark of its end, which the client library swallows. */
export function watchStream(response: Response): WatchedStream {
  let isOver = false;
  // Within an event's JSON a line break is escaped, so a line that begins with the mark is the mark.
  let tail = "\n";
  const decoder = new TextDecoder("latin1");
  const watch = new TransformStream<Uint8Array, Uint8Array>({
    transform: (bytes, controller) => {
      controller.enqueue(bytes);
      const text = tail + decoder.decode(bytes, { stream: true });
      isOver ||= /[\r\n]data: ?\[DONE\]/.test(text);
      tail = text.slice(-MARK_CHARS);
    },
  });
  const { status, headers } = response;
  return {
    response: new Response(response.body?.pipeThrough(watch), { status, headers }),
    isOver: () => isOver,
  };
}
