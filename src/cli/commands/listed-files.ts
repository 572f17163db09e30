import { type ListedFile, ListedState } from "../../wire/daemon-files.ts";
import { FILES_MAX } from "../../wire/daemon.ts";
import { locatedPath, nothingSynced, type Operator } from "../state/ask.ts";
import { visibleLine } from "../output/visible.ts";
import { unbroken } from "../terminal/prose.ts";

/** The listed states; those that need a person come first. */
export const LISTED_STATES = ListedState.options;

/** Returns the files in these states at or below a path, at most `FILES_MAX` of each state. Throws `nothing_synced`. */
export async function listFiles(
  operator: Operator,
  path: string | undefined,
  states: readonly ListedState[],
): Promise<readonly ListedFile[]> {
  const query = { ...locatedPath(operator, path), limit: FILES_MAX };
  const files: ListedFile[] = [];
  for (const state of states) {
    const done = await operator.act("files", { ...query, state });
    if (done === undefined) throw nothingSynced(operator.config.stateDir);
    files.push(...done.answer.files);
  }
  return files;
}

/** The list for a person. Paths are absolute if there are several sources, so that each can be pasted into another command. */
export function listedText(files: readonly ListedFile[], states: readonly ListedState[]): string {
  if (files.length === 0) return noneWords(states);
  const isAbsolute = new Set(files.map(({ source }) => source)).size > 1;
  return files
    .map(({ state, source, path, message }) => {
      const shown = isAbsolute ? `${source}/${path}` : path;
      return `${state.padEnd(7)}  ${unbroken(visibleLine(shown))}: ${visibleLine(message)}\n`;
    })
    .join("");
}

/** The meaning of an empty list. */
function noneWords(chosen: readonly ListedState[]): string {
  const [state, ...others] = chosen;
  if (chosen.length === LISTED_STATES.length) return "every file is searchable as it is on disk\n";
  return state === undefined || others.length > 0 ? "there are none of these\n" : `${NONE_WORDS[state]}\n`;
}

const NONE_WORDS: Readonly<Record<ListedState, string>> = {
  held: "no deletes are held",
  failed: "no files failed",
  waiting: "no files wait for another try",
  skipped: "no files are skipped",
};
