import { askDaemon } from "../../sync/daemon/control/client.ts";
import { counted } from "../../lib/counted.ts";
import { unknownChangesWords } from "./no-daemon.ts";
import { visibleLine } from "../output/visible.ts";

/** Which files to wait for, and how long. */
export interface FreshRequest {
  /** Absolute path of a file or folder. Undefined: everything. */
  readonly path: string | undefined;
  /** Undefined: does not wait. */
  readonly seconds: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Waits until searches find by their words what was saved before, as `kbsync wait` does. Returns in a line why they may not;
 * undefined: they do.
 */
export async function awaitFresh(
  stateDir: string,
  { path, seconds, signal }: FreshRequest,
): Promise<string | undefined> {
  if (seconds === undefined) return undefined;
  const request = { timeoutSeconds: seconds, ...(path !== undefined && { path }) };
  const answer = await askDaemon(stateDir, "wait", request, { signal });
  if (answer === undefined) return mayBeOld(unknownChangesWords(stateDir));
  if (answer.end === "searchable") return undefined;
  const late = answer.end === "timeout" ? ` after ${counted(seconds, "second")}` : "";
  if (answer.troubled === 0) return mayBeOld(`the folders are still being scanned${late}`);
  const [only] = answer.reasons;
  const why = answer.troubled === 1 && only !== undefined ? `: ${visibleLine(only.message)}` : "";
  const files = counted(answer.troubled, "file is", "files are");
  const lasting = answer.end === "timeout" ? late : ", which waiting does not change";
  return mayBeOld(`${files} not searchable${lasting}${why}; see \`kbsync status\``);
}

/** Says why results may be old. */
export function mayBeOld(reason: string): string {
  return `Not everything here may be up to date: ${reason}.`;
}
