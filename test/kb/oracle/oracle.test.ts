import { describe, expect, it } from "vitest";
import { wholeNumberOf } from "../../crash/chance.ts";
import { runHistory } from "./run.ts";
import { randomRuns } from "../../random-runs.ts";

/** Clients' choices follow from it, but not how their requests overtake each other: a failure may need some tries. */
const SEED = wholeNumberOf("KBSYNC_ORACLE_SEED", Math.floor(Math.random() * 2 ** 31));

describe("a search after changes side by side", () => {
  it(`finds exactly what the texts say, across restarts and a change of model (KBSYNC_ORACLE_SEED=${SEED})`, async () => {
    await expect(
      runHistory(SEED, { workers: 4, steps: randomRuns(10), queries: 2 }),
    ).resolves.toBeUndefined();
  }, 120_000);
});
