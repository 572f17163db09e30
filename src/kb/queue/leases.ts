import { KbsyncError } from "../../lib/failure.ts";
import { LEASE_MS, type Lease, type LeasedJob, type Queue, type Renewal } from "./queue.ts";

/** The leases that this process holds. They are renewed until dropped. */
export interface Leases {
  /** As `Queue.lease`. */
  take(number: number, isEarly?: boolean): Promise<LeasedJob | undefined>;
  /** Records whether a crash counts against the job from now on; the next renewal writes it. */
  note(number: number, isWorking: boolean): void;
  /** Like `note`, but writes it at once. Throws `lease_lost`. */
  setWorking(lease: Lease, isWorking: boolean): Promise<void>;
  /** Stops renewing the lease of a job. */
  drop(number: number): void;
  /** Stops renewing all leases and hands all jobs back. */
  close(): Promise<void>;
}

/** Opens the leases of a worker. `nowMs` is a clock that is never set back. `onProblem` reports failed renewals. */
export function openLeases(
  queue: Queue,
  worker: string,
  nowMs: () => number,
  onProblem: (error: unknown) => void,
): Leases {
  const held = new Map<number, { readonly lease: Lease; isWorking: boolean }>();
  const renew = async (renewal: Omit<Renewal, "worker" | "nowMs">): Promise<readonly number[]> =>
    renewal.leases.length > 0 ? queue.renew({ ...renewal, worker, nowMs: nowMs() }) : [];
  const renewAll = async (): Promise<void> => {
    for (const isWorking of [true, false]) {
      const alike = [...held.values()].filter((each) => each.isWorking === isWorking);
      // Waits for no job: the other leases would end meanwhile.
      await renew({ leases: alike.map(({ lease }) => lease), isWorking });
    }
  };
  const timer = setInterval(() => void renewAll().catch(onProblem), LEASE_MS / 3).unref();
  const note = (number: number, isWorking: boolean): void => {
    const entry = held.get(number);
    if (entry !== undefined) entry.isWorking = isWorking;
  };
  return {
    take: async (number, isEarly = false) => {
      // The row of one that this process holds may be locked for a moment by a renewal.
      const job = await queue.lease({ number, worker, nowMs: nowMs(), isEarly, waits: held.has(number) });
      // Renewed further, a lease that is lost would keep the job from all processes.
      if (job === undefined) held.delete(number);
      else held.set(number, { lease: { number, token: job.token }, isWorking: true });
      return job;
    },
    note,
    setWorking: async (lease, isWorking) => {
      note(lease.number, isWorking);
      const renewed = await renew({ leases: [lease], isWorking, waits: true });
      if (renewed.length === 0)
        throw new KbsyncError("the lease of the job has ended", { code: "lease_lost", retryable: true });
    },
    drop: (number) => void held.delete(number),
    close: async () => {
      clearInterval(timer);
      await queue.release(worker);
    },
  };
}
