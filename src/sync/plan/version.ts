import type { Version } from "../../wire/daemon-files.ts";
import type { FileCounts, ListedState } from "../../wire/file-state.ts";
import type { FileState, RelativePath } from "./model.ts";

/** What a running daemon does with a file. `unknown`: no daemon says. */
export type FileWork = "unknown" | "none" | "retry" | "noticed" | "queued" | "sending" | "reading";

/** What only a running daemon knows of files. */
export interface LiveWork {
  /** The work of a source, by its number in the ledger. */
  source(id: number):
    | {
        workAt(path: RelativePath): Pick<VersionFacts, "work" | "sinceMs">;
        /** Returns the files at or below a path that are planned and not done. */
        unsent(below: RelativePath | undefined): Iterable<RelativePath>;
        /** Returns what cannot be read at a path, below it, or on the way to it, with why. */
        unreadable(below: RelativePath | undefined): readonly UnreadablePath[];
      }
    | undefined;
  /** Why requests do not leave; undefined: the service answers. */
  readonly outage: string | undefined;
  /** Asks the service whether a search by meaning finds a document; undefined: it does not say. */
  hasMeaning(docId: string, signal: AbortSignal): Promise<boolean | undefined>;
}

/** A path of which nothing is known. */
export interface UnreadablePath {
  readonly path: RelativePath;
  /** For a person. */
  readonly reason: string;
}

/** Why nothing of a source is sent. `halted`: nothing is known of its files. */
export interface SenderBlocker {
  readonly code: "halted" | "paused";
  readonly reason: string;
}

/** Everything that decides the state of a file's newest version. */
export interface VersionFacts {
  /** State of its row; undefined: it has none. */
  readonly row: FileState | undefined;
  /** Why the row is not in agreement. */
  readonly trouble: { readonly code: string; readonly message: string } | undefined;
  readonly work: FileWork;
  /** Since when that work waits, by the system's clock. */
  readonly sinceMs?: number | undefined;
  /** How the disk differs from the row, for a person; undefined: it does not, or nobody compared them. */
  readonly change?: string | undefined;
  /** The rule that leaves it out, for a person. */
  readonly leftOutBy?: string | undefined;
  readonly blocker?: SenderBlocker | undefined;
  /** Why requests do not leave; undefined: the service answers. */
  readonly outage?: string | undefined;
  /** Whether a search by meaning finds it; undefined: the service does not say, or nobody asked it. */
  readonly hasMeaning?: boolean | undefined;
  /** Searches find some version of it. Default: no. */
  readonly isFindable?: boolean | undefined;
  /** The service keeps the text in a form of its own. Default: no. */
  readonly isOwnForm?: boolean | undefined;
}

/** The states of rows that each listed state covers. */
export const ROW_STATES: Readonly<Record<ListedState, readonly FileState[]>> = {
  held: ["held", "doomed"],
  failed: ["failed"],
  waiting: ["parked", "unsure"],
  reading: [],
  skipped: ["skipped"],
};

/** Decides the state of a file's newest version: the only place that does. Pure. */
export function versionOf(facts: VersionFacts): Version {
  const { row, trouble, work, blocker, leftOutBy, outage } = facts;
  const version = (state: Version["state"], code: string, reason: string): Version => ({
    state,
    code,
    reason,
    sinceMs: state === "waiting" || state === "reading" ? (facts.sinceMs ?? null) : null,
    hasOlder: facts.isFindable === true && OLDER_STATES.has(state),
  });
  if (row === "held") return version("held", "held", trouble?.message ?? "held before");
  if (row === "doomed") return version("held", "doomed", "to be deleted, as agreed");
  if (leftOutBy !== undefined) return version("skipped", "left_out", leftOutBy);
  if (blocker?.code === "halted") return version("waiting", blocker.code, blocker.reason);
  if (work === "reading") return version("reading", "reading", "the service is reading it");
  // A check of a file in trouble may find nothing new.
  const isNoticed = work === "noticed" && (row === "agreed" || row === undefined);
  const doing = isNoticed || work === "queued" || work === "sending" ? WORK_WORDS[work] : undefined;
  const reason = doing ?? facts.change;
  if (reason !== undefined) {
    if (blocker !== undefined) return version("waiting", blocker.code, blocker.reason);
    if (outage !== undefined) return version("waiting", "outage", outage);
    return version("waiting", doing === undefined ? "changed" : work, reason);
  }
  switch (row) {
    case "agreed": {
      const form = facts.isOwnForm === true ? OWN_FORM : "";
      return facts.hasMeaning === true
        ? version("searchable", "by_meaning", `found by words and by meaning${form}`)
        : version(
            "searchable",
            "by_words",
            `${facts.hasMeaning === false ? NO_VECTORS : "found by words"}${form}`,
          );
    }
    case "failed":
      return version("failed", trouble?.code ?? "failed", trouble?.message ?? "");
    case "skipped":
      return version("skipped", trouble?.code ?? "skipped", trouble?.message ?? "");
    case "parked":
      return version("waiting", trouble?.code ?? "parked", trouble?.message ?? "");
    case "unsure":
      return blocker === undefined
        ? version("waiting", "unsure", "an update had no answer yet")
        : version("waiting", blocker.code, blocker.reason);
    case undefined:
      return version("waiting", "not_synced", "it was never sent");
  }
}

