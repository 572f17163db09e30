import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "../../lib/failure.ts";
import type { AnswerOf } from "../../wire/daemon.ts";
import { isRestarting, type Operator } from "./ask.ts";
import { unreachableProcess } from "./no-daemon.ts";

/**
 * Returns the status of the daemon, before a command changes the configuration for it; undefined: none runs. Throws
 * `control_silent` for one that does not answer, and `no_daemon` while another process uses the state folder.
 */
export async function runningDaemon({
  config: { stateDir },
  need,
}: Pick<Operator, "config" | "need">): Promise<AnswerOf<"status"> | undefined> {
  return need("status", {}).catch((error: unknown) => {
    if (codeOf(error) !== "no_daemon" || unreachableProcess(stateDir) !== undefined) throw error;
    return undefined;
  });
}

/** Longest wait for a daemon that read its configuration again. It closes the old sources first. */
const WAIT_MS = 15_000;
const POLL_MS = 50;

/**
 * Makes the running daemon read its configuration again, and waits until `isDone` accepts the folders that it syncs. Returns
 * false if none runs, or if it runs with another configuration. Throws the error of a configuration that it refuses.
 */
export async function reloadDaemon(
  operator: Pick<Operator, "ask">,
  isDone: (folders: readonly string[]) => boolean,
): Promise<boolean> {
  const reloaded = await duringRestart(operator.ask("reload", {}));
  if (reloaded === undefined) return false;
  for (let waitedMs = 0; waitedMs < WAIT_MS; waitedMs += POLL_MS) {
    const status = await duringRestart(operator.ask("status", {}));
    if (status !== undefined && status !== "restarting") {
      if (isDone(status.sources.map(({ path }) => path))) return true;
      // It answered that nothing has changed, so there is nothing to wait for.
      if (reloaded !== "restarting" && reloaded.applied.length === 0) return false;
    }
    await sleep(POLL_MS);
  }
  return false;
}

async function duringRestart<T>(asked: Promise<T>): Promise<T | "restarting"> {
  return asked.catch((error: unknown) => {
    if (isRestarting(error)) return "restarting";
    throw error;
  });
}
