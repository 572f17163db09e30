import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent } from "undici";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { openLeases } from "../../../src/kb/queue/leases.ts";
import { openDeliveryRunner } from "../../../src/kb/webhooks/delivery-runner.ts";
import { createBody, fileForm, openRunning } from "../service/running.ts";
import type { Answered, Running, Sent } from "../service/running.ts";
import { openReceiver, signedBy, type Received, type Receiver } from "./receiver.ts";

const WAIT = { timeout: 10_000, interval: 20 };
const HOUR_MS = 60 * 60 * 1000;
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

let running: Running;
let receiver: Receiver;
let nowMs = Date.now();
let admin: string;
let accounts = 0;
beforeAll(async () => {
  running = await openRunning({ nowMs: () => nowMs, webhookAllow: ["127.0.0.1", "localhost"] });
});
afterAll(() => running.close());
beforeEach(async () => {
  receiver = await openReceiver();
  admin = await running.issueKey(`webhooks ${++accounts}`, ["admin"]);
});
afterEach(() => receiver.close());

const send = (method: string, path: string, sent: Sent = {}): Promise<Answered> =>
  running.send(method, path, { key: admin, ...sent });
const register = (change: object = {}): Promise<Answered> =>
  send("POST", "/v1/webhooks", { body: { url: `${receiver.url}/hook`, ...change } });
const create = (change: object = {}): Promise<Answered> =>
  send("POST", "/api/rag/resource", { body: createBody(change) });
const messages = (count: number): Promise<readonly Received[]> =>
  vi.waitFor(() => {
    expect(receiver.messages.length).toBeGreaterThanOrEqual(count);
    return receiver.messages;
  }, WAIT);
const endpoint = async (): Promise<Record<string, unknown>> =>
  (await send("GET", "/v1/webhooks")).json.data.endpoints[0];
/** Wakes the delivery runner, as any write does. */
const wake = (): Promise<Answered> => create({ owner_id: "wake" });

describe("events", () => {
  it("sends signed events for chunked, changed and deleted resources", async () => {
    const { json } = await register({ secret: SECRET });
    expect(json.data).toMatchObject({ events: [], enabled: true, secret: SECRET });
    const made = await create({ title: "Tides" });
    const id = made.json.data._id;
    await messages(1);
    await send("PUT", `/api/rag/resource/${id}`, { body: { content: "New words." } });
    await messages(2);
    await send("PUT", `/api/rag/resource/${id}`, { body: { title: "Only a title" } });
    await send("DELETE", `/api/rag/resource/${id}`);
    const got = await messages(3);
    expect(got.map((each) => [each.json.type, each.json.data._id, each.json.data.version])).toEqual([
      ["resource.chunked", id, 1],
      ["resource.chunked", id, 2],
      ["resource.deleted", id, 2],
    ]);
    expect(got[0]?.json.data).toMatchObject({ title: "Tides", status: "chunked", chunks: 1 });
    expect(got[0]?.headers["content-type"]).toBe("application/json");
    expect(new Set(got.map((each) => each.id)).size).toBe(3);
    for (const each of got) expect(signedBy(each, [SECRET])).toEqual([SECRET]);
  });

  it("sends the reason why a document failed", async () => {
    await register({ events: ["resource.error"] });
    const form = fileForm("%PDF-1.4 broken", "broken.pdf");
    const { file_url: url } = (await send("POST", "/image/processing/upload", { body: form })).json;
    const body = createBody({ content: undefined, url });
    const made = await send("POST", "/api/rag/resource", { body, headers: { prefer: "respond-async" } });
    const [message] = await messages(1);
    expect(message?.json).toMatchObject({
      type: "resource.error",
      data: { _id: made.json.data._id, status: "error", message: expect.stringContaining("PDF") },
    });
  });

  it("sends events only to subscribed endpoints of the account", async () => {
    await register({ events: ["resource.deleted"] });
    const { json } = await create();
    await running.send("POST", "/api/rag/resource", { body: createBody() });
    await send("DELETE", `/api/rag/resource/${json.data._id}`);
    await messages(1);
    expect(receiver.messages.map((each) => each.json.type)).toEqual(["resource.deleted"]);
  });
});

