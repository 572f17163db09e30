import { basename } from "node:path";
import type { FolderWarning } from "../../../wire/daemon-status.ts";
import { isBelow } from "../../scan/disk/source-path.ts";
import { kindOfName } from "../../../formats/kinds.ts";
import type { SourceRow } from "../../ledger/sources/rows.ts";
import { type PassPreview, previewPass } from "../pass/preview.ts";
import type { RelativePath } from "../../plan/model.ts";
import type { FileWork, SourceWork, UnreadablePath } from "../../plan/version.ts";
import { runChecks } from "./checking.ts";
import { openSourceParts, type SourceOptions, type SourceParts } from "./parts.ts";
import { activityOf, isIdle, isSending, noteBacklog, oldestWaitingMs } from "./progress.ts";

/** One source: from an event to the jobs that bring the change over. */
export type SourceSync = ReturnType<typeof openSource>;

/** Opens a source. Reads nothing before `run`. */
export function openSource(options: SourceOptions) {
  const source = openSourceParts(options);
  const { id, context, agenda, passes, state } = source;
  return {
    ...source,
    ...pathQueries(source),
    /** Has this path, or the whole source, checked. */
    hint: (path: RelativePath | undefined): void => agenda.hint(path),
    /** Checks the whole source, to find changes without an event. */
    rescan: (): void => {
      state.isPeriodic = true;
      agenda.hint(undefined);
    },
    /** Checks whatever is marked until stopped. */
    run: async (): Promise<void> => {
      // The known state of the folder is from a former process.
      context.ledger.note(() => context.ledger.sources.setCompared(id, false));
      await runChecks(source);
    },
    /** Sends nothing until it is resumed. Planned work is given up and found again then. */
    pause: (): void => {
      if (state.isPaused) return;
      state.isPaused = true;
      findAgain(source);
    },
    resume: (): void => {
      if (!state.isPaused) return;
      state.isPaused = false;
      // Nothing else would find parked files whose time came meanwhile.
      context.ledger.note(() => context.ledger.operator.unpark(id, context.now()));
      findAgain(source);
    },
    /** Returns what a pass over the whole source would find. Writes nothing. `before` is the source's row. */
    preview: (before: SourceRow): Promise<PassPreview> => previewPass(passes, before),
    activity: (): SourceWork => activityOf(source),
    noteBacklog: (): void => noteBacklog(source),
    isPlanned: (): boolean => state.isPlanned,
    oldestWaitingMs: (): number | undefined => oldestWaitingMs(source),
    isSending: (): boolean => isSending(source),
    isIdle: (): boolean => isIdle(source),
    /** Reports whether the folder is being checked, or is due now; also while a former process's end is settled. */
    isScanning: (): boolean => state.isPassing || (agenda.nextDueMs() ?? Infinity) <= context.now(),
    /** Returns what the last checks found about mounts, ignore files, and the service's descriptions. */
    warnings: (): readonly FolderWarning[] => [
      ...(context.ledger.contacts.keepsMarkers() === false ? [NO_MARKERS] : []),
      ...source.problems.current(),
    ],
    unreadable: (below: RelativePath | undefined): UnreadablePath[] => unreadableAt(source, below),
  };
}

/** Gives up planned work, and finds it again wherever it waited. */
function findAgain({ agenda }: SourceParts): void {
  agenda.drop();
  agenda.forgetMissing();
  agenda.hint(undefined);
}

/** Returns what cannot be read at a path, below it, or on the way to it. */
function unreadableAt({ passes, problems }: SourceParts, below: RelativePath | undefined): UnreadablePath[] {
  const paths = [...(passes.memory.unreadable ?? [])].filter(
    (path) => isBelow(path, below) || path === "" || (below !== undefined && isBelow(below, path)),
  );
  const known = paths.length === 0 ? [] : problems.current();
  return paths.map((path) => {
    const problem = known.find((each) => each.path === path);
    return {
      path,
      reason: problem === undefined ? INACCESSIBLE : `${problem.reason} (${problem.remedy})`,
    };
  });
}

const INACCESSIBLE = "it is inaccessible, so nothing is known of its contents (check owner and mode)";

const NO_MARKERS: FolderWarning = {
  path: "",
  reason:
    "the service does not keep descriptions as they are sent, so only the ledger says which document is which file's",
  remedy: "back up the state folder: without it, files would be sent as new ones after `kbsync approve`",
};

/** The pending work at a path. */
function pathQueries({ agenda, contact, deletes, context: { now }, state }: SourceParts) {
  const workAt = (path: RelativePath): FileWork => {
    if (agenda.reading(path) !== undefined) return "reading";
    if (contact.waiting().has(path) || deletes.hasJob(path)) return "queued";
    switch (agenda.stateOf(path)) {
      case "at rest":
        return "none";
      case "waiting":
        return "retry";
      case "settling":
      case "checking":
      case "missing":
        return "noticed";
      case "queued":
        return "queued";
      case "sending":
        return "sending";
    }
  };
  return {
    /** Returns what is done with a file, and since when it waits, by the system's clock. */
    workAt: (path: RelativePath): { readonly work: FileWork; readonly sinceMs: number | undefined } => {
      const sinceMs = agenda.sinceMs(path);
      return {
        work: workAt(path),
        sinceMs: sinceMs === undefined ? undefined : Date.now() - (now() - sinceMs),
      };
    },
    /** Returns the files at or below a path that `activity` counts: those that are planned and not done. */
    *unsent(below: RelativePath | undefined): Iterable<RelativePath> {
      for (const path of agenda.toSend()) if (isBelow(path, below)) yield path;
      if (state.isPaused) return;
      for (const path of contact.waiting()) if (isBelow(path, below)) yield path;
    },
    /**
     * Reports whether all words of a file that are not searchable yet are in pictures, which may take hours to read: it is an
     * image, or a PDF whose service says so.
     */
    hasOnlyPictures: (path: RelativePath): boolean =>
      agenda.reading(path) === "pictures" ||
      (agenda.hasJob(path) && kindOfName(basename(path)).kind === "file" && !/\.pdf$/i.test(path)),
    /** Returns paths at or below a path that are not done. */
    pending: (below: RelativePath | undefined): RelativePath[] =>
      [...new Set([...agenda.paths(), ...contact.waiting(), ...deletes.jobPaths()])].filter((path) =>
        isBelow(path, below),
      ),
    isPending: (path: RelativePath): boolean =>
      agenda.stateOf(path) !== "at rest" || contact.waiting().has(path) || deletes.hasJob(path),
  };
}
