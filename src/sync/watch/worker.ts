import { parentPort } from "node:worker_threads";
import { openFloodGauge } from "./flood.ts";
import type { Report, Request } from "./messages.ts";
import { openSourceWatch, type SourceWatch } from "./source-watch.ts";
import type { Hints } from "./hints.ts";

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
      watches.set(id, openSourceWatch(request.source, hintsFor(id), flood));
      break;
    case "renew":
      watches.get(id)?.renew();
      break;
    case "links":
      watches.get(id)?.follow(request.links);
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

function hintsFor(id: number): Hints {
  return {
    onDirty: (paths) => report({ kind: "dirty", id, paths }),
    onReady: (complete) => report({ kind: "ready", id, complete }),
    onError: ({ message, code, subject, hint, retryable }) => {
      const facts = {
        code,
        retryable,
        ...(subject !== undefined && { subject }),
        ...(hint !== undefined && { hint }),
      };
      report({ kind: "failed", id, message, facts });
    },
  };
}
