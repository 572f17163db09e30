import { expect, it } from "vitest";
import { openJobSlots, WAITING_MAX } from "../../../src/kb/resources/job-slots.ts";

const MILLION = 1024 * 1024;

/** How many documents of an account get a slot, given those that wait with so many characters each. */
function takeAll(held: readonly number[], accountId = "account"): { taken: number; freed: number } {
  let freed = 0;
  const slots = openJobSlots(() => (freed += 1));
  const { promise } = Promise.withResolvers<void>();
  let taken = 0;
  for (let slot = slots.take(accountId); slot !== undefined && taken < 2000; slot = slots.take(accountId)) {
    const chars = held[taken];
    taken += 1;
    if (chars !== undefined) void slot.whileWaiting(() => promise, chars);
  }
  return { taken, freed };
}

it.each<[string, readonly number[], number]>([
  ["none waits", [], 0],
  ["a few wait", [0, 1000, 0], 3],
  ["more wait than may", Array.from({ length: WAITING_MAX + 5 }, () => 0), 675],
  ["some hold much text", Array.from({ length: 60 }, () => MILLION), 24],
])("documents that wait hold no slot where %s", (_name, held, waiting) => {
  expect(takeAll(held)).toEqual({ taken: 24 + waiting, freed: waiting });
});

it("an account that takes all it can leaves slots to another one", () => {
  const slots = openJobSlots(() => undefined);
  while (slots.take("busy") !== undefined);
  expect(slots.isFull()).toBe(false);
  expect(slots.take("quiet")).toBeDefined();
});

it("a document takes its slot again whatever came of its wait, and its waits are not counted as its time", async () => {
  let nowMs = 0;
  const slots = openJobSlots(
    () => undefined,
    () => nowMs,
  );
  const slot = slots.take("account");
  nowMs = 10;
  const waited = slot?.whileWaiting(() => Promise.reject(new Error("no")), 0);
  expect(slot?.isWaiting()).toBe(true);
  nowMs = 1000;
  await expect(waited).rejects.toThrow("no");
  nowMs = 1005;
  expect([slot?.isWaiting(), slot?.heldMs()]).toEqual([false, 15]);
  slot?.leave();
});
