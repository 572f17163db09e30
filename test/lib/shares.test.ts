import * as fc from "fast-check";
import { expect, it } from "vitest";
import { openShares } from "../../src/lib/shares.ts";

it("never gives several accounts more than the total, and leaves something for a new account", () => {
  const step = fc.record({
    account: fc.constantFrom("a", "b", "c"),
    amount: fc.integer({ min: 1, max: 400 }),
    gives: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const shares = openShares(1000);
      const held = new Map<string, number>();
      for (const { account, amount, gives } of steps) {
        const own = held.get(account) ?? 0;
        if (gives) {
          const given = Math.min(own, amount);
          shares.give(account, given);
          held.set(account, own - given);
        } else if (shares.take(account, amount)) held.set(account, own + amount);
      }
      const total = [...held.values()].reduce((sum, own) => sum + own, 0);
      expect(shares.held()).toBe(total);
      expect(total).toBeLessThanOrEqual(1000);
      // Each of the three left at least a quarter of what it found, within one unit.
      const asked = total < 1000 - 4 ** 3 ? Math.max(1, Math.floor((1000 - total) / 4)) : 0;
      expect(asked === 0 || shares.take("new", asked)).toBe(true);
    }),
  );
});

it("gives a single account any amount", () => {
  const shares = openShares(10);
  expect(shares.take("a", 100)).toBe(true);
  expect(shares.take("b", 1)).toBe(false);
  shares.give("a", 100);
  expect(shares.take("b", 1)).toBe(true);
});
