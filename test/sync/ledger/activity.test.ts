import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Activity, type ActivityLog, openActivity } from "../../../src/sync/ledger/activity.ts";
import { SCHEMA } from "../../../src/sync/ledger/database/schema.ts";

let db: Database.Database;
let log: ActivityLog;
beforeEach(() => {
  db = new Database(":memory:");
  for (const step of SCHEMA.scripts) db.exec(step);
  db.pragma("foreign_keys = off");
  log = openActivity(db);
});
afterEach(() => db.close());

const activity = (path: string, more: Partial<Activity> = {}): Activity => ({
  atMs: 1,
  source: 1,
  path,
  from: undefined,
  docId: undefined,
  action: "create",
  outcome: "done",
  durationMs: 2,
  message: undefined,
  ...more,
});

it("the activity log returns entries as recorded, newest first", () => {
  const moved = activity("b", { from: "a", docId: "doc", action: "move", message: "words" });
  log.add(activity("a"));
  log.add(moved);
  expect(log.recent(10)).toEqual([moved, activity("a")]);
  expect(log.recent(1)).toEqual([moved]);
});

it("finds activity below a folder, including what moved out of it, and none of its neighbours", () => {
  for (const path of ["d", "d/a", "d0", "d-", "e"]) log.add(activity(path));
  log.add(activity("f", { from: "d/b" }));
  log.add(activity("d/a", { source: 2 }));
  expect(log.recent(10, { source: 1, below: "d" }).map(({ path }) => path)).toEqual(["f", "d/a", "d"]);
  expect(log.recent(3, { source: 1 }).map(({ path }) => path)).toEqual(["f", "e", "d-"]);
});

it("retains the newest ten thousand entries, and more until the next thousand", () => {
  db.transaction(() => {
    for (let count = 1; count <= 12_000; count += 1) log.add(activity(String(count)));
  })();
  const left = log.recent(20_000).map(({ path }) => Number(path));
  expect([left.length, left[0], left.at(-1)]).toEqual([10_000, 12_000, 2001]);
  log.add(activity("one more"));
  expect(log.recent(20_000)).toHaveLength(10_001);
});
