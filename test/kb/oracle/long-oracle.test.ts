import { describe, expect, it } from "vitest";
import { wholeNumberOf } from "../../crash/chance.ts";
import { runHistory } from "./run.ts";

const SEED = wholeNumberOf("KBSYNC_ORACLE_SEED", Math.floor(Math.random() * 2 ** 31));
/** So many histories, each with the next seed. Each run draws new ones; `npm run test:oracle` takes ten. */
const HISTORIES = wholeNumberOf("KBSYNC_ORACLE_HISTORIES", 1);
const SEEDS = Array.from({ length: HISTORIES }, (_, at) => SEED + at);

describe("a search after many changes side by side", () => {
  it.each(SEEDS)(
    "finds exactly what the texts say, across restarts and a change of model (KBSYNC_ORACLE_SEED=%i)",
    async (seed) => {
      await expect(runHistory(seed, { workers: 6, steps: 100, queries: 25 })).resolves.toBeUndefined();
    },
    // Half a minute on a machine at rest.
    600_000,
  );
});
