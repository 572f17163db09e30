import { prepareLook, type Prepared } from "./actions/prepare.ts";
import { sendDelete } from "./actions/delete.ts";
import { send } from "./actions/send.ts";
import type { ActionContext, ActionSource } from "./actions/context.ts";
import type { SyncConfig } from "../config/schema.ts";
import type { SourceRow } from "./ledger/sources.ts";
import type { Deletion } from "./pass/deletes.ts";
import { openPasses, rulesKeyOf, type Passes } from "./pass/pass.ts";
import type { Look, RelativePath, ScanEntry } from "./plan/model.ts";
import { parkMs } from "./plan/retry.ts";
import { sameIdentity } from "./plan/moves.ts";
import type { WorkQueue } from "./queue.ts";
import { openSettler } from "./recover.ts";
import type { Rules } from "./rules.ts";
import { openDirtySet } from "./settle.ts";

/** Work of the queue: read and send a file, or delete a resource. */
export type Job =
  | { readonly kind: "look"; readonly source: SourceSync; readonly look: Look }
  | { readonly kind: "delete"; readonly source: SourceSync; readonly deletion: Deletion };

/** What a source is doing, beyond what the ledger says of it. */
export interface SourceActivity {
  /** Files planned and not done. */
  readonly backlog: number;
  /** How many of them have a row in agreement: an older version of theirs. */
  readonly backlogAgreed: number;
}

/** One source: from a hint that something changed to the jobs that bring it over. */
export interface SourceSync extends Pick<Passes, "preview"> {
  readonly id: number;
  readonly rules: Rules;
  /** Look at this path, or at the whole source. */
  hint(path: RelativePath | undefined): void;
  /** Look at the whole source, to find what gave no hint. */
  rescan(): void;
  /** Settles what a former process left open, then looks at whatever was hinted at until stopped. */
  run(): Promise<void>;
  /** Reads and decides a job's file; undefined when nothing is to be sent. */
  prepare(look: Look): Promise<Prepared | undefined>;
  /**
   * Runs inside the transaction that makes the intents durable; returns what is to be sent after it, or dropped when it
   * will not be.
   */
  depart(prepared: Prepared): { readonly run: () => Promise<void>; readonly drop: () => void };
  delete(deletion: Deletion): Promise<void>;
  /** A job has ended, in whatever way. */
  done(job: Job): void;
  activity(): SourceActivity;
  /** Whether everything that was hinted at is done. */
  isIdle(): boolean;
  checkDoubts(): Promise<void>;
  stop(): void;
}

export interface SourceOptions {
  readonly row: SourceRow;
  readonly rules: Rules;
  readonly sync: SyncConfig;
  readonly context: ActionContext;
  readonly queue: Pick<WorkQueue<Job>, "push">;
  /** One pass instead of a watch: deletes need not wait for a rename's other half, nor failures for later. */
  readonly once: boolean;
  /** A whole scan found changes that nothing hinted at. */
  readonly onUnhinted: () => void;
  readonly onWarning: (error: Error) => void;
  /** Something that `isIdle` or `activity` tells has changed. */
  readonly onChange: () => void;
}

/** How soon a folder that is missing or another one is looked at again. */
const ROOT_RETRY_MS = 10_000;
/** In one pass, what is to be looked at later than this is left to the next. */
const ONCE_PATIENCE_MS = 5000;
/** A create that was sent again is looked for in the list this soon. */
const DOUBT_SOON_MS = 1000;

