import { parentPort } from "node:worker_threads";
import type { WatchedSource } from "../scan/rules/rules.ts";
import { openFloodGauge } from "./flood.ts";
import { openSourceWatch, type SourceWatch } from "./source-watch.ts";
import type { Hint } from "./hints.ts";

/** A request of the main thread to the watcher thread. `id` identifies a watched source. */
export type Request =
  | { readonly kind: "open"; readonly id: number; readonly source: WatchedSource }
  | { readonly kind: "renew"; readonly id: number }
  | { readonly kind: "close"; readonly id: number };

/** A report of the watcher thread. */
export type Report = { readonly id: number } & (Hint | { readonly kind: "closed" });

/** Runs the watchers of all sources in the watcher thread, and reports what they see to the main thread. */
const port = parentPort;
if (port === null) throw new Error("this module runs as a worker thread only");

const flood = openFloodGauge();
const watches = new Map<number, SourceWatch>();
const report = (message: Report): void => port.postMessage(message);

port.on("message", (request: Request) => {
  const { id } = request;
  switch (request.kind) {
    case "open":
      watches.set(
        id,
        openSourceWatch(request.source, (hint) => report({ id, ...hint }), flood),
      );
      break;
    case "renew":
      watches.get(id)?.renew();
      break;
    case "close":
      void close(id);
      break;
  }
});

async function close(id: number): Promise<void> {
  const watch = watches.get(id);
  watches.delete(id);
  await watch?.close();
  report({ kind: "closed", id });
}