describe("an endpoint that names resource.updated", () => {
  it("gets a change of title, metadata or a description's marker alone, once a change", async () => {
    await register({ events: ["resource.updated"] });
    const { json } = await create({ title: "Tides" });
    const put = (body: object) => send("PUT", `/api/rag/resource/${json.data._id}`, { body });
    await put({ title: "Ebb" });
    await put({ content: "New words." });
    await put({ metadata: { path: "moved/tides.md" } });
    await put({ description: "[kb:docs7q2x.7f3k2mqx4ab5.h2k4m7p6qa2c.x7f2k5wd]" });
    const got = await messages(3);
    expect(got.map((each) => [each.json.type, each.json.data.title, each.json.data.version])).toEqual([
      ["resource.updated", "Ebb", 1],
      ["resource.updated", "Ebb", 2],
      ["resource.updated", "Ebb", 2],
    ]);
  });
});

describe("deliveries", () => {
  it("retries failed messages under the same id, ever later and with a new signature", async () => {
    receiver.answer = () => ({ status: 500 });
    const { json } = await register();
    await create();
    await messages(1);
    await vi.waitFor(async () => expect((await endpoint())["problem"]).toContain("500"), WAIT);
    expect(await endpoint()).toMatchObject({ waiting: 1, failed: 0 });
    // Otherwise waking the runner would create a message. Done now, because a change during an attempt repeats it.
    await send("PUT", `/v1/webhooks/${json.data._id}`, { body: { events: ["resource.error"] } });
    for (const waitMs of [6_000, 40_000, 150_000]) {
      nowMs += waitMs;
      const before = receiver.messages.length;
      await wake();
      await messages(before + 1);
      await vi.waitFor(async () => expect((await endpoint())["waiting"]).toBe(1), WAIT);
    }
    const got = receiver.messages;
    expect(new Set(got.map(({ id }) => id)).size).toBe(1);
    expect(new Set(got.map(({ headers }) => headers["webhook-timestamp"])).size).toBe(got.length);
    for (const each of got) expect(signedBy(each, [json.data.secret])).toHaveLength(1);
  });

  it("retries on time after the clock is set back", async () => {
    receiver.answer = () => ({ status: 500 });
    const { json } = await register();
    await create();
    await messages(1);
    await vi.waitFor(async () => expect((await endpoint())["problem"]).toContain("500"), WAIT);
    await send("PUT", `/v1/webhooks/${json.data._id}`, { body: { events: ["resource.error"] } });
    for (const waitMs of [6_000, 40_000]) {
      const before = receiver.messages.length;
      nowMs -= 2 * HOUR_MS;
      await wake();
      nowMs += waitMs;
      await wake();
      await messages(before + 1);
      await vi.waitFor(async () => expect((await endpoint())["waiting"]).toBe(1), WAIT);
    }
  });

  it("retries on time after the clock was set back while the service was stopped", async () => {
    const stateDir = await mkdtemp(join(tmpdir(), "kbsync-webhooks-"));
    const open = (): Promise<Running> =>
      openRunning({ stateDir, nowMs: () => nowMs, webhookAllow: ["127.0.0.1", "localhost"] });
    try {
      receiver.answer = () => ({ status: 500 });
      const before = await open();
      const body = { url: `${receiver.url}/hook` };
      await before.send("POST", "/v1/webhooks", { key: await before.issueKey("local", ["admin"]), body });
      await before.send("POST", "/api/rag/resource", { body: createBody() });
      await messages(1);
      await vi.waitFor(
        async () => expect(await before.store.queue.nextDueMs("webhook", nowMs)).toBeGreaterThan(0),
        WAIT,
      );
      await before.close();
      nowMs -= 2 * HOUR_MS;
      const after = await open();
      await messages(2);
      await after.close();
    } finally {
      await rm(stateDir, { recursive: true });
    }
  });

  /** Creates a message that failed once, and its endpoint, which receives no other messages. */
  const failOnce = async (): Promise<{ first: Received | undefined; json: Answered["json"] }> => {
    receiver.answer = () => ({ status: 503 });
    const { json } = await register();
    await create();
    const [first] = await messages(1);
    await vi.waitFor(async () => expect((await endpoint())["problem"]).toContain("503"), WAIT);
    await send("PUT", `/v1/webhooks/${json.data._id}`, { body: { events: ["resource.error"] } });
    return { first, json };
  };

  it("a clock that is set ahead by a day gives no message up", async () => {
    await failOnce();
    nowMs += 25 * HOUR_MS;
    await wake();
    await messages(2);
    receiver.answer = () => ({ status: 204 });
    // Repeats, because the second failure may be recorded after the first check.
    await vi.waitFor(async () => {
      nowMs += HOUR_MS;
      await wake();
      expect(receiver.messages.length).toBeGreaterThanOrEqual(3);
    }, WAIT);
    await vi.waitFor(async () => expect(await endpoint()).toMatchObject({ waiting: 0, failed: 0 }), WAIT);
  });

  it("messages that fail for a day are given up, and their endpoint shows how many and why", async () => {
    const { first, json } = await failOnce();
    await vi.waitFor(async () => {
      nowMs += 7 * HOUR_MS;
      await wake();
      expect(await endpoint()).toMatchObject({ waiting: 0, failed: 1 });
    }, WAIT);
    expect(new Set(receiver.messages.map(({ id }) => id))).toEqual(new Set([first?.id]));
    expect(receiver.messages).toHaveLength(12);
    expect(await endpoint()).toMatchObject({ _id: json.data._id, problem: "the receiver answered 503" });
  });

  it("deliveries honour Retry-After, follow no redirect, and stop permanently at 410", async () => {
    const answers = [
      { status: 429, headers: { "retry-after": "3600" } },
      { status: 302, headers: { location: `${receiver.url}/elsewhere` } },
      { status: 410 },
    ];
    receiver.answer = () => answers.shift() ?? { status: 204 };
    const { json } = await register();
    await create();
    await messages(1);
    await vi.waitFor(async () => expect((await endpoint())["problem"]).toContain("429"), WAIT);
    await send("PUT", `/v1/webhooks/${json.data._id}`, { body: { events: ["resource.error"] } });
    nowMs += 60_000;
    await wake();
    nowMs += HOUR_MS;
    await wake();
    await messages(2);
    await vi.waitFor(async () => expect((await endpoint())["problem"]).toContain("302"), WAIT);
    nowMs += HOUR_MS;
    await wake();
    await messages(3);
    await vi.waitFor(async () => expect(await endpoint()).toMatchObject({ enabled: false, failed: 1 }), WAIT);
    expect(receiver.messages.map(({ path }) => path)).toEqual(["/hook", "/hook", "/hook"]);
  });

  it.each([
    ["disables nothing", 410],
    ["delays nothing", 500],
  ])("a late failure of an address that an endpoint no longer has %s", async (_name, status) => {
    const late = Promise.withResolvers<{ status: number }>();
    receiver.answer = ({ path }) => (path === "/hook" ? late.promise : { status: 204 });
    const { json } = await register();
    await create();
    await messages(1);
    await send("PUT", `/v1/webhooks/${json.data._id}`, { body: { url: `${receiver.url}/new` } });
    late.resolve({ status });
    const [, second] = await messages(2);
    expect([second?.path, second?.id]).toEqual(["/new", receiver.messages[0]?.id]);
    await vi.waitFor(
      async () =>
        expect(await endpoint()).toMatchObject({ enabled: true, waiting: 0, failed: 0, problem: null }),
      WAIT,
    );
  });

  it("deliveries go to no private address, however it is written", async () => {
    const closed = await openRunning({
      resolveHost: (_host, _options, done) => done(null, [{ address: "127.0.0.1", family: 4 }]),
    });
    try {
      const key = await closed.issueKey("local", ["admin"]);
      const post = (url: string): Promise<Answered> =>
        closed.send("POST", "/v1/webhooks", { key, body: { url } });
      for (const url of [
        receiver.url,
        "http://[::1]/",
        "http://0x7f.1/",
        "http://169.254.169.254/",
        "http://localhost/",
        "http://a.LOCALHOST./",
      ]) {
        expect(await post(url)).toMatchObject({ status: 400, json: { error: { field: "url" } } });
      }
      const port = new URL(receiver.url).port;
      const named = await post(`http://hooks.example:${port}/`);
      expect(named.status).toBe(201);
      const test = await closed.send("POST", `/v1/webhooks/${named.json.data._id}/test`, { key });
      expect(test.json.data).toEqual({ arrived: false, problem: expect.stringContaining("not a public") });
      expect(receiver.messages).toEqual([]);
    } finally {
      await closed.close();
    }
  });
});

