import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, it } from "vitest";
import { prepareDeliveryQueue } from "../../../../../src/kb/store/sqlite/queue/delivery-queue.ts";
import { SCHEMA } from "../../../../../src/kb/store/sqlite/database/schema.ts";

const MAX = 20_000;
const NOW = "2026-01-01T00:00:00.000Z";

let db: Database.Database;
beforeEach(() => {
  db = new Database(":memory:");
  for (const step of SCHEMA.scripts) db.exec(step);
  // These tests need no rows of accounts.
  db.pragma("foreign_keys = OFF");
});
afterEach(() => {
  db.close();
});

/** Puts as many messages of the account `full` as may wait, or as are counted once given up. */
const fill = (line: string, isFailed = 0): void => {
  db.exec(`
    WITH RECURSIVE many (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM many WHERE at < ${MAX})
    INSERT INTO job (queue, account_id, line, name, is_failed, due_ms, created_ms, body)
    SELECT 'webhook', 'full', ${line}, 'filler_' || ${isFailed} || '_' || at, ${isFailed}, 0, 0, '{}' FROM many`);
};
const states = (): unknown[] =>
  db.prepare("SELECT account_id, is_failed FROM job WHERE name NOT LIKE 'filler_%' ORDER BY number").all();
const hasFiller = (name: string): boolean =>
  db.prepare("SELECT 1 FROM job WHERE name = ?").get(`filler_${name}`) !== undefined;

it("bounds the waiting messages to an account's own addresses without affecting other accounts", () => {
  fill("'full ' || at || '.example'");
  const queue = prepareDeliveryQueue(db);
  const target = { url: "http://a.example/", headers: {} };
  for (const accountId of ["full", "other"]) {
    const eventId = `msg_of_${accountId}`;
    queue.add({ accountId, eventId, type: "chat.completion", body: "{}", to: { target }, nowMs: 1 });
  }
  expect(states()).toEqual([
    { account_id: "full", is_failed: 1 },
    { account_id: "other", is_failed: 0 },
  ]);
});

it("bounds the waiting messages of an endpoint, and counts the one that does not fit instead of the oldest that was given up", () => {
  const endpoint = db.prepare(`
    INSERT INTO webhook_endpoint (id, account_id, url, description, events, secret, enabled, created_at, updated_at)
    VALUES (?, 'full', 'http://a.example/', '', '[]', '[]', 1, '${NOW}', '${NOW}')`);
  for (const id of ["one", "two"]) endpoint.run(id);
  fill("'one'");
  const queue = prepareDeliveryQueue(db);
  const add = (endpointId: string): void => {
    const to = { endpointId };
    queue.add({ accountId: "full", eventId: `msg_${endpointId}`, type: "chat", body: "{}", to, nowMs: 1 });
  };
  fill("'one'", 1);
  add("two");
  expect(hasFiller("1_1")).toBe(true);
  add("one");
  add("gone");
  expect(states()).toEqual([
    { account_id: "full", is_failed: 0 },
    { account_id: "full", is_failed: 1 },
  ]);
  expect([hasFiller("1_1"), hasFiller("1_2"), hasFiller("0_1")]).toEqual([false, true, true]);
});
