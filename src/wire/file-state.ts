import { counted, thousands } from "../lib/counted.ts";

// Without a schema: the console loads it.

/** States of files that are not searchable as they are on disk, those that need a person first. */
export const LISTED_STATES = ["held", "failed", "waiting", "reading", "skipped"] as const;
export type ListedState = (typeof LISTED_STATES)[number];

/**
 * State of a file's newest version. `searchable`: searches find it as it is on disk, by its words at least. `reading`: the
 * service has it and reads it. `waiting`: it is not at the service yet, and waiting helps. `held`: the file is gone, and its
 * delete waits for a person. `failed`: it stays out until it changes or a person acts. `skipped`: a rule leaves it out.
 * Whether an older version is searchable meanwhile is another fact.
 */
export type VersionState = ListedState | "searchable";

/** Follows the reason of a version beside which an older one is searchable. */
export const OLDER_WORDS = "; an older version is searchable";

/** The words of each state, everywhere. */
export const STATE_WORDS: Readonly<Record<VersionState, string>> = {
  searchable: "searchable",
  reading: "being read",
  waiting: "waiting",
  failed: "failed",
  held: "held",
  skipped: "skipped",
};

/** `1 being read, 17 waiting`: counts in words, without those that are 0. */
export function countWords(
  counts: Partial<Readonly<Record<"reading" | "waiting" | "failed", number | undefined>>>,
): string[] {
  const found: string[] = [];
  for (const state of ["reading", "waiting", "failed"] as const) {
    const count = counts[state] ?? 0;
    if (count > 0) found.push(`${thousands(count)} ${STATE_WORDS[state]}`);
  }
  return found;
}

/** Counts of what is not among the files of a source, each with its words. */
const BESIDE_WORDS = [
  ["deletesRefused", (count: number) => `${counted(count, "delete")} refused`],
  ["unreadable", (count: number) => `${thousands(count)} unreadable`],
  ["held", (count: number) => `${counted(count, "delete")} held`],
  ["skipped", (count: number) => `${thousands(count)} skipped`],
  ["kept", (count: number) => `${thousands(count)} kept without their files`],
  ["readInPart", (count: number) => `${thousands(count)} read in part`],
] as const;

/** `1 unreadable, 60 deletes held`: what is beside the files of some sources, in words, without those that are 0. */
export function besideWords(
  sources: readonly Partial<Readonly<Record<(typeof BESIDE_WORDS)[number][0], number>>>[],
): string[] {
  return BESIDE_WORDS.flatMap(([of, words]) => {
    const count = sources.reduce((sum, source) => sum + (source[of] ?? 0), 0);
    return count === 0 ? [] : [words(count)];
  });
}

/**
 * `1 being read, 17 waiting, 3 not found by meaning yet`: what searches do not find yet, or by words alone, by the answer of a
 * search and by the folders of a daemon or of the ledger. What the service reads may be in both: the folders say as what, as in
 * their status, and only more than that is of others.
 */
export function pendingWords(
  { read, embed, more }: Readonly<Record<"read" | "embed", number>> & { readonly more?: true | undefined },
  folders: readonly Pick<FileCounts, "reading" | "waiting">[],
): string[] {
  const sum = (of: "reading" | "waiting"): number => folders.reduce((total, each) => total + each[of], 0);
  const [reading, waiting] = [sum("reading"), sum("waiting")];
  const others = Math.max(0, read - reading - waiting);
  const least = more === true ? "at least " : "";
  const found = embed === 0 ? [] : [`${least}${thousands(embed)} not found by meaning yet`];
  return [...countWords({ reading: reading + others, waiting }), ...found];
}

/** Counts of wanted files by the state of their newest version; those of the states add up to `files`. */
export type FileCounts = Readonly<Record<"files" | "searchable" | "reading" | "waiting" | "failed", number>>;

/** `1,204 files searchable`, `680 of 811 files searchable, 9 being read, 122 waiting`. */
export function searchableWords(counts: FileCounts): string {
  const { files, searchable, reading, waiting, failed } = counts;
  const all = counted(files, "file");
  const found = searchable === files ? all : `${thousands(searchable)} of ${all}`;
  return [`${found} searchable`, ...countWords({ reading, waiting, failed })].join(", ");
}