describe("addresses of their own", () => {
  it("a message's own address that never answers delays no other address", async () => {
    const { id: accountId } = await running.store.records.ensureAccount(`webhooks ${accounts}`);
    const stalled = await openReceiver();
    try {
      stalled.answer = () => new Promise(() => undefined);
      const to = ({ url }: Receiver, count: number): Promise<void>[] =>
        Array.from({ length: count }, (_, at) =>
          running.store.records.addDelivery({
            accountId,
            eventId: `own ${url} ${at}`,
            type: "chat",
            body: "{}",
            to: { target: { url: `${url}/own/${at}`, headers: {} } },
            nowMs,
          }),
        );
      await Promise.all(to(stalled, 12));
      await Promise.all(to(receiver, 6));
      await wake();
      expect((await messages(6)).length).toBe(6);
      expect(stalled.messages.length).toBe(4);
    } finally {
      await stalled.close();
    }
  });
});

describe("endpoints that never answer", () => {
  const EVENTS = 4;
  let held: Running;
  beforeEach(async () => {
    held = await openRunning({ webhookAllow: ["127.0.0.1", "localhost"] });
    receiver.answer = ({ path }) => (path === "/never" ? new Promise(() => undefined) : { status: 204 });
  });
  afterEach(() => held.close());

  it.each([
    ["as many silent endpoints as an account may have next to a working one", 19],
    ["few silent endpoints with more messages than attempts in flight", 8],
  ])(
    "endpoints that never answer delay neither other endpoints nor other accounts: %s",
    async (_name, silent) => {
      const arrived = (path: string) => receiver.messages.filter((each) => each.path === path).length;
      const hostile = await held.issueKey("hostile", ["admin"]);
      const other = await held.issueKey("other", ["admin"]);
      const listen = async (key: string, path: string): Promise<void> => {
        const { status } = await held.send("POST", "/v1/webhooks", {
          key,
          body: { url: receiver.url + path },
        });
        expect(status).toBe(201);
      };
      const createFor = (key: string) => held.send("POST", "/api/rag/resource", { key, body: createBody() });
      for (let at = 0; at < silent; at += 1) await listen(hostile, "/never");
      await listen(other, "/other");
      for (let at = 0; at < EVENTS; at += 1) await createFor(hostile);
      // As many as an account has endpoints; of its 24 attempts, 4 stay for endpoints that have none in flight.
      // Counts attempts in flight: on a busy machine some time out before the test ends, and others start.
      await vi.waitFor(() => expect(receiver.open("/never")).toBe(20), WAIT);
      await listen(hostile, "/working");
      for (let at = 0; at < EVENTS; at += 1) await createFor(hostile);
      await createFor(other);
      await vi.waitFor(() => expect(arrived("/other")).toBe(1), WAIT);
      await vi.waitFor(() => expect(arrived("/working")).toBe(EVENTS), WAIT);
      expect(receiver.open("/never")).toBeLessThanOrEqual(20);
      // Messages that wait for another of the same host do not hide another account's messages either.
      const toHost = async (account: string, host: string, path: string): Promise<void> => {
        const { id: accountId } = await held.store.records.ensureAccount(account);
        const url = receiver.url.replace("127.0.0.1", host) + path;
        const to = { target: { url, headers: {} } };
        await held.store.records.addDelivery({
          accountId,
          eventId: path,
          type: "chat",
          body: "{}",
          to,
          nowMs,
        });
      };
      for (let at = 0; at < 5; at += 1) await toHost("hostile", "localhost", "/never");
      await toHost("other", "127.0.0.1", "/own");
      await createFor(other);
      await vi.waitFor(() => expect(arrived("/own")).toBe(1), WAIT);
      await vi.waitFor(() => expect(receiver.open("/never")).toBe(21), WAIT);
    },
  );
});

