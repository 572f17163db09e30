import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { NoPlaceToWait, openJobSlots, WAITING_MAX } from "../../../src/kb/jobs/job-slots.ts";

const MILLION = 1024 * 1024;

const never = Promise.withResolvers<void>().promise;

/** Lets documents of an account begin that wait at once with so many characters each; what became of them. */
async function beginAll(slots: ReturnType<typeof openJobSlots>, held: readonly number[]) {
  const counts = { waiting: 0, keeping: 0, sentBack: 0, without: 0 };
  for (const chars of held) {
    const slot = slots.take("account");
    if (slot === undefined) {
      counts.without += 1;
      continue;
    }
    const outcome = await Promise.race([
      slot.whileWaiting(() => never, chars).catch((error: unknown) => error),
      setImmediate("under way"),
    ]);
    if (outcome instanceof NoPlaceToWait) {
      counts.sentBack += 1;
      slot.leave();
    } else counts[slot.isWaiting() ? "waiting" : "keeping"] += 1;
  }
  return counts;
}
const times = (count: number, chars: number): number[] => Array.from({ length: count }, () => chars);

it.each<[string, readonly number[], object]>([
  ["a few", [0, 1000, 0], { waiting: 3, keeping: 0, sentBack: 0 }],
  ["more than may", times(WAITING_MAX + 5, 0), { waiting: 675, keeping: 0, sentBack: 230 }],
  ["more texts than may", times(WAITING_MAX + 5, 1), { waiting: 675, keeping: 0, sentBack: 230 }],
  ["those with much text", times(60, MILLION), { waiting: 24, keeping: 12, sentBack: 24 }],
])("an account's documents that wait leave it slots: %s", async (_name, held, counts) => {
  const slots = openJobSlots(() => undefined);
  expect(await beginAll(slots, held)).toEqual({ ...counts, without: 0 });
  expect(slots.take("account")).toBeDefined();
});

it("texts find places to wait however many scans of their account wait, and the other way round", async () => {
  const slots = openJobSlots(() => undefined);
  expect(await beginAll(slots, times(700, 0))).toMatchObject({ waiting: 675 });
  expect(await beginAll(slots, times(700, 1))).toMatchObject({ waiting: 675 });
});

it("a document that found no place begins anew when there is one, and keeps it to its end", async () => {
  const slots = openJobSlots(() => undefined);
  const first = slots.take("account");
  const wait = Promise.withResolvers<void>();
  const waited = first?.whileWaiting(() => wait.promise, 0);
  await beginAll(slots, times(674, 0));
  const need = { kind: "file", keepsSlot: false } as const;
  const refused = slots.take("account");
  await expect(refused?.whileWaiting(() => never, 0)).rejects.toMatchObject({ need });
  refused?.leave();
  const other = slots.take("other", need);
  expect([slots.take("account", need), other]).toEqual([undefined, expect.anything()]);
  other?.leave();
  wait.resolve();
  await waited;
  expect(slots.take("account", need)).toBeUndefined();
  first?.leave();
  const again = slots.take("account", need);
  expect(again).toBeDefined();
  // Its place is not taken a second time.
  void again?.whileWaiting(() => never, 0);
  expect(again?.isWaiting()).toBe(true);
});

it("a document whose text finds no room in memory begins anew when it may keep its slot", async () => {
  const slots = openJobSlots(() => undefined);
  const first = slots.take("account");
  await first?.whileWaiting(() => Promise.resolve(), 24 * MILLION);
  const keepers = Array.from({ length: 12 }, () => slots.take("account"));
  for (const each of keepers) void each?.whileWaiting(() => never, MILLION);
  expect(keepers.map((each) => each?.isWaiting())).toEqual(keepers.map(() => false));
  const need = { kind: "text", keepsSlot: true } as const;
  const refused = slots.take("account");
  await expect(refused?.whileWaiting(() => never, MILLION)).rejects.toMatchObject({ need });
  refused?.leave();
  expect(slots.take("account", need)).toBeUndefined();
  keepers[0]?.leave();
  expect(slots.take("account", need)).toBeDefined();
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
