import { KbsyncError } from "../../lib/failure.ts";
import { jobKey } from "./waits.ts";
import { LEASE_MS, type Lease, type LeasedJob, type Queue } from "./queue.ts";

/** The leases that this process holds. They are renewed until they are dropped or lost. */
export interface Leases {
  /** As `Queue.lease`. */
  take(number: number, isEarly?: boolean): Promise<LeasedJob | undefined>;
  /** Returns a signal that aborts, with `lease_lost`, when this process finds that the lease of a job that it took has ended. */
  signal(job: Lease): AbortSignal;
  /** Checks now whether the lease of a document's entry (`jobKey`) has ended. Call it after a change that may have ended it. */
  recheck(key: string): void;
  /** Records whether a crash counts against the job from now on; the next renewal writes it. */
  note(number: number, isWorking: boolean): void;
  /** Like `note`, but writes it at once. Throws `lease_lost`. */
  setWorking(lease: Lease, isWorking: boolean): Promise<void>;
  /** Stops renewing the lease of a job. */
  drop(number: number): void;
  /** Stops renewing all leases and hands all jobs back. */
  close(): Promise<void>;
}

interface HeldLease {
  readonly lease: Lease;
  readonly key: string;
  readonly lost: AbortController;
  isWorking: boolean;
}

/** Opens the leases of a worker. `nowMs` is a clock that is never set back. `onProblem` reports failed renewals. */
export function openLeases(
  queue: Queue,
  worker: string,
  nowMs: () => number,
  onProblem: (error: unknown) => void,
): Leases {
  const held = new Map<number, HeldLease>();
  const renew = async (leases: readonly Lease[], isWorking: boolean, waits = false): Promise<Set<number>> =>
    new Set(leases.length > 0 ? await queue.renew({ worker, leases, isWorking, nowMs: nowMs(), waits }) : []);
  const isHeld = (entry: HeldLease): boolean => held.get(entry.lease.number) === entry;
  const lose = (entry: HeldLease): void => {
    if (isHeld(entry)) held.delete(entry.lease.number);
    entry.lost.abort(leaseLost());
  };
  const check = async (entry: HeldLease): Promise<void> => {
    if (!isHeld(entry)) return;
    const renewed = await renew([entry.lease], entry.isWorking, true);
    if (renewed.size === 0) lose(entry);
  };
  const renewAll = async (): Promise<void> => {
    const missing: HeldLease[] = [];
    for (const isWorking of [true, false]) {
      const alike = [...held.values()].filter((each) => each.isWorking === isWorking);
      // Waits for no job: the other leases would end meanwhile.
      const renewed = await renew(
        alike.map(({ lease }) => lease),
        isWorking,
      );
      missing.push(...alike.filter(({ lease }) => !renewed.has(lease.number)));
    }
    // A transaction may have locked the job of a lease that goes on.
    for (const entry of missing) await check(entry);
  };
  const timer = setInterval(() => void renewAll().catch(onProblem), LEASE_MS / 3).unref();
  const note = (number: number, isWorking: boolean): void => {
    const entry = held.get(number);
    if (entry !== undefined) entry.isWorking = isWorking;
  };
  return {
    take: async (number, isEarly = false) => {
      const before = held.get(number);
      // The row of one that this process holds may be locked for a moment by a renewal.
      const job = await queue.lease({ number, worker, nowMs: nowMs(), isEarly, waits: before !== undefined });
      // Renewed further, a lease that is lost would keep the job from all processes.
      if (before !== undefined) lose(before);
      if (job !== undefined) {
        const [lease, key] = [
          { number, token: job.token },
          jobKey({ accountId: job.accountId, id: job.name }),
        ];
        held.set(number, { lease, key, lost: new AbortController(), isWorking: true });
      }
      return job;
    },
    signal: ({ number, token }) => {
      const entry = held.get(number);
      return entry?.lease.token === token ? entry.lost.signal : AbortSignal.abort(leaseLost());
    },
    recheck: (key) => {
      for (const entry of held.values()) if (entry.key === key) check(entry).catch(onProblem);
    },
    note,
    setWorking: async (lease, isWorking) => {
      note(lease.number, isWorking);
      const { number, token } = lease;
      if ((await renew([{ number, token }], isWorking, true)).size === 0) throw leaseLost();
    },
    drop: (number) => void held.delete(number),
    close: async () => {
      clearInterval(timer);
      await queue.release(worker);
    },
  };
}

/** Returns the error of work on a job whose lease has ended: another run of it decides. */
export function leaseLost(): KbsyncError {
  return new KbsyncError("the lease of the job has ended", { code: "lease_lost", retryable: true });
}
