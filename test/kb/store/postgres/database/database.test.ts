import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { refusalAnswer } from "../../../../../src/kb/http/operation/status.ts";
import type { Transaction } from "../../../../../src/kb/store/postgres/database/connections.ts";
import { openDatabase, type Database } from "../../../../../src/kb/store/postgres/database/database.ts";
import { isSkipped, newCluster, newDatabase, query } from "../databases.ts";

const ADD = "UPDATE counter SET value = value + 1 WHERE name = @name";

describe.skipIf(isSkipped())("a database", () => {
  let url: string;
  let database: Database;
  beforeAll(async () => {
    url = await newDatabase();
    await query(
      url,
      "CREATE TABLE counter (name text PRIMARY KEY, value bigint NOT NULL)",
      "INSERT INTO counter VALUES ('a', 0), ('b', 0), ('c', 0), ('d', 0), ('large', 9007199254740993)",
    );
    database = openDatabase(url);
  });
  afterAll(() => database.close());

  const valueOf = async (name: string): Promise<number | undefined> =>
    (
      await database.run("single", "", (tx) =>
        tx.get<{ value: number }>("SELECT value FROM counter WHERE name = @name", { name }),
      )
    )?.value;
  // Of this database alone: other tests use the server at the same time.
  const kill = (): Promise<void> =>
    query(
      url,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kbsync' AND datname = current_database()",
    );

  it("runs a transaction again that lost against another one", async () => {
    let runs = 0;
    const bothHoldOne = Promise.withResolvers<void>();
    let holding = 0;
    const addBoth = (first: string, second: string) => async (tx: Transaction) => {
      runs += 1;
      await tx.run(ADD, { name: first });
      if (++holding === 2) bothHoldOne.resolve();
      await bothHoldOne.promise;
      await tx.run(ADD, { name: second });
    };
    await Promise.all([
      database.run("write", "", addBoth("a", "b")),
      database.run("write", "", addBoth("b", "a")),
    ]);
    expect(runs).toBeGreaterThan(2);
    expect([await valueOf("a"), await valueOf("b")]).toEqual([2, 2]);
  });

  it("runs a transaction again whose connection was lost before its commit", async () => {
    let runs = 0;
    await database.run("write", "", async (tx) => {
      await tx.run(ADD, { name: "c" });
      if (++runs > 1) return;
      await kill();
      // It finds out before the commit, of which the outcome would be unknown.
      await tx.run(ADD, { name: "c" });
    });
    expect(runs).toBe(2);
    expect(await valueOf("c")).toBe(1);
  });

  it("reports that the database does not answer, not the unknown outcome of a commit, when a commit is the first to find out", async () => {
    await query(
      url,
      "CREATE TABLE fatal (name text)",
      "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'",
      "CREATE CONSTRAINT TRIGGER fatal AFTER INSERT ON fatal DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()",
    );
    const reported: string[] = [];
    const watched = openDatabase(url, {
      onAway: ({ message }) => reported.push(message),
      onBack: () => reported.push("back"),
    });
    const insert = watched.run("write", "", (tx) => tx.run("INSERT INTO fatal VALUES ('a')"));
    await expect(insert).rejects.toThrow("during a commit, which may have succeeded");
    expect(watched.problem()?.message).toContain("the database does not answer");
    await watched.run("single", "", (tx) => tx.get("SELECT 1 AS one"));
    expect(reported).toEqual([expect.stringContaining("the database does not answer"), "back"]);
    await watched.close();
  });

  it("fails with the first of several statements sent at once, writes none of them, and goes on with the connection", async () => {
    const before = await valueOf("a");
    const failing = database.run("write", "", (tx) =>
      Promise.all([
        tx.run(ADD, { name: "a" }),
        tx.run("INSERT INTO counter VALUES ('a', 0)"),
        tx.run("SELECT 1 / 0"),
        tx.run(ADD, { name: "b" }),
      ]),
    );
    await expect(failing).rejects.toMatchObject({ code: "conflict" });
    expect(await valueOf("a")).toBe(before);
    await Promise.all(
      Array.from({ length: 20 }, () => database.run("write", "", (tx) => tx.run(ADD, { name: "a" }))),
    );
    expect(await valueOf("a")).toBe((before ?? 0) + 20);
  });

  it("carries out no statement of a transaction that has ended", async () => {
    const before = await valueOf("a");
    const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
    let late: Promise<unknown> | undefined;
    const failing = database.run("write", "", (tx) => {
      late = isOver.then(() => tx.run(ADD, { name: "a" }));
      return Promise.all([late, tx.run("SELECT 1 / 0")]);
    });
    await expect(failing).rejects.toMatchObject({ code: "store_failed" });
    end();
    await expect(late).rejects.toThrow("the transaction has ended");
    expect(await valueOf("a")).toBe(before);
  });

  it("reports a transaction as failed in which a failure was overlooked", async () => {
    const before = await valueOf("a");
    const failing = database.run("write", "", async (tx) => {
      await tx.run(ADD, { name: "a" });
      await tx.run("SELECT 1 / 0").catch(() => undefined);
    });
    await expect(failing).rejects.toMatchObject({ code: "store_failed" });
    expect(await valueOf("a")).toBe(before);
  });

  it("does not run a transaction again whose connection was lost during its commit, and answers 503", async () => {
    await query(
      url,
      `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_sleep(30); RETURN NULL; END'`,
      `CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON counter DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (new.name = 'd') EXECUTE FUNCTION slow()`,
    );
    let runs = 0;
    const writing = database.run("write", "", async (tx) => {
      runs += 1;
      await tx.run(ADD, { name: "d" });
    });
    const failure = writing.catch((error: unknown) => error);
    await expect
      .poll(async () => {
        const found = await database.run("single", "", (tx) =>
          tx.get<{ n: number }>(
            "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()",
          ),
        );
        return found?.n;
      })
      .toBe(1);
    await kill();
    expect(await failure).toMatchObject({ code: "store_busy", retryable: true });
    expect(runs).toBe(1);
    const answer = refusalAnswer(await failure);
    expect(answer).toMatchObject({
      status: 503,
      retryAfterSeconds: 1,
      body: { error: { code: "store_busy" } },
    });
    expect(answer.body.message).not.toContain("test_");
  });

  it("refuses an integer that a number cannot hold", async () => {
    await expect(valueOf("large")).rejects.toMatchObject({ code: "store_failed" });
  });

  it("a database is busy while its server is stopped, and works again afterwards", async () => {
    const cluster = newCluster();
    const own = openDatabase(cluster.url("postgres"));
    const one = () => own.run("snapshot", "", (tx) => tx.get<{ one: number }>("SELECT 1 AS one"));
    try {
      expect(await one()).toEqual({ one: 1 });
      cluster.stop("immediate");
      await expect(one()).rejects.toMatchObject({ code: "store_busy", retryable: true });
      expect(own.problem()).toMatchObject({ code: "store_busy" });
      cluster.start();
      expect(await one()).toEqual({ one: 1 });
      expect(own.problem()).toBeUndefined();
    } finally {
      await own.close();
      await cluster.remove();
    }
  });
});
