import { parentPort } from "node:worker_threads";
import type { FailureFacts } from "../../lib/failure.ts";
import type { RelativePath } from "../plan/model.ts";
import type { WatchedSource } from "../scan/rules/rules.ts";
import { openFloodGauge } from "./flood.ts";
import { openSourceWatch, type SourceWatch } from "./source-watch.ts";
import type { Hints } from "./hints.ts";

/** A request of the main thread to the watcher thread. `id` identifies a watched source. */
export type Request =
  | { readonly kind: "open"; readonly id: number; readonly source: WatchedSource }
  | { readonly kind: "renew"; readonly id: number }
  | { readonly kind: "close"; readonly id: number };

/** A report of the watcher thread. */
export type Report =
  /** Paths that may have changed; undefined is the whole source. */
  | { readonly kind: "dirty"; readonly id: number; readonly paths: readonly RelativePath[] | undefined }
  | { readonly kind: "ready"; readonly id: number; readonly complete: boolean }
  /** The parts of an error: an Error loses its own fields between threads. */
  | { readonly kind: "failed"; readonly id: number; readonly message: string; readonly facts: Facts }
  | { readonly kind: "closed"; readonly id: number };

type Facts = Pick<FailureFacts, "code" | "subject" | "hint" | "retryable">;

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
