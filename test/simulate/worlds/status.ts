import { withConditions, type UnkindWorld } from "./unkind-world.ts";

/** Worlds in which somebody watches the daemon. */
export const STATUS_WORLDS: readonly UnkindWorld[] = [
  {
    name: "asked-for-status",
    does: "somebody asks for the status again and again, which must not say that all agrees when it does not",
    share: 0.3,
    passes: true,
    change: (random, history) => withConditions(history, { statusEveryMs: random.pick([500, 5000, 30_000]) }),
  },
  {
    name: "asked-for-receipts",
    does: "somebody asks how fresh an answer would be, and has some answers wait until they are",
    share: 0.3,
    passes: true,
    change: (random, history) =>
      withConditions(history, { receiptEveryMs: random.pick([3000, 10_000, 30_000]) }),
  },
];
