import { Worker } from "node:worker_threads";
import { entryUrl } from "../../lib/package.ts";
import { callWorker } from "../../lib/worker-calls.ts";
import type { CopyFolders, CopyMethods } from "./copy-worker.ts";

/**
 * Copies the ledger of a state folder into another one, on a thread: 100,000 files take 0.3 s, in which a daemon would answer nobody.
 * A daemon may be running. Copies nothing if there is no ledger yet. Throws as `readLedger` does.
 */
export async function copyLiveLedger(folders: CopyFolders): Promise<void> {
  const name = "ledger copy";
  const worker = callWorker<CopyMethods>(new Worker(entryUrl("sync/operator/copy-worker"), { name }), name);
  try {
    await worker.call("copy", folders);
  } finally {
    await worker.terminate();
  }
}
