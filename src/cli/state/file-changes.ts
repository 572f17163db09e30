import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { codeOf } from "../../lib/failure.ts";

/** Reports changes of the contents of a few files. */
export interface FileChanges {
  /** Watches these files from now on, and no others. */
  watch(files: readonly string[]): void;
  /** Counts the files as they are now as reported. */
  note(): void;
  stop(): void;
}

/**
 * Poll interval in milliseconds. Asking for the path sees what editors and deployments do: a save by rename, a link to another
 * file, a file that is missing for a moment, a file on a network.
 */
const EVERY_MS = 1500;

/** Calls `onChange` when a file has another content, or none, and has stayed so for a poll interval. */
export function openFileChanges(onChange: () => void, everyMs = EVERY_MS): FileChanges {
  const known = new Map<string, string>();
  let last = "";
  let isChanging = false;
  let isPolling = false;
  const poll = async (): Promise<void> => {
    if (isPolling) return;
    isPolling = true;
    const now = (await Promise.all([...known.keys()].map(statOf))).join("\n");
    isPolling = false;
    const hasSettled = isChanging && now === last;
    isChanging = now !== last;
    last = now;
    if (hasSettled && [...known].some(([file, content]) => contentOf(file) !== content)) onChange();
  };
  const timer = setInterval(() => void poll(), everyMs).unref();
  return {
    watch: (files) => {
      for (const file of known.keys()) if (!files.includes(file)) known.delete(file);
      for (const file of files) if (!known.has(file)) known.set(file, contentOf(file));
    },
    note: () => {
      for (const file of known.keys()) known.set(file, contentOf(file));
    },
    stop: () => clearInterval(timer),
  };
}

async function statOf(file: string): Promise<string> {
  const found = await stat(file, { bigint: true }).catch(() => undefined);
  return `${found?.ino} ${found?.size} ${found?.mtimeNs} ${found?.ctimeNs}`;
}

/** Differs whenever the content of the file does. A unit may see a key file that it cannot read. */
export function contentOf(file: string): string {
  try {
    return createHash("sha256").update(readFileSync(file)).digest("hex");
  } catch (error) {
    return `${codeOf(error) ?? ""} ${changedMs(file)}`;
  }
}

function changedMs(file: string): number | undefined {
  try {
    return statSync(file).ctimeMs;
  } catch {
    return undefined; // missing, or below a folder that this process may not enter
  }
}
