import type { ListedFile } from "../../wire/daemon-files.ts";
import { LISTED_STATES, type ListedState, OLDER_WORDS, STATE_WORDS } from "../../wire/file-state.ts";
import { FILES_MAX } from "../../wire/daemon.ts";
import { locatedPath, nothingSynced, type Operator } from "../state/ask.ts";
import { unknownChangesWords } from "../state/no-daemon.ts";
import { localTime } from "../output/progress.ts";
import { visibleLine } from "../output/visible.ts";
import { unbroken } from "../terminal/prose.ts";

/** A list, and whether a daemon made it: without one, changes since the last pass are unknown. */
export interface Listing {
  readonly files: readonly ListedFile[];
  readonly isLive: boolean;
}

/** Returns the files in these states at or below a path, at most `FILES_MAX` of each state. Throws `nothing_synced`. */
export async function listFiles(
  operator: Operator,
  path: string | undefined,
  states: readonly ListedState[],
): Promise<Listing> {
  const query = { ...locatedPath(operator, path), limit: FILES_MAX };
  const files: ListedFile[] = [];
  let isLive = true;
  for (const state of states) {
    const done = await operator.act("files", { ...query, state });
    if (done === undefined) throw nothingSynced(operator.config.stateDir);
    files.push(...done.answer.files);
    isLive &&= done.isLive;
  }
  return { files, isLive };
}

/** The list for a person. Paths are absolute if there are several sources, so that each can be pasted into another command. */
export function listedText(
  { files, isLive }: Listing,
  states: readonly ListedState[],
  stateDir: string,
): string {
  const stopped = isLive ? "" : `${unknownChangesWords(stateDir)}\n`;
  if (files.length === 0) return `${noneWords(states, isLive)}\n${stopped}`;
  const isAbsolute = new Set(files.map(({ source }) => source)).size > 1;
  const lines = files.map(({ state, source, path, message, sinceMs, hasOlder }) => {
    const shown = path === "" ? source : isAbsolute ? `${source}/${path}` : path;
    const since = sinceMs === null ? "" : `, since ${localTime(sinceMs).slice(-8)}`;
    return `${STATE_WORDS[state].padEnd(10)}  ${unbroken(visibleLine(shown))}: ${visibleLine(message)}${since}${hasOlder ? OLDER_WORDS : ""}\n`;
  });
  return `${lines.join("")}${stopped}`;
}

/** The meaning of an empty list. */
function noneWords(states: readonly ListedState[], isLive: boolean): string {
  if (states.length === LISTED_STATES.length)
    return isLive
      ? "every file is searchable as it is on disk"
      : "every file was searchable at the last pass";
  const words = new Set(states.map((state) => NONE_WORDS[state]));
  return [...words].join(", ");
}

const NONE_WORDS: Readonly<Record<ListedState, string>> = {
  held: "no deletes are held",
  failed: "no files failed",
  waiting: "no files are waiting or being read",
  reading: "no files are waiting or being read",
  skipped: "no files are skipped",
};
