import { fstatSync } from "node:fs";
import { terminal } from "./terminal.ts";
import { visible } from "./visible.ts";

/** Priorities of the journal (sd-daemon(3)). */
export const PRIORITY = { error: 3, warning: 4, info: 6, debug: 7 } as const;
export type Priority = (typeof PRIORITY)[keyof typeof PRIORITY];

/**
 * Whether output to a file descriptor goes to systemd's journal, by the device and inode of the
 * socket it gave to the process, which a redirection in between changes (systemd.exec(5), JOURNAL_STREAM).
 */
export function isJournal({ JOURNAL_STREAM: journal }: NodeJS.ProcessEnv, fd: number): boolean {
  if (journal === undefined || journal === "") return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return journal === `${dev}:${ino}`;
  } catch {
    return false; // closed: then nothing is written at all
  }
}

/** Puts `<N>` before each line of a text, which the journal removes and stores as the entry's priority. Pure. */
export function withPriority(text: string, priority: Priority): string {
  return text.replaceAll(/^(?=.)/gm, `<${priority}>`);
}

/** Writes to standard error, with a priority where that is the journal: a failed start is found by `journalctl -p err`. */
export function writeError(text: string, priority: Priority = PRIORITY.error): void {
  const shown = visible(text);
  terminal.err(isJournal(process.env, 2) ? withPriority(shown, priority) : shown);
}
