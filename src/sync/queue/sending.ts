import PQueue from "p-queue";
import { windowAfter } from "../plan/window.ts";
import { hold, type Line, type Send, type Shared, type WorkQueueOptions } from "./lines.ts";
import { chooseNext, NONE_PASSED_OVER, RECENT } from "./order.ts";

/** Slots that the backlog leaves to recent changes, which do not wait for slow answers; at most a quarter of the width. */
const RECENT_SLOTS = 2;
/**
 * Jobs of a line that may wait without a slot. When so many do, the line's next ones wait for them: more would only
 * wait at the service, before what others send. When waits end, there are more jobs than the width until as many others
 * have ended. The number of connections stays the same.
 */
const YIELDED_MAX = 200;

/** Sends what is ready. */
interface Sending {
  /** Sends as much as the width allows. */
  begin(this: void): void;
  /** Called when the width has changed. */
  setConcurrency(this: void): void;
  /** Resolves when nothing is in flight. */
  idle(this: void): Promise<void>;
}

/** Opens the tasks of a queue. `onEnd` is called at the end of each, and when one needs no slot any more. */
export function openSending<Job>(
  { onError, reserve = 0, elapsedMs = () => performance.now() }: WorkQueueOptions<Job>,
  shared: Shared<Job>,
  onEnd: () => void,
): Sending {
  const slots = new PQueue({ concurrency: shared.width + reserve });
  let passedOver = NONE_PASSED_OVER;
  /** Jobs in flight, and jobs that wait without a slot. */
  let running = 0;
  let waiting = 0;

  const slotsFor = ({ rank, kind }: Line<Job>): number => {
    const { width } = shared;
    if (kind === "delete") return width + reserve;
    return rank === RECENT ? width : width - Math.min(RECENT_SLOTS, Math.floor(width / 4));
  };
  const maySend = (line: Line<Job>): boolean =>
    line.ready.length > 0 &&
    line.waiting < YIELDED_MAX &&
    line.running < line.window.size &&
    running < slotsFor(line);
  const countRunning = (line: Line<Job>, more: number): void => {
    line.running += more;
    line.load.running += more;
    running += more;
  };
  const setConcurrency = (): void => {
    slots.concurrency = shared.width + reserve + waiting;
    onEnd();
  };
  const yieldSlot = async <T>(
    line: Line<Job>,
    wait: (waitsPerSlot: () => number) => Promise<T>,
  ): Promise<T> => {
    const count = (more: number): void => {
      countRunning(line, -more);
      line.waiting += more;
      waiting += more;
      setConcurrency();
    };
    count(1);
    try {
      return await wait(() => Math.max(1, waiting / shared.width));
    } finally {
      count(-1);
    }
  };
  const run = async (line: Line<Job>, send: Send<Job>): Promise<void> => {
    const leftMs = elapsedMs();
    // The service accepted it and processes it in its own time, so its duration says nothing about a request.
    let hasYielded = false;
    try {
      await send.run(async (wait) => {
        hasYielded = true;
        return yieldSlot(line, wait);
      }, line.rank === RECENT);
    } catch (error) {
      onError(error);
    }
    if (!hasYielded) line.window = windowAfter(line.window, leftMs, elapsedMs(), shared.width);
    countRunning(line, -1);
    hold(shared, line, -send.bytes);
    onEnd();
  };
  const take = (): { readonly line: Line<Job>; readonly send: Send<Job> } | undefined => {
    if (shared.isStopped) return undefined;
    const contenders = shared.lines.filter(maySend).map((line) => ({
      line,
      rank: line.rank,
      load: line.load.running,
      seq: line.ready[0]?.seq ?? Infinity,
    }));
    const chosen = chooseNext(contenders, passedOver);
    const ready = chosen?.next.line.ready.shift();
    if (chosen === undefined || ready === undefined) return undefined;
    ({ passedOver } = chosen);
    const { line } = chosen.next;
    line.load.ahead -= 1;
    return { line, send: ready.send };
  };

  return {
    begin: () => {
      for (let next = take(); next !== undefined; next = take()) {
        const { line, send } = next;
        countRunning(line, 1);
        slots.add(() => run(line, send)).catch(onError);
      }
    },
    setConcurrency,
    idle: () => slots.onIdle(),
  };
}
