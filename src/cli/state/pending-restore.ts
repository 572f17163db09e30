import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { finishExchange, isExchangePending } from "../../backup/exchange.ts";
import { type Lock, lockFolder } from "../../lib/folder-lock.ts";

/**
 * Takes both locks of a state folder: while they are held, nothing runs on it, and nothing can be started. Throws
 * `state_locked`, naming the holder.
 */
export function lockState(stateDir: string): Lock {
  const serviceDir = join(stateDir, "service");
  if (!existsSync(serviceDir)) mkdirSync(serviceDir, { recursive: true, mode: 0o700 });
  const daemon = lockFolder(stateDir, "daemon");
  try {
    const service = lockFolder(serviceDir, "service");
    return {
      release: () => {
        service.release();
        daemon.release();
      },
    };
  } catch (error) {
    daemon.release();
    throw error;
  }
}

/** Completes a restore that was interrupted after it was committed. Does nothing if there is none. */
export function finishRestore(stateDir: string): void {
  if (!isExchangePending(stateDir)) return;
  const lock = lockState(stateDir);
  try {
    // Another process may have completed it while this one waited.
    if (isExchangePending(stateDir)) finishExchange(stateDir);
  } finally {
    lock.release();
  }
}
