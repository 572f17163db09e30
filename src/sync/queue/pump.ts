import { setImmediate as nextTurn } from "node:timers/promises";
import type { WorkQueueOptions, Shared, Line } from "./lines.ts";

/**
 * Jobs prepared together. They share one transaction for their intents. Reading so many blocks the loop for some ms.
 */
const BATCH_JOBS = 128;
/**
 * Number of jobs of a line that are prepared ahead of those in flight. A flush to a busy disk takes tens of
 * milliseconds, during which ready jobs must not run out. Batches whose intents wait for the same flush share it.
 */
const AHEAD_JOBS = 512;
/** Bytes in memory of everything prepared or in flight. A larger file goes alone. */
const BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of a batch. A line that holds nothing may use this much even if others have taken all. */
const BATCH_BYTES_MAX = BYTES_MAX / 4;

/** Prepares batches of jobs while there is room. `onReady` is called after each. */
export function openPump<Job>(
  { bytesOf, prepare, onError }: WorkQueueOptions<Job>,
  shared: Shared<Job>,
  onReady: () => void,
): { ensure: () => void; ended: () => Promise<void> } {
  const { waiter } = shared;
  let pump: Promise<void> | undefined;

  const mayPrepare = (line: Line<Job>): boolean => {
    if (!hasJobs(line) || line.preparing + line.ready.length() >= AHEAD_JOBS) return false;
    if (
      line.isLast &&
      shared.lines.some((other) => other.owner === line.owner && !other.isLast && hasJobs(other))
    )
      return false;
    return hasRoom(shared.bytes, line, fillBatch(line, bytesOf).need);
  };
  const prepareBatch = async (line: Line<Job>): Promise<void> => {
    const { jobs, need } = fillBatch(line, bytesOf);
    line.batch = undefined;
    const hold = (more: number): void => {
      shared.bytes += more;
      line.bytes += more;
    };
    line.preparing += jobs.length;
    hold(need);
    try {
      for (const send of await prepare(jobs)) {
        hold(send.bytes);
        line.ready.push(send);
      }
    } catch (error) {
      onError(error);
    }
    line.preparing -= jobs.length;
    hold(-need);
    onReady();
    waiter.wake();
  };
  const waits = (): boolean => !shared.stopped && shared.lines.some(hasJobs);
  const work = async (): Promise<void> => {
    while (waits()) {
      await waiter.until(() => shared.stopped || shared.lines.some(mayPrepare));
      const line = shared.lines.find(mayPrepare);
      if (shared.stopped || line === undefined) break;
      // The others have their turns first.
      shared.lines = [...shared.lines.filter((each) => each !== line), line];
      void prepareBatch(line);
      await nextTurn();
    }
  };
  const ensureWork = (): void => {
    pump ??= work()
      .catch(onError)
      .finally(() => {
        pump = undefined;
        if (waits()) ensureWork();
      });
  };
  return { ensure: ensureWork, ended: () => pump ?? Promise.resolve() };
}

function hasJobs<Job>({ jobs, batch }: Line<Job>): boolean {
  return batch !== undefined || jobs.length() > 0;
}

/** Takes the line's next batch from its jobs, unless it has one. */
function fillBatch<Job>(line: Line<Job>, bytesOf: (job: Job) => number): NonNullable<Line<Job>["batch"]> {
  if (line.batch !== undefined) return line.batch;
  const jobs: Job[] = [];
  let need = 0;
  while (jobs.length < BATCH_JOBS) {
    const next = line.jobs.peek();
    if (next === undefined || (jobs.length > 0 && need + bytesOf(next) > BATCH_BYTES_MAX)) break;
    need += bytesOf(next);
    jobs.push(next);
    line.jobs.shift();
  }
  line.batch = { jobs, need };
  return line.batch;
}

/** Reports whether a batch of `need` bytes fits. */
function hasRoom(bytes: number, line: Pick<Line<unknown>, "bytes">, need: number): boolean {
  return (
    bytes === 0 ||
    bytes + need <= BYTES_MAX ||
    (line.bytes === 0 && need <= BATCH_BYTES_MAX && bytes + need <= BYTES_MAX + BATCH_BYTES_MAX)
  );
}
