import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import { queuesOf } from "../service/running.ts";
import { openReceiver, type Receiver } from "../webhooks/receiver.ts";
import { ask, openAsking } from "./asking.ts";
import { withMethods } from "../store/with-methods.ts";

/** Generous, for a busy machine. */
const WAIT = { timeout: 60_000, interval: 20 };
const HOUR_MS = 60 * 60 * 1000;
/** Longest backoff of a question. */
const LONGEST_MS = 10 * 60 * 1000;
/** A condition that must hold in the end; a check may come before an attempt was postponed. */
const until = (check: () => Promise<void>): Promise<void> => vi.waitFor(check, WAIT);

let receiver: Receiver;
beforeAll(async () => {
  receiver = await openReceiver();
});
afterAll(() => receiver.close());

/** A service whose store has no room for the answers to the questions of one path. */
async function openFull(path: string, { renews }: { readonly renews: boolean }) {
  const noRoom = (): never => {
    throw new KbsyncError("no space is left for the store: /secret/place", { code: "disk_full" });
  };
  const url = receiver.url + path;
  let nowMs = Date.now();
  let others = 0;
  const disk = { isFull: true, tries: 0 };
  const wrapStore = (store: Store): Store =>
    withMethods(store, {
      records: {
        addTurn: async (turn) => {
          const isOurs = JSON.stringify(turn.delivery?.to).includes(`"${url}"`);
          const isFailure = turn.delivery?.body.startsWith('{"success":false') === true;
          if (!disk.isFull || !isOurs || isFailure) return store.records.addTurn(turn);
          disk.tries += 1;
          return noRoom();
        },
      },
      queue: { renew: async (renewal) => (renews ? store.queue.renew(renewal) : noRoom()) },
    });
  const running = await openAsking(undefined, {}, { wrapStore, nowMs: () => nowMs });
  const reported = (of: string) =>
    receiver.messages.filter((each) => each.path === of).map(({ json }) => json);
  expect((await ask(running, { user: "Hello", webhook: { url } })).status).toBe(202);
  await vi.waitFor(() => expect(disk.tries).toBe(1), WAIT);
  return {
    running,
    disk,
    reported: () => reported(path),
    /** Lets so much time go by, and another question be answered meanwhile, which wakes the queue. */
    later: async (ms: number) => {
      nowMs += ms;
      others += 1;
      const other = `${path}/other/${others}`;
      await ask(running, { user: "Hello", webhook: { url: receiver.url + other } });
      await vi.waitFor(() => expect(reported(other)).toMatchObject([{ success: true }]), WAIT);
    },
  };
}

describe("a question that finds the disk full", { timeout: 120_000 }, () => {
  it.each([
    ["a disk on which the job can still be marked as not working", "/room", true],
    ["a disk so full that not even this mark can be written", "/no-note", false],
  ])(
    "a question that finds the disk full waits, delays no other, and is answered once there is space: %s",
    async (_name, path, renews) => {
      const { running, disk, reported, later } = await openFull(path, { renews });
      try {
        // More often than a job that crashes its process may restart.
        await until(async () => {
          await later(LONGEST_MS);
          expect(disk.tries).toBeGreaterThan(4);
        });
        expect(reported()).toEqual([]);
        disk.isFull = false;
        await until(async () => {
          await later(LONGEST_MS);
          expect(reported()).toMatchObject([{ success: true }]);
        });
        expect(running.log().match(/wait because the disk is full/g)).toHaveLength(1);
      } finally {
        await running.close();
      }
    },
  );

  it("a question that finds the disk full is not retried at once", async () => {
    const { running, disk, later } = await openFull("/at-once", { renews: true });
    try {
      await later(1000);
      await later(1000);
      expect(disk.tries).toBe(1);
    } finally {
      await running.close();
    }
  });

  it("a question that finds the disk full is retried on time after the clock is set back", async () => {
    const { running, disk, reported, later } = await openFull("/set-back", { renews: true });
    try {
      await vi.waitFor(() => expect(running.log()).toContain("wait because the disk is full"), WAIT);
      disk.isFull = false;
      await later(-2 * HOUR_MS);
      await later(LONGEST_MS);
      await vi.waitFor(() => expect(reported()).toMatchObject([{ success: true }]), WAIT);
    } finally {
      await running.close();
    }
  });

  it("a question that finds the disk full for a day fails with the message of a direct answer", async () => {
    const { running, reported, later } = await openFull("/day", { renews: true });
    try {
      await vi.waitFor(() => expect(running.log()).toContain("wait because the disk is full"), WAIT);
      expect(reported()).toEqual([]);
      const waiting = { waiting: 1, oldestAt: expect.stringMatching(/Z$/), failed: 0 };
      expect((await queuesOf(running)).questions).toEqual(waiting);
      await later(24 * HOUR_MS);
      await vi.waitFor(() => expect(reported()).toHaveLength(1), WAIT);
      expect(reported()).toMatchObject([{ success: false, error: { code: "disk_full" } }]);
      expect(JSON.stringify(reported())).not.toContain("secret");
      const over = { waiting: 0, oldestAt: null, failed: 1 };
      expect((await queuesOf(running)).questions).toEqual(over);
    } finally {
      await running.close();
    }
  });
});
