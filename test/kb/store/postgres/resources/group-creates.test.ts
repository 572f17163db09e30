import { Client } from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import type { RequestNote } from "../../../../../src/kb/store/request-note.ts";
import type { NewResource, Resource, ResourceJob } from "../../../../../src/kb/store/resources.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import { DEFAULT_SETTINGS } from "../../../../../src/wire/primitives.ts";
import { NOW, wordsOnly } from "../../store-fixture.ts";
import { isSkipped, newDatabase } from "../databases.ts";

/** Creates that wait at the same time; more than a group has. */
const MANY = 100;
/** Chunks of each text. */
const TEXT = "one apple\n\ntwo pears";

/** The failures of writes with their positions. */
function failuresOf(outcomes: readonly PromiseSettledResult<unknown>[]): { at: number; reason: unknown }[] {
  return outcomes.flatMap((outcome, at) =>
    outcome.status === "rejected" ? { at, reason: outcome.reason as unknown } : [],
  );
}

describe.skipIf(isSkipped())("creates that share a transaction", () => {
  let url: string;
  let stores: Store[];
  let side: Client;
  let accountId: string;
  let made = 0;
  beforeEach(async () => {
    url = await newDatabase();
    stores = [await openPostgresStore(url)];
    side = new Client({ connectionString: url });
    await side.connect();
    accountId = (await store().records.ensureAccount("tests")).id;
  });
  afterEach(async () => {
    await side.end();
    await Promise.all(stores.map((one) => one.close()));
  });

  const store = (at = 0): Store => stores[at] ?? expect.unreachable();
  const resource = (fields: Partial<NewResource> = {}): NewResource => ({
    accountId,
    id: (++made).toString(16).padStart(24, "0"),
    tier: "fastest",
    ownerId: "ann",
    origin: "content",
    title: `note ${made}`,
    description: "",
    url: null,
    content: TEXT,
    settings: DEFAULT_SETTINGS,
    createdAt: NOW,
    metadata: { number: made },
    ...fields,
  });
  const note = (key: string): RequestNote => ({
    key,
    bodySha256: "",
    status: 201,
    nowMs: Date.parse(NOW),
  });
  const create = (fields?: Partial<NewResource>, key?: string, at = 0): Promise<Resource> =>
    store(at).records.createResource(
      resource(fields),
      wordsOnly(TEXT),
      key === undefined ? undefined : { request: note(key) },
    );
  const times = <T>(count: number, of: (at: number) => T): T[] =>
    Array.from({ length: count }, (_, at) => of(at));
  const numbers = async (sql: string): Promise<number[]> =>
    (await side.query<{ n: string }>(sql)).rows.map(({ n }) => Number(n));
  /** What must hold whatever was written: counts, rows, and notes belong together. */
  const expectWhole = async (documents: number): Promise<void> => {
    expect(await numbers("SELECT count(*) AS n FROM resource")).toEqual([documents]);
    expect(await numbers("SELECT sum(resources) AS n FROM scope")).toEqual([documents]);
    expect(await numbers("SELECT count(*) AS n FROM chunk")).toEqual([documents * 2]);
    const [inScopes] = await numbers("SELECT sum(chunks) AS n FROM scope");
    expect(inScopes).toBe(documents * 2);
    expect(await numbers("SELECT sum(next_sequence) AS n FROM scope")).toEqual([documents * 2]);
    expect(await numbers("SELECT sum(words) AS n FROM chunk")).toEqual(
      await numbers("SELECT sum(words) AS n FROM scope"),
    );
    // The chunks of each resource are the rows that it names.
    const strangers = `SELECT count(*) AS n FROM resource FULL JOIN chunk ON chunk.account_id = resource.account_id
      AND chunk.row BETWEEN first_row AND first_row + chunks - 1 WHERE chunk.resource IS DISTINCT FROM resource.number`;
    expect(await numbers(strangers)).toEqual([0]);
  };
  const waitsForLock = async (): Promise<void> => {
    const waiting =
      "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    await expect.poll(async () => (await numbers(waiting))[0], { timeout: 20_000 }).toBeGreaterThan(0);
  };
  const kill = (state: string): Promise<unknown> =>
    side.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kbsync' AND datname = current_database() AND pid <> pg_backend_pid() AND ${state}`,
    );
  /** Makes each commit of a new resource wait, so that a test can end its connection. */
  const slowCommits = (condition: string): Promise<unknown> =>
    side.query(
      `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END';
      CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON resource DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (${condition}) EXECUTE FUNCTION slow()`,
    );

  it("a create waits for no other owner's scope", async () => {
    await create({ ownerId: "ann" });
    await side.query("BEGIN");
    await side.query("SELECT 1 FROM scope WHERE owner_id = 'ann' FOR UPDATE");
    const waiting = create({ ownerId: "ann" });
    await waitsForLock();
    const bob = await create({ ownerId: "bob" });
    await side.query("COMMIT");
    expect([(await waiting).ownerId, bob.ownerId]).toEqual(["ann", "bob"]);
    await expectWhole(3);
  });

  it("creates of an owner share transactions, and leave what creates one by one would", async () => {
    const created = await Promise.all(
      times(MANY, (at) => create({ ownerId: at % 3 === 0 ? "bob" : "ann" }, `key ${at}`)),
    );
    await expectWhole(MANY);
    const [transactions] = await numbers("SELECT count(DISTINCT xmin::text) AS n FROM resource");
    expect(transactions).toBeLessThanOrEqual(MANY / 10);
    for (const one of created) expect(await store().records.resource(one)).toEqual(one);
    expect(await store().records.recall(accountId, "key 7", Date.parse(NOW))).toMatchObject({
      status: 201,
      body: expect.stringContaining(created[7]?.id ?? "") as string,
    });
  });

  it("fails no create because of another one of its group", async () => {
    await create({}, "known");
    const outcomes = await Promise.allSettled([
      ...times(10, (at) => create({}, `before ${at}`)),
      create({}, "known"),
      create({}, "twice"),
      create({}, "twice"),
      create({ accountId: "missing" }),
      ...times(10, () => create()),
    ]);
    const failed = failuresOf(outcomes);
    // Of two with one key, either may come first.
    expect(failed.map(({ at }) => (at === 11 ? 12 : at))).toEqual([10, 12, 13]);
    expect(failed.map(({ reason }) => reason)).toMatchObject([
      { code: "request_noted" },
      { code: "request_noted" },
      { code: "no_account" },
    ]);
    await expectWhole(1 + 10 + 1 + 10);
  });

  it("admits as many queued creates of a group as the queue has room for", async () => {
    const job: ResourceJob = { body: '{"update":{}}', fileToken: null, nowMs: Date.parse(NOW), jobsMax: 8 };
    const queue = () => store().records.enqueueCreate(resource({ content: "" }), job);
    const outcomes = await Promise.allSettled(times(20, queue));
    const admitted = outcomes.filter(({ status }) => status === "fulfilled").length;
    // As many as one by one: an account leaves a share free.
    expect(admitted).toBe(6);
    for (const { reason } of failuresOf(outcomes)) expect(reason).toMatchObject({ code: "queue_full" });
    expect(await numbers("SELECT count(*) AS n FROM resource WHERE status = 'queued'")).toEqual([admitted]);
    expect(await numbers("SELECT sum(resources) AS n FROM scope")).toEqual([admitted]);
    expect(await numbers("SELECT count(*) AS n FROM job JOIN resource ON id = name")).toEqual([admitted]);
    await expect(queue()).rejects.toMatchObject({ code: "queue_full" });
  });

  it("writes a group once whose connection was lost before its commit", async () => {
    await create();
    const holder = new Client({ connectionString: url });
    await holder.connect();
    await holder.query("BEGIN");
    await holder.query("SELECT 1 FROM scope FOR UPDATE");
    const creating = Promise.all(times(20, (at) => create({}, `key ${at}`)));
    await waitsForLock();
    await kill("wait_event_type = 'Lock'");
    await waitsForLock();
    await holder.query("COMMIT");
    await holder.end();
    expect(await creating).toHaveLength(20);
    await expectWhole(21);
  });

  it("settles each create by its note if nobody knows whether the group was committed", async () => {
    await slowCommits("new.number = 20");
    const creates = times(20, (at) => create({}, `key ${at}`));
    const settling = Promise.allSettled(creates);
    const sleeping =
      "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    await expect.poll(async () => (await numbers(sleeping))[0], { timeout: 20_000 }).toBe(1);
    await kill("wait_event = 'PgSleep' AND datname = current_database()");
    const outcomes = await settling;
    const unknown = failuresOf(outcomes);
    expect(unknown.length).toBeGreaterThan(10);
    for (const { reason } of unknown)
      expect(reason).toMatchObject({
        code: "store_busy",
        hint: expect.stringContaining("Idempotency-Key") as string,
      });
    await side.query("DROP TRIGGER slow ON resource");
    await expectWhole(20 - unknown.length);
    await Promise.all(unknown.map(({ at }) => create({}, `key ${at}`)));
    await expectWhole(20);
  });

  it("creates of two processes with keys in common are written once each", async () => {
    stores.push(await openPostgresStore(url));
    const outcomes = await Promise.allSettled(
      times(2 * MANY, (at) =>
        create({ ownerId: ["ann", "bob", "eve"][at % 3] ?? "" }, `key ${at % MANY}`, at < MANY ? 0 : 1),
      ),
    );
    const failed = failuresOf(outcomes);
    expect(failed).toHaveLength(MANY);
    for (const { reason } of failed) expect(reason).toMatchObject({ code: "request_noted" });
    await expectWhole(MANY);
  });

  it("queues an event of each create of a group, in their order", async () => {
    await store().records.addEndpoint(
      {
        accountId,
        id: "hook",
        url: "https://example.org",
        description: "",
        events: [],
        secret: "whsec_x",
        enabled: true,
        nowIso: NOW,
      },
      5,
    );
    const created = await Promise.all(times(10, () => create()));
    const { rows } = await side.query<{ body: string }>(
      "SELECT body FROM job WHERE line = 'hook' ORDER BY number",
    );
    expect(rows.map(({ body }) => /_id\\":\\"(\w+)/.exec(body)?.[1])).toEqual(created.map(({ id }) => id));
  });
});
