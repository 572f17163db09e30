import { basename } from "node:path";
import type { FolderWarning } from "../../../wire/daemon-status.ts";
import type { LeftOut } from "../../../wire/daemon-folders.ts";
import { isBelow } from "../../scan/disk/source-path.ts";
import { kindOfName } from "../../../formats/kinds.ts";
import type { SourceRow } from "../../ledger/sources/rows.ts";
import { type PassPreview, previewPass } from "../pass/preview.ts";
import type { RelativePath } from "../../plan/model.ts";
import type { FileWork, UnreadablePath } from "../../plan/version.ts";
import { runChecks } from "./checking.ts";
import { openSourceParts, type SourceOptions, type SourceParts } from "./parts.ts";
import { progressOf } from "./progress.ts";

/** One source: from an event to the jobs that bring the change over. */
export type SourceSync = ReturnType<typeof openSource>;

/** Opens a source. Reads nothing before `run`. */
export function openSource(options: SourceOptions) {
  const { row, rules } = options;
  const parts = openSourceParts(options);
  const { context, source, agenda, contact, deletes } = parts;
  return {
    id: row.id,
    rules,
    /** As in the markers that it sends. */
    signature: source.signature,
    /** Ends its requests. What changes the service does not leave under it while the source is paused. */
    signal: context.signal,
    /** Compares it with the service's list. */
    contact,
    /** Has this path, or the whole source, checked. */
    hint: (path: RelativePath | undefined): void => agenda.hint(path),
    /** Checks the whole source, to find changes without an event. */
    rescan: (): void => {
      parts.state.isPeriodic = true;
      agenda.hint(undefined);
    },
    /** Checks whatever is marked until stopped. */
    run: async (): Promise<void> => {
      // The known state of the folder is from a former process.
      context.ledger.note(() => context.ledger.sources.setCompared(row.id, false));
      await runChecks(parts);
    },
    /** Returns what a pass over the whole source would find. Writes nothing. `before` is the source's row. */
    preview: (before: SourceRow): Promise<PassPreview> => previewPass(parts.passes, before),
    /** Sends refused deletes at or below a path now. Files are checked as marked. */
    retryDeletes: deletes.retry,
    /**
     * Checks a path, or the whole source, now. A check that began later has ended when `answered` has reached the
     * returned number.
     */
    ask: (below: RelativePath | undefined): number => agenda.ask(below),
    answered: (): number => agenda.answered(),
    ...progressOf(parts),
    ...pausingOf(parts),
    ...pathQueries(parts),
    ...findingsOf(parts),
    stop: parts.stop,
  };
}

function pausingOf({ options, context: { ledger, now }, agenda, state }: SourceParts) {
  /** Finds all pending work again, wherever it waited. */
  const checkAll = (): void => {
    agenda.states.drop(now());
    agenda.states.forgetMissing();
    agenda.hint(undefined);
  };
  return {
    isPaused: (): boolean => state.isPaused,
    /** Sends nothing until it is resumed. Planned work is given up and found again then. */
    pause: (): void => {
      if (state.isPaused) return;
      state.isPaused = true;
      checkAll();
    },
    resume: (): void => {
      if (!state.isPaused) return;
      state.isPaused = false;
      // Nothing else would find parked files whose time came meanwhile.
      ledger.note(() => ledger.operator.unpark(options.row.id, now()));
      checkAll();
    },
  };
}

/** What the last checks found. */
function findingsOf({ context, passes, problems }: SourceParts) {
  return {
    /** Returns what the rules left out of the last whole scan, by rule. */
    leftOut: (): readonly LeftOut[] => passes.memory.leftOut,
    /** Returns what the last checks found about mounts, ignore files, and the service's descriptions. */
    warnings: (): readonly FolderWarning[] => [
      ...(context.ledger.contacts.keepsMarkers() === false ? [NO_MARKERS] : []),
      ...problems.current(),
    ],
    /** Returns what cannot be read at a path, below it, or on the way to it. */
    unreadable: (below: RelativePath | undefined): UnreadablePath[] => {
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
    },
  };
}

const INACCESSIBLE = "it is inaccessible, so nothing is known of its contents (check owner and mode)";

const NO_MARKERS: FolderWarning = {
  path: "",
  reason:
    "the service does not keep descriptions as they are sent, so only the ledger says which document is which file's",
  remedy: "back up the state folder: without it, files would be sent as new ones after `kbsync approve`",
};

/** The pending work at a path. */
function pathQueries({ agenda: { states }, contact, deletes, context: { now }, state }: SourceParts) {
  const workAt = (path: RelativePath): FileWork => {
    if (states.reading(path) !== undefined) return "reading";
    if (contact.waiting().has(path) || deletes.hasJob(path)) return "queued";
    switch (states.stateOf(path)) {
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
      const sinceMs = states.sinceMs(path);
      return {
        work: workAt(path),
        sinceMs: sinceMs === undefined ? undefined : Date.now() - (now() - sinceMs),
      };
    },
    /** Returns the files at or below a path that `activity` counts: those that are planned and not done. */
    *unsent(below: RelativePath | undefined): Iterable<RelativePath> {
      for (const path of states.jobPaths()) if (isBelow(path, below)) yield path;
      if (state.isPaused) return;
      for (const path of contact.waiting()) if (isBelow(path, below)) yield path;
    },
    /**
     * Reports whether all words of a file that are not searchable yet are in pictures, which may take hours to read: it is an
     * image, or a PDF whose service says so.
     */
    hasOnlyPictures: (path: RelativePath): boolean =>
      states.reading(path) === "pictures" ||
      (states.hasJob(path) && kindOfName(basename(path)).kind === "file" && !/\.pdf$/i.test(path)),
    /** Returns paths at or below a path that are not done. */
    pending: (below: RelativePath | undefined): RelativePath[] =>
      [...new Set([...states.paths(), ...contact.waiting(), ...deletes.jobPaths()])].filter((path) =>
        isBelow(path, below),
      ),
    isPending: (path: RelativePath): boolean =>
      states.stateOf(path) !== "at rest" || contact.waiting().has(path) || deletes.hasJob(path),
  };
}
