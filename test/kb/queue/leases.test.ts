import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openLeases } from "../../../src/kb/queue/leases.ts";
import { LEASE_MS, type LeasedJob, type Queue } from "../../../src/kb/queue/queue.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const jobOf = (number: number): LeasedJob => ({
  number,
  token: 7,
  accountId: "a",
  ownerId: "",
  bodyBytes: 2,
  line: "",
  name: "",
  body: "{}",
  createdMs: 0,
  attempts: 0,
  changedMs: 0,
  crashes: 0,
});

it("renews held leases until they are dropped, with their working state, and hands jobs back at the close", async () => {
  const renewed: string[] = [];
  const released: string[] = [];
  const queue: Pick<Queue, "lease" | "renew" | "release"> = {
    lease: async ({ number }) => (number === 4 ? undefined : jobOf(number)),
    renew: async ({ leases, isWorking }) => {
      renewed.push(...leases.map(({ number, token }) => `${number}/${token} ${isWorking}`));
      return leases.map(({ number }) => number);
    },
    release: async (worker) => void released.push(worker),
  };
  const failures: unknown[] = [];
  const leases = openLeases({ ...queue } as Queue, "w", Date.now, (error) => failures.push(error)); // the leases call only these
  for (const number of [1, 2, 3]) await leases.take(number);
  expect(await leases.take(4)).toBeUndefined();
  leases.note(2, false);
  leases.drop(3);
  await vi.advanceTimersByTimeAsync(LEASE_MS / 2);
  expect(renewed.splice(0)).toEqual(["1/7 true", "2/7 false"]);
  await leases.setWorking(jobOf(1), false);
  expect(renewed.splice(0)).toEqual(["1/7 false"]);
  await leases.close();
  await vi.advanceTimersByTimeAsync(LEASE_MS);
  expect([renewed, released, failures]).toEqual([[], ["w"], []]);
});

it("renews a third of a lease's time after the last renewal, and reports a renewal that fails", async () => {
  const failure = new Error("busy");
  const failures: unknown[] = [];
  let renewals = 0;
  const queue: Pick<Queue, "lease" | "renew" | "release"> = {
    lease: async ({ number }) => jobOf(number),
    renew: async () => {
      renewals += 1;
      if (renewals === 2) throw failure;
      return [1];
    },
    release: async () => undefined,
  };
  const leases = openLeases({ ...queue } as Queue, "w", Date.now, (error) => failures.push(error)); // the leases call only these
  await vi.advanceTimersByTimeAsync(LEASE_MS);
  expect(renewals).toBe(0);
  await leases.take(1);
  await vi.advanceTimersByTimeAsync(LEASE_MS / 3 - 1);
  expect(renewals).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(renewals).toBe(1);
  await vi.advanceTimersByTimeAsync((2 * LEASE_MS) / 3);
  expect([renewals, failures]).toEqual([3, [failure]]);
  await leases.close();
});

it("waits for a job that it holds, and renews its lease no further if it does not get it again", async () => {
  let renewals = 0;
  const waits: unknown[] = [];
  const queue: Pick<Queue, "lease" | "renew" | "release"> = {
    lease: async ({ number, ...request }) => {
      waits.push(request.waits);
      return waits.length === 1 ? jobOf(number) : undefined;
    },
    renew: async () => {
      renewals += 1;
      return [];
    },
    release: async () => undefined,
  };
  const leases = openLeases({ ...queue } as Queue, "w", Date.now, () => undefined); // the leases call only these
  await leases.take(1);
  expect(await leases.take(1)).toBeUndefined();
  expect(waits).toEqual([false, true]);
  await vi.advanceTimersByTimeAsync(LEASE_MS);
  expect(renewals).toBe(0);
  await leases.close();
});

it("aborts a job's signal when a renewal, or a check, finds that its lease has ended", async () => {
  /** Jobs whose leases have ended, and the one that a transaction has locked. */
  const [ended, locked] = [new Set<number>(), 2];
  const queue: Pick<Queue, "lease" | "renew" | "release"> = {
    lease: async ({ number }) => ({ ...jobOf(number), name: `document ${number}` }),
    renew: async ({ leases, waits }) =>
      leases
        .map(({ number }) => number)
        .filter((number) => !ended.has(number) && (waits === true || number !== locked)),
    release: async () => undefined,
  };
  const leases = openLeases({ ...queue } as Queue, "w", Date.now, () => undefined); // the leases call only these
  const signals = new Map<number, AbortSignal>();
  for (const number of [1, 2, 3]) {
    await leases.take(number);
    signals.set(number, leases.signal(jobOf(number)));
  }
  const aborted = () => [...signals].flatMap(([number, signal]) => (signal.aborted ? [number] : []));
  ended.add(1);
  await vi.advanceTimersByTimeAsync(LEASE_MS / 3);
  expect(aborted()).toEqual([1]);
  expect(signals.get(1)?.reason).toMatchObject({ code: "lease_lost" });
  for (const key of ["a/document 2", "a/document 3"]) leases.recheck(key);
  await vi.advanceTimersByTimeAsync(0);
  expect(aborted()).toEqual([1]);
  ended.add(3);
  leases.recheck("a/document 3");
  await vi.advanceTimersByTimeAsync(0);
  expect(aborted()).toEqual([1, 3]);
  expect(leases.signal({ number: 2, token: 6 }).aborted).toBe(true);
  await leases.close();
});
