import PQueue from "p-queue";
import { windowAfter } from "../plan/window.ts";
import type { WorkQueueOptions, Shared, Line, Send } from "./lines.ts";

/**
 * Jobs of a line that may wait without a slot. When so many do, the line's next ones wait for them: more would only
 * wait at the service, before what others send. When waits end, there are more jobs than the width until as many others
 * have ended. The number of connections stays the same.
 */
const YIELDED_MAX = 200;

/** Sends what is ready. */
interface Lanes {
  /** Opens as many lanes as there is work for and the width allows. */
  readonly open: () => void;
  readonly setWidth: (width: number) => void;
  /** Resolves when all lanes have ended. */
  readonly idle: () => Promise<void>;
}

/** Opens the lanes of a queue. None runs before `open`. */
export function openLanes<Job>(
  { onError, width: widthBefore, reserve = 0, elapsedMs = () => performance.now() }: WorkQueueOptions<Job>,
  shared: Shared<Job>,
): Lanes {
  const { waiter } = shared;
  let width = widthBefore;
  const lanes = new PQueue({ concurrency: width + reserve });
  /** Lanes that were added and have not ended. */
  let lanesOpen = 0;
  /** Jobs that wait without a slot. */
  let waiting = 0;

  const runOrDrop = async (line: Line<Job>, send: Send): Promise<void> => {
    if (shared.stopped) {
      send.drop();
      return;
    }
    const leftMs = elapsedMs();
    // The service accepted it and processes it in its own time, so its duration says nothing about a request.
    let hasYielded = false;
    line.running += 1;
    try {
      await send.run(async (wait) => {
        hasYielded = true;
        return yieldSlot(line, wait);
      });
    } finally {
      if (!hasYielded) line.window = windowAfter(line.window, leftMs, elapsedMs(), width);
      line.running -= 1;
    }
  };
  /** Whether a line without reserve may send. */
  const mayUseWidth = (): boolean =>
    reserve === 0 ||
    shared.stopped ||
    shared.lines.reduce((sum, one) => sum + (one.isReserved ? 0 : one.running), 0) < width;
  /** False while there are more lanes than the width allows. Dropping the rest needs no limit. */
  const mayGoOn = (): boolean => shared.stopped || lanesOpen <= lanes.concurrency;
  /** Sends until nothing may leave. */
  const lane = async (): Promise<void> => {
    while (mayGoOn()) {
      const line = nextLine(shared, mayUseWidth());
      const send = line?.ready.shift();
      if (line === undefined || send === undefined) break;
      waiter.wake();
      try {
        await runOrDrop(line, send);
      } catch (error) {
        onError(error);
      }
      shared.bytes -= send.bytes;
      line.bytes -= send.bytes;
      waiter.wake();
      open();
    }
    lanesOpen -= 1;
  };
  const open = (): void => {
    if (lanesOpen >= lanes.concurrency) return;
    let wanted = lanesOpen;
    const mayAll = mayUseWidth();
    for (const line of shared.lines) if (mayAll || line.isReserved) wanted += mayLeave(line, shared.stopped);
    for (wanted = Math.min(lanes.concurrency, wanted); lanesOpen < wanted; lanesOpen++)
      lanes.add(lane).catch(onError);
  };
  const setConcurrency = (): void => {
    lanes.concurrency = width + reserve + waiting;
    open();
  };
  const yieldSlot = async <T>(
    line: Line<Job>,
    wait: (waitsPerSlot: () => number) => Promise<T>,
  ): Promise<T> => {
    const count = (more: number): void => {
      line.running -= more;
      line.waiting += more;
      waiting += more;
      setConcurrency();
    };
    count(1);
    try {
      return await wait(() => Math.max(1, waiting / width));
    } finally {
      count(-1);
    }
  };
  return {
    open,
    setWidth: (next) => {
      width = next;
      setConcurrency();
    },
    idle: () => lanes.onIdle(),
  };
}

/** Returns how many more jobs of a line may leave; all, to drop the rest. */
function mayLeave(
  { ready, running, waiting, window }: Pick<Line<unknown>, "ready" | "running" | "waiting" | "window">,
  stopped: boolean,
): number {
  if (stopped) return ready.length();
  return waiting >= YIELDED_MAX ? 0 : Math.max(0, Math.min(ready.length(), window.size - running));
}

/** Returns the line with the fewest jobs in flight of those that may send; `all`: not only those with a reserve. */
function nextLine<Job>({ lines, stopped }: Shared<Job>, all: boolean): Line<Job> | undefined {
  let next: Line<Job> | undefined;
  for (const line of lines) {
    if (!all && !line.isReserved) continue;
    if ((next === undefined || line.running < next.running) && mayLeave(line, stopped) > 0) next = line;
  }
  return next;
}
