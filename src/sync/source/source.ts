import { basename } from "node:path";
import type { FolderWarning } from "../../wire/daemon-status.ts";
import type { LeftOut } from "../../wire/daemon-folders.ts";
import { prepareFile, type Prepared } from "../actions/prepare.ts";
import { dropCreate } from "../actions/create.ts";
import { send } from "../actions/send.ts";
import { isBelow } from "../disk/source-path.ts";
import type { Deletion } from "../ledger/intents/deletes.ts";
import { kindOfName } from "../../formats/kinds.ts";
import type { Passes } from "../pass/pass.ts";
import type { Candidate, RelativePath } from "../plan/model.ts";
import type { Signature } from "../plan/marker.ts";
import type { FileWork } from "../plan/version.ts";
import type { Send, YieldSlot } from "../queue/sending.ts";
import type { WorkQueue } from "../queue/queue.ts";
import type { Contact } from "../identity/contact.ts";
import type { Rules } from "../rules/rules.ts";
import { mountProblems } from "./mount-warnings.ts";
import { openSourceParts, type PartOptions, type SourceParts } from "./parts.ts";
import { type SourceProgress, progressOf } from "./progress.ts";

/** A job of the queue: read and send a file, or delete a resource. */
export type Job =
  | { readonly kind: "file"; readonly source: SourceSync; readonly candidate: Candidate }
  | {
      readonly kind: "delete";
      readonly source: {
        delete(deletion: Deletion): Promise<void>;
        /** Called when the job has ended, in whatever way. */
        done(job: Job): void;
      };
      readonly deletion: Deletion;
    };

/** One source: from an event to the jobs that bring the change over. */
export interface SourceSync extends SourceProgress, Pick<Passes, "preview"> {
  readonly id: number;
  readonly rules: Rules;
  /** As in the markers that it sends. */
  readonly signature: Signature;
  /** Ends its requests. What changes the service does not leave under it while the source is paused. */
  readonly signal: AbortSignal;
  /** Has this path, or the whole source, checked. */
  hint(path: RelativePath | undefined): void;
  /** Checks the whole source, to find changes without an event. */
  rescan(): void;
  /** Settles what a former process left open, then checks whatever is marked until stopped. */
  run(): Promise<void>;
  /** Reads a job's file and decides; undefined if nothing must be sent. */
  prepare(candidate: Candidate): Promise<Prepared | undefined>;
  /**
   * Runs inside the transaction that makes the intents durable. Returns what must be sent after it, or dropped if it
   * will not be.
   */
  depart(prepared: Prepared): Pick<Send<Job>, "run" | "drop">;
  delete(deletion: Deletion): Promise<void>;
  /** Called when a job has ended, in whatever way. */
  done(job: Job): void;
  /** Compares it with the service's list. */
  readonly contact: Contact;
  /** Reports whether a file is being read or sent. */
  isBusy(path: RelativePath): boolean;
  /** Deletes a resource whose intent is in the ledger. */
  deleteLater(deletion: Deletion): void;
  isPaused(): boolean;
  /** Sends nothing until it is resumed. Planned work is given up and found again then. */
  pause(): void;
  resume(): void;
  /** Sends refused deletes at or below a path now. Files are checked as marked. */
  retryDeletes(below: RelativePath | undefined): void;
  /**
   * Checks a path, or the whole source, now. A check that began later has ended when `answered` has reached the
   * returned number.
   */
  ask(below: RelativePath | undefined): number;
  answered(): number;
  /** Returns paths at or below a path that are not done. */
  pending(below: RelativePath | undefined): RelativePath[];
  isPending(path: RelativePath): boolean;
  isInFlight(path: RelativePath): boolean;
  /** Returns what is done with a file, and since when it waits, by the system's clock. */
  workAt(path: RelativePath): { readonly work: FileWork; readonly sinceMs: number | undefined };
  /** Returns the files at or below a path that `activity` counts: those that are planned and not done. */
  unsent(below: RelativePath | undefined): Iterable<RelativePath>;
  /**
   * Reports whether all words of a file that are not searchable yet are in pictures, which may take hours to read: it is an image,
   * or a PDF whose service says so.
   */
  hasOnlyPictures(path: RelativePath): boolean;
  /** Returns what cannot be read at a path, below it, or on the way to it. */
  unreadable(below: RelativePath | undefined): RelativePath[];
  /** Returns what the last checks found about mounts and ignore files. */
  warnings(): readonly FolderWarning[];
  /** Returns what the rules left out of the last whole scan, by rule. */
  leftOut(): readonly LeftOut[];
  stop(): void;
}

