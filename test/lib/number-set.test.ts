import * as fc from "fast-check";
import { expect, it } from "vitest";
import { openNumberSet } from "../../src/lib/number-set.ts";

it("holds exactly the added numbers, however far apart", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(200_000)), fc.array(fc.nat(200_000)), (added, asked) => {
      const set = openNumberSet();
      for (const number of added) set.add(number);
      for (const number of [...added, ...asked]) expect(set.has(number)).toBe(added.includes(number));
    }),
  );
});
