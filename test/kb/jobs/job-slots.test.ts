import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { WaitLimitReached, openJobSlots, WAITING_MAX } from "../../../src/kb/jobs/job-slots.ts";

const MILLION = 1024 * 1024;

const never = Promise.withResolvers<void>().promise;

/** Starts documents of an account that wait at once, each with the given number of characters; counts what happens to them. */
async function startAll(slots: ReturnType<typeof openJobSlots>, held: readonly number[]) {
  const counts = { waiting: 0, keepingSlot: 0, rejected: 0, withoutSlot: 0 };
  for (const chars of held) {
    const slot = slots.take("account");
    if (slot === undefined) {
      counts.withoutSlot += 1;
      continue;
    }
    const outcome = await Promise.race([
      slot.whileWaiting(() => never, chars).catch((error: unknown) => error),
      setImmediate("running"),
    ]);
    if (outcome instanceof WaitLimitReached) {
      counts.rejected += 1;
      slot.leave();
    } else counts[slot.isWaiting() ? "waiting" : "keepingSlot"] += 1;
  }
  return counts;
}
const times = (count: number, chars: number): number[] => Array.from({ length: count }, () => chars);

it.each<[string, readonly number[], object]>([
  ["a few documents", [0, 1000, 0], { waiting: 3, keepingSlot: 0, rejected: 0 }],
  [
    "more documents than may wait",
    times(WAITING_MAX + 5, 0),
    { waiting: 675, keepingSlot: 0, rejected: 230 },
  ],
  ["more texts than may wait", times(WAITING_MAX + 5, 1), { waiting: 675, keepingSlot: 0, rejected: 230 }],
  ["documents with much text", times(60, MILLION), { waiting: 24, keepingSlot: 12, rejected: 24 }],
])("waiting documents leave slots to their account: %s", async (_name, held, counts) => {
  const slots = openJobSlots(() => undefined);
  expect(await startAll(slots, held)).toEqual({ ...counts, withoutSlot: 0 });
  expect(slots.take("account")).toBeDefined();
});

it("texts may wait however many scans of their account wait, and vice versa", async () => {
  const slots = openJobSlots(() => undefined);
  expect(await startAll(slots, times(700, 0))).toMatchObject({ waiting: 675 });
  expect(await startAll(slots, times(700, 1))).toMatchObject({ waiting: 675 });
});

it("files may be read however many scans of their account wait, and wait with these only for text recognition", async () => {
  const slots = openJobSlots(() => undefined);
  await startAll(slots, times(700, 0));
  const pdf = slots.take("account");
  expect(await pdf?.whileWaiting(() => Promise.resolve("read"), 0, "read")).toBe("read");
  const reservation = { kind: "file", keepsSlot: false };
  await expect(pdf?.whileWaiting(() => never, 1, "file")).rejects.toMatchObject({ reservation });
  pdf?.leave();
  // A file that went from one kind to the other leaves nothing behind.
  const again = openJobSlots(() => undefined);
  const both = again.take("account");
  await both?.whileWaiting(() => Promise.resolve(), 0, "read");
  await both?.whileWaiting(() => Promise.resolve(), 5, "file");
  both?.leave();
  expect(await startAll(again, times(700, 0))).toMatchObject({ waiting: 675 });
});

it("a document that may not wait restarts when it may, and holds its reservation until it ends", async () => {
  const slots = openJobSlots(() => undefined);
  const first = slots.take("account");
  const wait = Promise.withResolvers<void>();
  const waited = first?.whileWaiting(() => wait.promise, 0);
  await startAll(slots, times(674, 0));
  const reservation = { kind: "file", keepsSlot: false } as const;
  const refused = slots.take("account");
  await expect(refused?.whileWaiting(() => never, 0)).rejects.toMatchObject({ reservation });
  refused?.leave();
  const other = slots.take("other", reservation);
  expect([slots.take("account", reservation), other]).toEqual([undefined, expect.anything()]);
  other?.leave();
  wait.resolve();
  await waited;
  expect(slots.take("account", reservation)).toBeUndefined();
  first?.leave();
  const again = slots.take("account", reservation);
  expect(again).toBeDefined();
  // The wait uses the reservation and takes no second one.
  void again?.whileWaiting(() => never, 0);
  expect(again?.isWaiting()).toBe(true);
});

it("a document whose text exceeds the memory bound restarts when it may keep its slot", async () => {
  const slots = openJobSlots(() => undefined);
  const first = slots.take("account");
  await first?.whileWaiting(() => Promise.resolve(), 24 * MILLION);
  const keepers = Array.from({ length: 12 }, () => slots.take("account"));
  for (const each of keepers) void each?.whileWaiting(() => never, MILLION);
  expect(keepers.map((each) => each?.isWaiting())).toEqual(keepers.map(() => false));
  const reservation = { kind: "text", keepsSlot: true } as const;
  const refused = slots.take("account");
  await expect(refused?.whileWaiting(() => never, MILLION)).rejects.toMatchObject({ reservation });
  refused?.leave();
  expect(slots.take("account", reservation)).toBeUndefined();
  keepers[0]?.leave();
  expect(slots.take("account", reservation)).toBeDefined();
});

it("an account that takes all it can leaves slots to other accounts", () => {
  const slots = openJobSlots(() => undefined);
  while (slots.take("busy") !== undefined);
  expect(slots.isFull()).toBe(false);
  expect(slots.take("quiet")).toBeDefined();
});

it("a document gets its slot back even if its wait fails, and its time excludes its waits", async () => {
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
