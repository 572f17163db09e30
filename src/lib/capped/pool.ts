import { setImmediate as nextTurn } from "node:timers/promises";
import { KbsyncError } from "../failure.ts";
import { openGate } from "../gate.ts";
import { measureBaseKb, startCappedProcess } from "./process.ts";
import type { CappedKind, CappedLimits, CappedProcess } from "./process.ts";

/** Limits of a pool. */
export interface CappedPoolOptions extends Omit<CappedLimits, "nicer"> {
  /** Concurrent requests of the backlog, each in a process of its own. */
  readonly processes: number;
  /** Concurrent requests for waiting clients, each in a process of its own. Default 1. */
  readonly clientProcesses?: number;
  /** Extra processes of each lane, only for a tenant that has none while others occupy all. Default 0. */
  readonly guests?: number;
  /** Idle processes end after this time. */
  readonly idleMs: number;
}

/**
 * `client`: a client waits for the answer. Its processes are separate from those of the `backlog`, and have the priority of this
 * one: a backlog never delays a client.
 */
export type Lane = "client" | "backlog";

/** Child processes with capped memory and time, started on demand. */
export interface CappedPool<Request, Part> {
  /**
   * Waits for a free process and returns the parts of its answer in order. Retries a request whose process crashed or hung
   * once, in a fresh process: an earlier document may be the cause. Rejects with the kind's `failure`, the signal's reason,
   * `extractor_busy` if too many requests wait, or `closed` after `close`.
   */
  ask(request: Request, options: AskOptions): Promise<readonly Part[]>;
  /** Ends all processes; requests in flight fail. */
  close(): void;
}

export interface AskOptions {
  readonly signal?: AbortSignal | undefined;
  readonly lane: Lane;
  /** Called at the end of each attempt with the processor time that it took, in milliseconds (`TimeWatch`). */
  readonly onUsed?: ((usedMs: number) => void) | undefined;
  /** Tenant of the request, such as account and owner; time is shared equally among tenants. Default: none. */
  readonly tenant?: readonly string[] | undefined;
  /** Rank of the request within its tenant (`FairLine`). Default 0. */
  readonly rank?: number | undefined;
}

/** Requests that may wait. Callers have lower limits; this one bounds a defect. */
const WAITING_MAX = 1000;
/** The same for one account, so that others find room. */
const WAITING_SHARE_MAX = 750;

/** Opens a pool without processes. Idle processes do not keep this one alive. */
export function openCappedPool<Request extends object, Part, Failure extends string>(
  kind: CappedKind<Request, Failure>,
  { clientProcesses = 1, ...options }: CappedPoolOptions,
): CappedPool<Request, Part> {
  const lanes: Readonly<Record<Lane, CappedPool<Request, Part>>> = {
    client: openLane(kind, { ...options, processes: clientProcesses, nicer: 0 }),
    backlog: openLane(kind, options),
  };
  return {
    ask: (request, asked) => lanes[asked.lane].ask(request, asked),
    close: () => {
      for (const lane of Object.values(lanes)) lane.close();
    },
  };
}

function openLane<Request extends object, Part, Failure extends string>(
  kind: CappedKind<Request, Failure>,
  options: Omit<CappedPoolOptions, "clientProcesses"> & Pick<CappedLimits, "nicer">,
): CappedPool<Request, Part> {
  const gate = openGate({
    width: options.processes,
    guests: options.guests ?? 0,
    lineMax: WAITING_MAX,
    shareMax: WAITING_SHARE_MAX,
    full: () =>
      new KbsyncError("too many documents are waiting to be read", {
        code: "extractor_busy",
        retryable: true,
      }),
  });
  const idle = new Map<CappedProcess<Request, Part>, NodeJS.Timeout>();
  const busy = new Set<CappedProcess<Request, Part>>();
  let baseKb: number | undefined;
  let closed = false;

  const take = async (): Promise<CappedProcess<Request, Part>> => {
    // A measurement that failed is repeated for the next process: without it the memory is not limited.
    baseKb ??= await measureBaseKb();
    assertOpen(closed);
    for (const [process, timer] of idle) {
      clearTimeout(timer);
      idle.delete(process);
      if (process.fit()) return process;
    }
    return startCappedProcess<Request, Part, Failure>(kind, baseKb, options);
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
    ask: async (request, { signal, onUsed = () => undefined, tenant = [], rank }) => {
      assertOpen(closed);
      const attempt = async (isLast: boolean): Promise<readonly Part[]> => {
        const process = await take();
        busy.add(process);
        try {
          return await process.ask(request, signal, onUsed);
        } catch (error) {
          if (isLast || closed || !process.deservesRetry()) throw error;
        } finally {
          busy.delete(process);
          giveBack(process);
        }
        return attempt(true);
      };
      const { promise, resolve, reject } = Promise.withResolvers<readonly Part[]>();
      const work = async (): Promise<void> => {
        await attempt(false).then(resolve, reject);
        // The slot becomes free after the caller has asked for its next page. Otherwise a tenant that asks page by page would
        // lose a turn after each, and wait for a page of every other tenant, however long those take.
        await nextTurn();
      };
      gate.run(work, { signal, path: tenant, rank }).catch(reject);
      return await promise;
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
