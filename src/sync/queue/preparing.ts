import { fillBatch, hasRoom, headOf, hold, type Line, type Shared, type WorkQueueOptions } from "./lines.ts";
import { chooseNext, NONE_PASSED_OVER, RECENT } from "./order.ts";

/** Prepares batches of jobs while there is room, one a turn of the loop. `onReady` is called after each. */
export function openPreparing<Job>(
  { bytesOf, prepare, onError }: WorkQueueOptions<Job>,
  shared: Shared<Job>,
  onReady: () => void,
): { begin(): void; ended(): Promise<unknown> } {
  const batches = new Set<Promise<void>>();
  let turn: NodeJS.Immediate | undefined;
  let passedOver = NONE_PASSED_OVER;

  /** Jobs of a line that are ready or nearly so. A flush to a busy disk takes tens of ms, in which they must not run out. */
  const aheadMax = (): number => 2 * shared.width;
  const mayPrepare = (line: Line<Job>): boolean => {
    const seq = headOf(line);
    if (seq === undefined || line.preparing + line.ready.length >= aheadMax()) return false;
    if (line.kind === "delete" && line.rank !== RECENT && isBehind(line, seq, shared.lines)) return false;
    return hasRoom(shared, line, fillBatch(line, aheadMax(), bytesOf).need);
  };
  const prepareBatch = async (line: Line<Job>): Promise<void> => {
    const { jobs, need, seq } = fillBatch(line, aheadMax(), bytesOf);
    line.batch = undefined;
    const count = (more: number): void => {
      line.preparing += more;
      line.load.ahead += more;
    };
    count(jobs.length);
    hold(shared, line, need);
    try {
      for (const send of await prepare(jobs)) {
        hold(shared, line, send.bytes);
        line.ready.push({ send, seq });
        line.load.ahead += 1;
      }
    } catch (error) {
      onError(error);
    }
    count(-jobs.length);
    hold(shared, line, -need);
    onReady();
  };
  const prepareNext = (): void => {
    turn = undefined;
    if (shared.isStopped) return;
    const contenders = shared.lines
      .filter(mayPrepare)
      .map((line) => ({ line, rank: line.rank, load: line.load.ahead, seq: headOf(line) ?? Infinity }));
    const chosen = chooseNext(contenders, passedOver);
    if (chosen === undefined) return;
    ({ passedOver } = chosen);
    const batch = prepareBatch(chosen.next.line).finally(() => batches.delete(batch));
    batches.add(batch);
    begin();
  };
  const begin = (): void => {
    if (turn === undefined && !shared.isStopped && shared.lines.some(mayPrepare))
      turn = setImmediate(prepareNext);
  };
  return { begin, ended: () => Promise.all(batches) };
}

/** Reports whether jobs of the line's owner that arrived earlier have yet to be prepared. */
function isBehind<Job>(line: Line<Job>, seq: number, lines: readonly Line<Job>[]): boolean {
  return lines.some((other) => other.owner === line.owner && (headOf(other) ?? Infinity) < seq);
}
