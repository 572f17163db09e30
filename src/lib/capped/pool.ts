import { KbsyncError } from "../failure.ts";
import { openGate } from "../gate.ts";
import { measureBaseKb, startCappedProcess } from "./process.ts";
import type { CappedKind, CappedLimits, CappedProcess } from "./process.ts";

/** Bounds of a pool. */
export interface CappedPoolOptions extends CappedLimits {
  /** Most requests worked on at once, each in a process of its own. */
  readonly processes: number;
  /** Processes beyond that, each for a tenant of whom nothing is worked on while others take all of them. Default 0. */
  readonly guests?: number;
  /** Idle processes end after this time. */
  readonly idleMs: number;
  /** The code of the failure when too many requests wait. Default `pool_busy`. */
  readonly busyCode?: string;
}

/** Child processes with capped memory and time, started when needed. */
export interface CappedPool<Request, Part> {
  /**
   * Waits for a free process; a request at which it falls is given to a fresh one, once: what an earlier document left
   * behind may be to blame. Gives the parts of its answer in order. Rejects with what the kind's `failure` makes, with
   * the signal's reason, with `busyCode` and, once closed, with `closed`.
   */
  ask(request: Request, options?: AskOptions): Promise<readonly Part[]>;
  /** Ends all processes; what is under way fails. */
  close(): void;
}

export interface AskOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called once, when the wait is over. */
  readonly onTurn?: () => void;
  /** Whose work it is, such as account and owner, among whom the processes' time is shared equally. Default: nobody's. */
  readonly tenant?: readonly string[] | undefined;
}

/** Requests that may wait; callers have bounds of their own, this one only keeps a mistake from growing. */
const WAITING_MAX = 1000;
/** Of one account, so that another one finds room. */
const WAITING_SHARE_MAX = 750;

/** Starts nothing until the first request. Its processes never keep this one alive by themselves. */
export function openCappedPool<Request extends object, Part, Failure extends string>(
  kind: CappedKind<Request, Failure>,
  options: CappedPoolOptions,
): CappedPool<Request, Part> {
  const gate = openGate({
    width: options.processes,
    guests: options.guests ?? 0,
    lineMax: WAITING_MAX,
    shareMax: WAITING_SHARE_MAX,
    full: () =>
      new KbsyncError("too many documents are waiting to be read", {
        code: options.busyCode ?? "pool_busy",
        retryable: true,
      }),
  });
  const idle = new Map<CappedProcess<Request, Part>, NodeJS.Timeout>();
  const busy = new Set<CappedProcess<Request, Part>>();
  let baseKb: Promise<number | undefined> | undefined;
  let closed = false;

  const take = async (): Promise<CappedProcess<Request, Part>> => {
    baseKb ??= measureBaseKb();
    const base = await baseKb;
    assertOpen(closed);
    for (const [process, timer] of idle) {
      clearTimeout(timer);
      idle.delete(process);
      if (process.fit()) return process;
    }
    return startCappedProcess<Request, Part, Failure>(kind, base, options);
  };

  const giveBack = (process: CappedProcess<Request, Part>): void => {
    if (closed || !process.fit()) {
      process.kill();
      return;
    }
    const end = (): void => {
      idle.delete(process);
      process.kill();
    };
    idle.set(process, setTimeout(end, options.idleMs).unref());
  };

  return {
    ask: async (request, { signal, onTurn, tenant = [] } = {}) => {
      assertOpen(closed);
      const attempt = async (isLast: boolean): Promise<readonly Part[]> => {
        const process = await take();
        busy.add(process);
        try {
          return await process.ask(request, signal);
        } catch (error) {
          if (isLast || closed || !process.fell()) throw error;
        } finally {
          busy.delete(process);
          giveBack(process);
        }
        return attempt(true);
      };
      const work = async (): Promise<readonly Part[]> => {
        onTurn?.();
        return await attempt(false);
      };
      return await gate.run(work, { signal, path: tenant });
    },
    close: () => {
      closed = true;
      for (const [process, timer] of idle) {
        clearTimeout(timer);
        process.kill();
      }
      idle.clear();
      for (const process of busy) process.kill(closedError());
    },
  };
}

function assertOpen(closed: boolean): void {
  if (closed) throw closedError();
}

function closedError(): KbsyncError {
  return new KbsyncError("it is closed and reads no more documents", { code: "closed" });
}
