/** A response that distinguishes its end from a lost connection. */
export interface WatchedStream {
  readonly response: Response;
  /** Whether the endpoint sent `data: [DONE]`, which ends a stream of chat completions. */
  isDone(): boolean;
}

/** Characters retained between chunks to find a mark that is split across them. */
const MARK_CHARS = 32;

/** Passes a response of server-sent events through and detects its end mark, which the client library hides. */
export function watchStream(response: Response): WatchedStream {
  let isDone = false;
  // JSON escapes line breaks, so a line that starts with the mark is the mark.
  let tail = "\n";
  const decoder = new TextDecoder("latin1");
  const watch = new TransformStream<Uint8Array, Uint8Array>({
    transform: (bytes, controller) => {
      controller.enqueue(bytes);
      const text = tail + decoder.decode(bytes, { stream: true });
      isDone ||= /[\r\n]data: ?\[DONE\]/.test(text);
      tail = text.slice(-MARK_CHARS);
    },
  });
  const { status, headers } = response;
  return {
    response: new Response(response.body?.pipeThrough(watch), { status, headers }),
    isDone: () => isDone,
  };
}