/** Opens a source. Nothing is read before `run`. */
export function openSource(options: SourceOptions): SourceSync {
  const { row, rules, sync, context, once, queue } = options;
  const { ledger, now } = context;
  const stopping = new AbortController();
  const dirty = openDirtySet(sync.settleMs);
  /** Paths with a job. `agreed`: the row still counts as in agreement. */
  const busy = new Map<RelativePath, { readonly entry: ScanEntry; agreed: boolean }>();
  /** Files on their way by inode, to know one that is renamed meanwhile. */
  const travelling = new Map<number, ScanEntry>();
  /** Busy paths where something happened since. */
  const stale = new Set<RelativePath>();
  const deleting = new Set<number>();
  /** Deletes that the service would not do, and when they are sent again. */
  const refusedDeletes = new Map<number, { readonly deletion: Deletion; atMs: number; tries: number }>();
  let backlogAgreed = 0;
  let recovered = false;
  let passing = false;
  /** The whole source was looked at in this run: before that, nobody knows whether it rests. */
  let looked = false;
  /** A rescan is due that nothing hinted at. */
  let periodic = false;
  const alarm = openAlarm(now);

  const source: ActionSource = {
    id: row.id,
    root: rules.source.absolutePath,
    rules,
    rulesKey: rulesKeyOf(rules),
    isStale: (path) => stale.has(path),
    lookAgain: (path, atMs = now() + sync.settleMs) => {
      if (once && atMs > now() + ONCE_PATIENCE_MS) return;
      if (busy.has(path) && atMs <= now() + sync.settleMs) {
        stale.add(path);
        return;
      }
      dirty.again(path, atMs, now());
      alarm.set(atMs);
    },
    lookAgainTorn: (path) => {
      dirty.torn(path, now());
      source.lookAgain(path);
    },
    settle: (intent) => settler.settle(intent),
    doubt: () => {
      if (!once) settler.checkDoubtsIn(DOUBT_SOON_MS);
    },
    deleteLater: (deletion) => beginDeletes([deletion]),
  };
  const settler = openSettler({
    context,
    source,
    stopped: stopping.signal,
    once,
    onWarning: options.onWarning,
  });
  const passes = openPasses({
    source,
    context,
    sync,
    once,
    dirty,
    isBusy: (path) => busy.has(path),
    travelsAs: (entry) => {
      const other = travelling.get(entry.ino);
      return other !== undefined && sameIdentity(other, entry) ? other.path : undefined;
    },
    signal: stopping.signal,
  });

  const hint = (path: RelativePath | undefined): void => {
    const nowMs = now();
    if (path === undefined) dirty.markAll(nowMs, nowMs);
    else if (busy.has(path)) stale.add(path);
    else dirty.mark(path, nowMs);
    alarm.set(path === undefined ? nowMs : nowMs + sync.settleMs);
  };
  const beginDeletes = (deletions: readonly Deletion[]): void => {
    for (const { id } of deletions) deleting.add(id);
    queue.push(
      deletions.map((deletion) => ({ kind: "delete", source: self, deletion })),
      { last: true },
    );
  };
  const deleteAgainLater = (deletion: Deletion): void => {
    if (once) return;
    const tries = (refusedDeletes.get(deletion.id)?.tries ?? 0) + 1;
    const atMs = now() + parkMs(tries);
    refusedDeletes.set(deletion.id, { deletion, atMs, tries });
    alarm.set(atMs);
  };
  /** Deletes that are to be sent again now. */
  const dueDeletes = (): Deletion[] => {
    const nowMs = now();
    return [...refusedDeletes.values()]
      .filter(({ atMs, deletion }) => atMs <= nowMs && !deleting.has(deletion.id))
      .map(({ deletion }) => deletion);
  };
  const beginLooks = (looks: readonly Look[]): void => {
    for (const { entry, known } of looks) {
      const agreed = known?.state === "agreed";
      busy.set(entry.path, { entry, agreed });
      travelling.set(entry.ino, entry);
      if (agreed) backlogAgreed += 1;
    }
    if (looks.length > 0) {
      // Before any of them is acknowledged, or the ledger would tell other processes of an agreement too early.
      ledger.note(() => ledger.sources.setBacklog(row.id, busy.size, backlogAgreed));
    }
    queue.push(looks.map((look) => ({ kind: "look", source: self, look })));
  };
  /** The path's row is no longer among those in agreement, or the path no longer busy. */
  const uncount = (path: RelativePath): void => {
    const work = busy.get(path);
    if (work?.agreed !== true) return;
    work.agreed = false;
    backlogAgreed -= 1;
  };

  const pass = async (): Promise<void> => {
    const due = dirty.take(now());
    if (due === undefined) return;
    const plan = await passes.plan(due);
    if (due.all) looked = true;
    if (plan.halted && !once) dirty.markAll(now() + ROOT_RETRY_MS, now());
    if (plan.halted) return;
    beginLooks(plan.looks);
    beginDeletes(plan.deletions);
    // Deletes that an earlier process left undone.
    if (due.all) {
      const open = ledger.intents.deletes(row.id);
      beginDeletes(open.filter(({ id }) => !deleting.has(id) && !refusedDeletes.has(id)));
    }
    if (plan.newFiles && periodic && due.all) options.onUnhinted();
    if (due.all) periodic = false;
  };
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const nextMs = dirty.nextDueMs();
      if (nextMs !== undefined && nextMs <= now()) {
        passing = true;
        await pass();
        passing = false;
        continue;
      }
      beginDeletes(dueDeletes());
      if (nextMs !== undefined) alarm.set(nextMs);
      for (const { atMs, deletion } of refusedDeletes.values())
        if (!deleting.has(deletion.id)) alarm.set(atMs);
      options.onChange();
      await alarm.rings();
    }
  };

  const self: SourceSync = {
    id: row.id,
    rules,
    hint,
    rescan: () => {
      periodic = true;
      hint(undefined);
    },
    preview: () => passes.preview(),
    run: async () => {
      await settler.recover();
      recovered = true;
      await loop();
    },
    prepare: async (look) => (stale.has(look.entry.path) ? undefined : prepareLook(context, source, look)),
    depart: (prepared) => {
      const departure = prepared.write();
      // The row is `unsure` from here on.
      if (departure.intent === undefined) uncount(departure.look.entry.path);
      const { intent } = departure;
      return {
        run: () => send(context, source, departure),
        drop: () => {
          // It never left, so the next start need not ask what became of it.
          if (intent !== undefined) ledger.note(() => ledger.intents.remove(intent.id));
        },
      };
    },
    delete: async (deletion) => {
      if (await sendDelete(context, source, deletion)) refusedDeletes.delete(deletion.id);
      else deleteAgainLater(deletion);
    },
    done: (job) => {
      if (job.kind === "delete") deleting.delete(job.deletion.id);
      else {
        const { path } = job.look.entry;
        uncount(path);
        busy.delete(path);
        if (travelling.get(job.look.entry.ino) === job.look.entry) travelling.delete(job.look.entry.ino);
        if (stale.delete(path)) hint(path);
      }
      options.onChange();
    },
    activity: () => ({ backlog: busy.size, backlogAgreed }),
    isIdle: () =>
      recovered && looked && !passing && dirty.isQuiet() && busy.size === 0 && deleting.size === 0,
    checkDoubts: () => settler.checkDoubts(),
    stop: () => {
      stopping.abort(new Error("the daemon is stopping"));
      settler.stop();
      alarm.stop();
    },
  };
  return self;
}

/** One timer for a loop: it rings at the earliest time that was set. Once stopped it holds no timer any more. */
function openAlarm(now: () => number): { set(atMs: number): void; rings(): Promise<void>; stop(): void } {
  let timer: { readonly handle: NodeJS.Timeout; readonly ringsMs: number } | undefined;
  let wake: (() => void) | undefined;
  let rang = false;
  let stopped = false;
  const ring = (): void => {
    timer = undefined;
    rang = true;
    wake?.();
  };
  return {
    set: (atMs) => {
      const delayMs = Math.max(0, atMs - now());
      // By the timers' own clock: the other one may have been set forward since the timer was set.
      const ringsMs = performance.now() + delayMs;
      if (stopped || (timer !== undefined && timer.ringsMs <= ringsMs)) return;
      clearTimeout(timer?.handle);
      timer = { handle: setTimeout(ring, delayMs), ringsMs };
    },
    rings: async () => {
      if (!rang) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      wake = undefined;
      rang = false;
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer?.handle);
      ring();
    },
  };
}