describe("reports of deliveries", () => {
  /** Returns the lines of the log above debug that name the endpoint. */
  const logged = (id: string): { level: number; msg: string }[] =>
    running
      .log()
      .split("\n")
      .filter((line) => line.includes(id) && !line.includes('"level":10'))
      .map((line) => JSON.parse(line))
      .filter(({ level }) => level >= 30);

  it("logs one line when an endpoint starts to fail, and one when it works again", async () => {
    receiver.answer = () => ({ status: 500 });
    const { json } = await register();
    const id = String(json.data._id);
    for (let at = 1; at <= 5; at += 1) await create();
    await vi.waitFor(async () => expect((await endpoint())["problem"]).toContain("500"), WAIT);
    await messages(5);
    receiver.answer = () => ({ status: 204 });
    await send("PUT", `/v1/webhooks/${id}`, { body: { events: ["resource.error"] } });
    // Repeats, because the last of the failures may be recorded after the first check.
    await vi.waitFor(async () => {
      nowMs += 10_000;
      await wake();
      expect((await endpoint())["waiting"]).toBe(0);
    }, WAIT);
    await vi.waitFor(() => expect(logged(id)).toHaveLength(2), WAIT);
    expect(logged(id)).toMatchObject([
      { level: 40, msg: expect.stringContaining("fails"), problem: "the receiver answered 500" },
      { level: 30, msg: expect.stringContaining("works again") },
    ]);
  });

  it("logs one line when messages are given up", async () => {
    receiver.answer = () => ({ status: 410 });
    const { json } = await register();
    for (let at = 1; at <= 3; at += 1) await create();
    await vi.waitFor(
      async () => expect(await endpoint()).toMatchObject({ waiting: 0, enabled: false }),
      WAIT,
    );
    expect(logged(String(json.data._id))).toMatchObject([
      { level: 40, msg: expect.stringContaining("given up") },
    ]);
  });

  it("reports a failure of the store", async () => {
    const problems: unknown[] = [];
    const gone = new KbsyncError("the store ended", { code: "worker_gone" });
    const leases = openLeases(running.store.queue, "test", Date.now, () => undefined);
    const deliveries = openDeliveryRunner({
      records: running.store.records,
      queue: { ...running.store.queue, due: () => Promise.reject(gone) },
      leases,
      dispatcher: new Agent(),
      agent: "test",
      nowMs: () => nowMs,
      steadyMs: () => nowMs,
      chance: () => 0,
      report: () => undefined,
      onProblem: (error) => problems.push(error),
    });
    deliveries.wake();
    await vi.waitFor(() => expect(problems).toEqual([gone]), WAIT);
    await deliveries.close();
    await leases.close();
  });
});

