import type { DaemonStatus } from "../../sync/daemon.ts";
import type { SourceStatus } from "../../wire/daemon-status.ts";
import { besideWords, type FileCounts, searchableWords as wordsOf } from "../../wire/file-state.ts";
import { paceTrouble } from "../../sync/send/remote/pacer.ts";

/**
 * Summarises a daemon in one line for a service manager: `1,204 searchable, 3 waiting`, after the problems that need
 * attention. Pure.
 */
export function standingWords({ service, sources }: Pick<DaemonStatus, "service" | "sources">): string {
  const bad = badNews(sources);
  const troubles = sources.flatMap(({ path, halted, holdReason, paused }) => {
    if (halted) return [`${path} halted: ${holdReason ?? "nothing is sent"}`];
    return paused ? [`${path} paused`] : [];
  });
  const trouble = paceTrouble(service);
  if (trouble !== undefined) troubles.push(trouble);
  return [...(bad.length === 0 ? [] : [bad.join(", ")]), ...troubles, searchableWords(sources)].join("; ");
}

/** The files of some sources, in the words of all. */
export function searchableWords(sources: readonly FileCounts[]): string {
  const sum = (key: keyof FileCounts): number => sources.reduce((total, source) => total + source[key], 0);
  const [files, searchable, reading] = [sum("files"), sum("searchable"), sum("reading")];
  return wordsOf({ files, searchable, reading, waiting: sum("waiting"), failed: sum("failed") });
}

/** What needs attention beside the files: `1 unreadable`, `60 deletes held`. */
export function badNews(
  sources: readonly Pick<SourceStatus, "deletesRefused" | "unreadable" | "held">[],
): string[] {
  return besideWords(
    sources.map(({ deletesRefused, unreadable, held }) => ({ deletesRefused, unreadable, held })),
  );
}