export interface SourceOptions extends PartOptions {
  readonly queue: Pick<WorkQueue<Job>, "push"> & {
    /** Ends the job of a source's file that is prepared and not in flight. */
    withdraw(source: number, path: RelativePath): void;
  };
}

/** Opens a source. Reads nothing before `run`. */
export function openSource(options: SourceOptions): SourceSync {
  const { row, rules, queue } = options;
  const { ledger, now } = options.context;
  const onChange = (): void => {
    options.onChange();
  };
  const parts = openSourceParts(
    { ...options, onChange },
    {
      files: (candidates, isRecent) => {
        states.queue(candidates, now());
        if (candidates.length > 0) {
          // Before any of them is acknowledged; otherwise the ledger would show other processes an agreement too early.
          ledger.noteLast(self.noteBacklog);
        }
        for (const recent of [true, false]) {
          const some = candidates.filter((candidate) => isRecent(candidate) === recent);
          queue.push(
            some.map((candidate) => ({ kind: "file", source: self, candidate })),
            { recent },
          );
        }
      },
      deletes: (deletions) => {
        queue.push(
          deletions.map((deletion) => ({ kind: "delete", source: self, deletion })),
          { recent: true },
        );
      },
      withdraw: (path) => queue.withdraw(row.id, path),
    },
  );
  const { agenda, contact, passes, deletes, checking } = parts;
  const { states } = agenda;
  const hint = (path: RelativePath | undefined): void => agenda.hint(path);
  const self: SourceSync = {
    id: row.id,
    rules,
    signature: parts.source.signature,
    signal: parts.context.signal,
    hint,
    rescan: () => checking.rescan(),
    preview: (before) => passes.preview(before),
    run: async () => {
      // The known state of the folder is from a former process.
      ledger.note(() => ledger.sources.setCompared(row.id, false));
      await checking.run();
    },
    ...departures(parts),
    delete: (deletion) => deletes.send(deletion),
    done: (job) => {
      if (job.kind === "delete") deletes.end(job.deletion);
      else {
        // Another job may have taken its place.
        if (states.isCurrent(job.candidate.entry)) agenda.end(job.candidate.entry);
        deletes.beginPutOff(job.candidate.entry.path);
      }
      // One file was sent alone, or the requests in flight have ended.
      if (contact.isProbing()) agenda.scanAt(now());
      onChange();
    },
    ...progressOf(parts),
    contact,
    isBusy: (path) => states.hasJob(path),
    deleteLater: (deletion) => parts.source.deleteLater(deletion),
    ...pausingOf(parts),
    retryDeletes: (below) => deletes.retry(below),
    ask: (below) => agenda.ask(below),
    answered: () => agenda.answered(),
    leftOut: () => passes.leftOut(),
    warnings: () => [
      ...(parts.context.ledger.contacts.keepsMarkers() === false ? [NO_MARKERS] : []),
      ...mountProblems(rules),
      ...checking.ignoreProblems().map(({ path, reason, remedy }) => ({ path, reason, remedy })),
    ],
    ...pathQueries(parts),
    stop: parts.stop,
  };
  return self;
}

const NO_MARKERS: FolderWarning = {
  path: "",
  reason:
    "the service does not keep descriptions as they are sent, so only the ledger says which document is which file's",
  remedy: "back up the state folder: without it, files would be sent as new ones after `kbsync approve`",
};

