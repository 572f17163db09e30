import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { prepareDeliveryQueue } from "../../../../../src/kb/store/sqlite/queue/delivery-queue.ts";
import { defineFunctions, SCHEMA } from "../../../../../src/kb/store/sqlite/database/schema.ts";

it("bounds the waiting messages to an account's own addresses without affecting other accounts", () => {
  const db = new Database(":memory:");
  defineFunctions(db);
  try {
    for (const step of SCHEMA.scripts) db.exec(step);
    // This test needs no rows of accounts.
    db.pragma("foreign_keys = OFF");
    db.exec(`
      WITH RECURSIVE many (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM many WHERE at < 20000)
      INSERT INTO job (queue, account_id, line, name, due_ms, created_ms, body)
      SELECT 'webhook', 'full', 'full ' || at || '.example', 'msg_' || at, 0, 0, '{}' FROM many`);
    const queue = prepareDeliveryQueue(db);
    const target = { url: "http://a.example/", secrets: [], headers: {} };
    for (const accountId of ["full", "other"]) {
      const eventId = `msg_of_${accountId}`;
      queue.add({ accountId, eventId, type: "chat.completion", body: "{}", to: { target }, nowMs: 1 });
    }
    const states = db
      .prepare("SELECT account_id, is_dead, problem FROM job WHERE name LIKE 'msg_of_%'")
      .all();
    expect(states).toEqual([
      { account_id: "full", is_dead: 1, problem: expect.stringContaining("more than 20000 deliveries") },
      { account_id: "other", is_dead: 0, problem: null },
    ]);
  } finally {
    db.close();
  }
});
