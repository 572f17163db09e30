import { afterAll, beforeAll, expect, it } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { onCommit, onDamage, type Topic } from "../../../src/kb/store/methods.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import { withMethods } from "./with-methods.ts";

let store: Store;
let accountId: string;
beforeAll(async () => {
  store = await openSqliteStore();
  ({ id: accountId } = await store.records.ensureAccount("local"));
});
afterAll(() => store.close());

it("notifies of a write that put a job, of no other write, and of none that failed", async () => {
  const received: [Topic, string][] = [];
  const { records } = onCommit(store, (...notice) => received.push(notice));
  const job = { accountId, line: "a", name: "a", body: "{}", nowMs: 0, jobsMax: 2 };
  await records.addQuestion({ ...job, queue: "chat" });
  expect(received).toEqual([["chat", accountId]]);
  await records.ensureAccount("another");
  await records.collections(accountId);
  await expect(records.addQuestion({ ...job, queue: "chat", jobsMax: 1 })).rejects.toMatchObject({
    code: "queue_full",
  });
  expect(received).toEqual([["chat", accountId]]);
});

it("reports damage that any method of any port finds, once, and still rejects", async () => {
  const damage = new KbsyncError("unreadable", { code: "store_damaged" });
  const fails = async (): Promise<never> => Promise.reject(damage);
  const broken = withMethods(store, {
    records: { collections: fails, owners: () => Promise.reject(new Error("busy")) },
    queue: { nextDueMs: fails },
  });
  const reported: unknown[] = [];
  const { records, queue } = onDamage(broken, (failure) => reported.push(failure));
  await expect(records.owners({ accountId, after: undefined, limit: 1 })).rejects.toThrow("busy");
  expect(reported).toEqual([]);
  await expect(queue.nextDueMs("chat", 0)).rejects.toBe(damage);
  await expect(records.collections(accountId)).rejects.toBe(damage);
  expect(reported).toEqual([damage]);
});