describe("endpoints", () => {
  it("endpoints are listed, changed and removed without their secret", async () => {
    const made = await register({ description: "ours", events: ["resource.chunked"] });
    const id = made.json.data._id;
    const { secret, ...record } = made.json.data;
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect((await send("GET", "/v1/webhooks")).json.data.endpoints).toEqual([record]);
    const changed = await send("PUT", `/v1/webhooks/${id}`, { body: { enabled: false, description: "" } });
    expect(changed.json.data).toMatchObject({ enabled: false, description: "", url: record.url });
    expect(changed.text).not.toContain(secret);
    await create();
    expect((await send("DELETE", `/v1/webhooks/${id}`)).status).toBe(200);
    expect((await send("DELETE", `/v1/webhooks/${id}`)).json.error.code).toBe("endpoint_not_found");
    expect((await send("GET", "/v1/webhooks")).json.data.endpoints).toEqual([]);
    expect(receiver.messages).toEqual([]);
  });

  it("endpoints are invisible to other accounts and require the scope admin", async () => {
    const { json } = await register();
    const path = `/v1/webhooks/${json.data._id}`;
    const foreign = await running.issueKey("foreign", ["admin"]);
    const answers = await Promise.all([
      send("PUT", path, { key: foreign, body: { enabled: false } }),
      send("DELETE", path, { key: foreign }),
      send("POST", `${path}/test`, { key: foreign }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
    const writer = await running.issueKey("local", ["read", "write", "chat"]);
    expect((await send("GET", "/v1/webhooks", { key: writer })).status).toBe(403);
  });

  it("a test message is sent at once", async () => {
    const { json } = await register({ secret: SECRET });
    const test = (): Promise<Answered> => send("POST", `/v1/webhooks/${json.data._id}/test`);
    expect((await test()).json.data).toEqual({ arrived: true, problem: null });
    expect(receiver.messages[0]).toMatchObject({ method: "POST", json: { type: "webhook.test" } });
    expect(signedBy(receiver.messages[0] as Received, [SECRET])).toEqual([SECRET]);
    await receiver.close();
    expect((await test()).json.data).toEqual({
      arrived: false,
      problem: "127.0.0.1 refuses the connection",
    });
    receiver = await openReceiver();
  });

  it("a new secret signs every later attempt, and no answer shows it", async () => {
    const { json } = await register();
    const changed = await send("PUT", `/v1/webhooks/${json.data._id}`, { body: { secret: SECRET } });
    expect(changed.status).toBe(200);
    expect(changed.text).not.toContain(SECRET);
    await create();
    const [message] = await messages(1);
    expect(signedBy(message as Received, [json.data.secret, SECRET])).toEqual([SECRET]);
    const refused = await send("PUT", `/v1/webhooks/${json.data._id}`, { body: { secret: "whsec_AAAA" } });
    expect(refused).toMatchObject({ status: 400, json: { error: { field: "secret" } } });
  });

  it.each([
    ["another scheme", { url: "ftp://example.com/" }, "url"],
    ["credentials", { url: "http://a:b@example.com/" }, "url"],
    ["no address", { url: "nonsense" }, "url"],
    ["an unknown event", { url: "http://example.com/", events: ["chat"] }, "events[0]"],
    ["a short secret", { url: "http://example.com/", secret: "whsec_AAAA" }, "secret"],
  ])("refuses an endpoint with %s", async (_name, body, field) => {
    const answer = await send("POST", "/v1/webhooks", { body });
    expect(answer).toMatchObject({ status: 400, json: { error: { code: "invalid_field", field } } });
  });

  it("removes the fragment of an endpoint's address", async () => {
    const { json } = await register({ url: `${receiver.url}/hook?a=1#part` });
    expect(json.data.url).toBe(`${receiver.url}/hook?a=1`);
  });

  it("accepts at most twenty endpoints of an account", async () => {
    const answers = [];
    for (let at = 0; at < 21; at++) answers.push((await register()).status);
    expect(answers).toEqual([...Array.from({ length: 20 }, () => 201), 409]);
  });
});
