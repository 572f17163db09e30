import { KbsyncError } from "../failure.ts";
import { openGate } from "../gate.ts";
import { measureBaseKb, startCappedProcess } from "./process.ts";
import type { CappedKind, CappedLimits, CappedProcess } from "./process.ts";

/** Limits of a pool. */
export interface CappedPoolOptions extends CappedLimits {
  /** Concurrent requests, each in a process of its own. */
  readonly processes: number;
  /** Extra processes, only for a tenant that has none while others occupy all `processes`. Default 0. */
  readonly guests?: number;
  /** Idle processes end after this time. */
  readonly idleMs: number;
  /** Error code when too many requests wait. Default `pool_busy`. */
  readonly busyCode?: string;
}

/** Child processes with capped memory and time, started on demand. */
export interface CappedPool<Request, Part> {
  /**
   * Waits for a free process and returns the parts of its answer in order. Retries a request whose process crashed once, in
   * a fresh process: an earlier document may have caused the crash. Rejects with the kind's `failure`, the signal's reason,
   * `busyCode`, or `closed` after `close`.
   */
  ask(request: Request, options?: AskOptions): Promise<readonly Part[]>;
  /** Ends all processes; requests in flight fail. */
  close(): void;
}

export interface AskOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called once, when the request gets its slot. */
  readonly onTurn?: () => void;
  /** Tenant of the request, such as account and owner; time is shared equally among tenants. Default: none. */
  readonly tenant?: readonly string[] | undefined;
}

/** Requests that may wait. Callers have lower limits; this one bounds a defect. */
const WAITING_MAX = 1000;
/** The same for one account, so that others find room. */
const WAITING_SHARE_MAX = 750;

/** Opens a pool without processes. Idle processes do not keep this one alive. */
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
          if (isLast || closed || !process.crashed()) throw error;
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