/** States of a newest version beside which an older one may be searchable. */
const OLDER_STATES: ReadonlySet<Version["state"]> = new Set(["reading", "waiting", "failed"]);

/** Whether a version has a reason of its own, and does not wait for its turn, the service or its whole source. Pure. */
export function hasOwnReason({ state, code }: Pick<Version, "state" | "code">): boolean {
  return state === "failed" || state === "held" || (state === "waiting" && !SHARED_CODES.has(code));
}

const SHARED_CODES: ReadonlySet<string> = new Set([
  "halted",
  "paused",
  "outage",
  "noticed",
  "queued",
  "sending",
  "changed",
  "unsure",
]);

const NO_VECTORS = "found by words; its vectors are being computed";

const OWN_FORM = "; the service keeps its text in a form of its own";

const WORK_WORDS = {
  noticed: "a change was noticed and is checked",
  queued: "it waits for its turn",
  sending: "it is being sent",
} as const;

/**
 * How the ledger's row of a planned file counts, so that no file is counted twice: as one in agreement (an older
 * version of it), as a failed one, as one that waits or is unsure, or as nothing, if it has no row or was left out.
 */
export type Counted = "agreed" | "failed" | "trouble" | "nothing";

/** Returns how a row of this state counts; undefined: there is none. */
export function countedAs(state: FileState | undefined): Counted {
  switch (state) {
    case "agreed":
      return "agreed";
    case "failed":
      return "failed";
    case "parked":
    case "unsure":
      return "trouble";
    case "held":
    case "doomed":
    case "skipped":
    case undefined:
      return "nothing";
  }
}

/** Counts of a source: rows by state, and files that are planned and not done. */
export interface CountedFiles {
  readonly agreed: number;
  readonly failed: number;
  readonly parked: number;
  readonly unsure: number;
  /** Files that were found, with a row or without. */
  readonly found: number;
  /** Rows in agreement of which a newer version waits. */
  readonly backlogAgreed: number;
  /** Failed rows that are tried again now. */
  readonly backlogFailed: number;
  /** Files that the service is reading. */
  readonly reading: number;
  /** Nothing of the source is sent, and nothing is known of its files. */
  readonly isHalted: boolean;
}

type Work = Pick<CountedFiles, "backlogAgreed" | "backlogFailed" | "reading">;

/** What a daemon is doing for a source. */
export type SourceWork = Work & { readonly backlog: number };

/** Adds what a daemon is doing to the rows of a source: files that are planned and not done, and those being read. Pure. */
export function withWork<R extends Pick<CountedFiles, "agreed" | "failed" | "parked" | "unsure">>(
  row: R,
  { backlog, ...work }: SourceWork,
): R & Work & Pick<CountedFiles, "found"> {
  const found = row.agreed - work.backlogAgreed + row.failed + row.parked + row.unsure + backlog;
  return { ...row, ...work, found };
}

/** Counts files by the state of their newest version, as `versionOf` decides it of each. They add up to `files`. Pure. */
export function countVersions(counted: CountedFiles): FileCounts {
  const { reading, isHalted } = counted;
  const current = Math.max(0, counted.agreed - counted.backlogAgreed);
  const failed = Math.max(0, counted.failed - counted.backlogFailed);
  // Some files that were found have no row yet.
  const pending = Math.max(counted.found - current - failed, counted.parked + counted.unsure, reading);
  const files = current + pending + failed;
  if (isHalted) return { files, searchable: 0, reading: 0, waiting: files, failed: 0 };
  return { files, searchable: current, reading, waiting: pending - reading, failed };
}
