import { Agent, request } from "undici";
import type { Running } from "../../service/running.ts";

/** An event of a stream. */
export interface Received {
  readonly id: string | undefined;
  readonly event: string;
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly data: any;
}

/** Opens a stream of changes; `events` grows as they arrive. */
export async function openChangeStream(
  running: Running,
  dispatcher: Agent,
  query: string,
  headers: Record<string, string> = {},
  key = running.key,
) {
  const stop = new AbortController();
  const { statusCode, body } = await request(`${running.url}/v1/changes?${query}`, {
    dispatcher,
    headers: { accept: "text/event-stream", pauthkey: key, ...headers },
    signal: stop.signal,
  });
  const events: Received[] = [];
  const ended = (async () => {
    let text = "";
    for await (const piece of body) {
      text += String(piece);
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const line = (name: string) =>
          block
            .split("\n")
            .find((one) => one.startsWith(`${name}: `))
            ?.slice(name.length + 2);
        const event = line("event");
        if (event !== undefined) events.push({ id: line("id"), event, data: JSON.parse(line("data") ?? "") });
      }
    }
  })();
  ended.catch(() => undefined); // a stream that the test ends
  return { statusCode, events, ended, stop: () => stop.abort() };
}
