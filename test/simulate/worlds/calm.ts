import type { Conditions, Happening, History } from "../history.ts";
import type { Random } from "../virtual/random.ts";
import { MINUTE_MS, type UnkindWorld } from "./unkind-world.ts";

/** Worlds that take back what others drew: the judge forgives nothing in them. */
export const CALM_WORLDS: readonly UnkindWorld[] = [
  {
    name: "short-lists-after-a-loss",
    does: "a ledger is lost, lists are short when the next process begins, and files change soon after",
    share: 0.02,
    passes: true,
    change: drawShortLists,
  },
];

/** Nothing else happens: so few files can all be searched for, and none gets a second resource. */
function drawShortLists(random: Random, { seed, conditions: drawn }: History): History {
  const { pages, keys, settleMs, concurrency, slowDiskMs } = drawn;
  const conditions: Conditions = {
    collections: true,
    pages,
    keys,
    strictList: false,
    skewMs: 0,
    settleMs,
    concurrency,
    rescanMinutes: 60,
    requestTimeoutMs: 30_000,
    slowDiskMs,
    slowNetMs: 5,
    auditHours: 0,
    mode: "run",
    strangers: false,
    findsLost: true,
  };
  const paths = Array.from({ length: 2 + random.below(4) }, (_, index) => `n/${index}.txt`);
  const lostMs = MINUTE_MS;
  return {
    seed,
    conditions,
    happenings: [
      ...paths.map((path): Happening => ({ atMs: 0, kind: "write", path, text: `words of ${path}` })),
      { atMs: lostMs, kind: "write", path: "n/last.txt", text: "words before the loss" },
      { atMs: lostMs, kind: "storm", storm: "list-short", forMs: 20_000, share: 1, amount: 0 },
      { atMs: lostMs, kind: "crash", effects: 1, kept: "none", restMs: 1000, next: "run" },
      ...paths.map((path): Happening => {
        const atMs = lostMs + random.between(10_000, 2 * MINUTE_MS);
        return { atMs, kind: "write", path, text: `other words of ${path}` };
      }),
    ],
  };
}