function pausingOf({
  options: { row },
  context: { ledger, now },
  agenda,
  state,
}: SourceParts): Pick<SourceSync, "isPaused" | "pause" | "resume"> {
  return {
    isPaused: () => state.paused,
    pause: () => {
      if (state.paused) return;
      state.paused = true;
      // So that all pending work is counted, wherever it waited.
      agenda.hint(undefined);
    },
    resume: () => {
      if (!state.paused) return;
      state.paused = false;
      agenda.states.endPause();
      // Nothing else would find parked files whose time came meanwhile.
      ledger.note(() => ledger.operator.unpark(row.id, now()));
      agenda.hint(undefined);
    },
  };
}

/** Prepares and sends files. */
function departures({
  options,
  context,
  source,
  agenda: { states },
}: SourceParts): Pick<SourceSync, "prepare" | "depart"> {
  const { ledger } = context;
  return {
    prepare: async (candidate) => {
      const { entry } = candidate;
      if (!states.isCurrent(entry)) return undefined;
      states.send(entry.path);
      const prepared = source.isStale(entry.path) ? undefined : await prepareFile(context, source, candidate);
      return source.isStale(entry.path) ? undefined : prepared;
    },
    depart: (prepared) => {
      const outgoing = prepared.write();
      // The row is `unsure` from here on.
      if (outgoing.intent === undefined) states.uncount(outgoing.candidate.entry.path);
      const { intent } = outgoing;
      return {
        run: (yieldSlot, isRecent) => {
          const { path } = outgoing.candidate.entry;
          // A job gives its slot away while the service works on what it has.
          const whileRead: YieldSlot = async (wait) => {
            states.setReading(path, "all");
            try {
              return await yieldSlot(wait);
            } finally {
              states.setReading(path, undefined);
            }
          };
          const contentKind = isRecent ? "recent" : "content";
          const onPictures = (): void => {
            if (states.reading(path) === "pictures") return;
            states.setReading(path, "pictures");
            options.onChange();
          };
          return send({ ...context, yieldSlot: whileRead, onPictures, contentKind }, source, outgoing);
        },
        drop: () => {
          // It never left, so the next start need not find out what became of it.
          if (intent !== undefined) ledger.note(() => dropCreate(ledger, source, intent));
        },
      };
    },
  };
}

/** The pending work at a path. */
function pathQueries({
  agenda: { states },
  contact,
  deletes,
  passes,
  context: { now },
  state,
}: SourceParts): Pick<
  SourceSync,
  "pending" | "isInFlight" | "unreadable" | "isPending" | "workAt" | "unsent" | "hasOnlyPictures"
> {
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
      case "paused":
        return "queued";
      case "sending":
        return "sending";
    }
  };
  return {
    workAt: (path) => {
      const sinceMs = states.sinceMs(path);
      return {
        work: workAt(path),
        sinceMs: sinceMs === undefined ? undefined : Date.now() - (now() - sinceMs),
      };
    },
    *unsent(below) {
      for (const path of states.toSend(state.paused)) if (isBelow(path, below)) yield path;
      if (state.paused) return;
      for (const path of contact.waiting()) if (isBelow(path, below)) yield path;
    },
    hasOnlyPictures: (path) =>
      states.reading(path) === "pictures" ||
      (states.hasJob(path) && kindOfName(basename(path)).kind === "file" && !/\.pdf$/i.test(path)),
    pending: (below) =>
      [...new Set([...states.paths(), ...contact.waiting(), ...deletes.jobPaths()])].filter((path) =>
        isBelow(path, below),
      ),
    isInFlight: (path) => states.hasJob(path) || deletes.hasJob(path),
    unreadable: (below) =>
      [...passes.unreadable()].filter(
        (path) => isBelow(path, below) || path === "" || (below !== undefined && isBelow(below, path)),
      ),
    isPending: (path) =>
      states.stateOf(path) !== "at rest" || contact.waiting().has(path) || deletes.hasJob(path),
  };
}
