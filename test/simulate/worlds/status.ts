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
    name: "asked-to-wait",
    does: "somebody waits for agreement again and again",
    share: 0.3,
    passes: true,
    change: (random, history) =>
      withConditions(history, { waitEveryMs: random.pick([30_000, 100_000, 300_000]) }),
  },
];
