/** Time between measurements: quartz clocks drift apart by some milliseconds meanwhile. */
const INTERVAL_MS = 10 * 60_000;
/** A measurement that took longer says too little: the answer may be as old as it took. */
const ANSWER_MS_MAX = 1000;

/** The clock of the database, by which the processes of a store agree when a lease ends, however their own clocks differ. */
export interface SharedClock {
  /** The time by the database's clock, known from the last measurement. May go back by as much as that was wrong. */
  nowMs(this: void): number;
  /** Measures again. Never rejects. */
  measure(): Promise<void>;
  close(): void;
}

/** The clocks of this process. */
interface OwnClocks {
  readonly wall: () => number;
  readonly elapsed: () => number;
}

/**
 * Opens the clock with a first measurement. `readMs` asks the database. One that does not answer leaves the clock as it was, at first that
 * of the machine.
 */
export async function openSharedClock(
  readMs: () => Promise<number>,
  onProblem: (error: unknown) => void,
  { wall, elapsed }: OwnClocks = { wall: () => Date.now(), elapsed: () => performance.now() },
): Promise<SharedClock> {
  let aheadMs = 0;
  const measure = async (): Promise<void> => {
    try {
      const sentMs = elapsed();
      const databaseMs = await readMs();
      const tookMs = elapsed() - sentMs;
      if (tookMs <= ANSWER_MS_MAX) aheadMs = databaseMs + tookMs / 2 - wall();
    } catch (error) {
      onProblem(error);
    }
  };
  const timer = setInterval(() => void measure(), INTERVAL_MS).unref();
  await measure();
  return { nowMs: () => wall() + aheadMs, measure, close: () => clearInterval(timer) };
}
