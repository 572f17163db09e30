import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "undici";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { delayMs } from "../../../../src/sync/plan/retry.ts";
import { openPacer, type Pacer } from "../../../../src/sync/send/remote/pacer.ts";
import { openRemote, type Remote, type RemoteOptions } from "../../../../src/sync/send/remote/remote.ts";
import type { NewResource } from "../../../../src/sync/send/remote/resource-requests.ts";
import type { Connect } from "../../../../src/sync/send/remote/transport.ts";
import { openFakeService, type FakeService, type Fault } from "../../../fakes/knowledge-service.ts";

let service: FakeService;
let pacer: Pacer;
let remote: Remote;
let patienceMs: number;
const { signal } = new AbortController();

const open = (more: Partial<RemoteOptions> = {}): void => {
  patienceMs = Infinity;
  pacer = openPacer({
    widthMax: 8,
    patienceMs: () => patienceMs,
    random: () => 0,
    onWidth: () => undefined,
    onTrouble: () => undefined,
  });
  const address = { apiUrl: service.url, dbUrl: service.url, pauthkey: service.key };
  remote = openRemote({ address, pacer, connections: 8, timeoutMs: 2000, now: Date.now, ...more });
};
beforeEach(async () => {
  service = await openFakeService();
  open();
});
afterEach(async () => {
  await remote.close();
  await service.close();
});

const text: NewResource = {
  title: "t",
  description: "d",
  settings: { strategy: "recursive", chunkSize: 100, chunkOverlap: 10 },
  tier: "fastest",
  ownerId: "o",
  content: "text",
};
const answer = (status: number, body: string, headers?: Record<string, string>): Fault => ({
  kind: "answer",
  status,
  body,
  ...(headers !== undefined && { headers }),
});
const words = '{"success":false,"message":"its words","error":{"code":"its_code"}}';

describe("an answer before the work", () => {
  const { content: _content, ...unread } = text;
  const link: NewResource = { ...unread, url: "https://example.org/" };

  it.each([
    ["that declares it", 202, { "preference-applied": "respond-async, wait=1" }, undefined, true],
    ["whose header a proxy dropped", 202, {}, "queued", true],
    ["without any sign of the preference", 202, {}, undefined, false],
    ["of finished work", 202, {}, "chunked", false],
    ["that came after the work", 201, { "preference-applied": "wait=1" }, "chunked", false],
  ])("reads from an answer %s whether work continues", async (_name, status, headers, state, isInFlight) => {
    const data = { _id: "a", ...(state !== undefined && { metadata: { status: state } }) };
    service.fault = () => answer(status, JSON.stringify({ success: true, data }), headers);
    expect(await remote.create(link, "key", signal)).toMatchObject({ kind: "done", value: { isInFlight } });
    const update = await remote.update("a", { title: "t", url: "https://example.org/" }, signal);
    expect(update).toMatchObject({ kind: "done", value: { isInFlight } });
  });

  it("asks for an asynchronous answer with a wait well below the timeout", async () => {
    await remote.create(link, "key", signal);
    await remote.update("a", { title: "t", url: "https://example.org/" }, signal);
    await remote.create(text, "key", signal);
    await remote.update("a", { title: "t" }, signal);
    const asked = "respond-async, wait=1";
    expect(service.requests.map(({ headers }) => headers["prefer"])).toEqual([asked, asked, asked, asked]);
  });
});

describe("what an answer to a create means", () => {
  it.each<{ name: string; fault: Fault | undefined; expected: unknown }>([
    {
      name: "success",
      fault: undefined,
      expected: { kind: "done", value: { title: "t", collectionId: "c".repeat(23) + "1" } },
    },
    {
      name: "a 400",
      fault: answer(400, words),
      expected: { kind: "refused", code: "its_code", message: "its words" },
    },
    { name: "a 409", fault: answer(409, words), expected: { kind: "refused" } },
    {
      name: "a 409 that asks to come again: the first attempt is still in progress",
      fault: answer(409, words, { "retry-after": "1" }),
      expected: { kind: "later", acted: "maybe", blame: "request", retryAfterMs: 1000 },
    },
    {
      name: "a 413 from a proxy",
      fault: answer(413, "<html>too large</html>"),
      expected: { kind: "refused", code: "http_413" },
    },
    { name: "a 415", fault: answer(415, words), expected: { kind: "refused" } },
    { name: "a 422", fault: answer(422, words), expected: { kind: "refused" } },
    { name: "a 501", fault: answer(501, words), expected: { kind: "refused", message: "its words" } },
    {
      name: "a 200 without success",
      fault: answer(200, words),
      expected: { kind: "refused", message: "its words" },
    },
    { name: "a 401", fault: answer(401, words), expected: { kind: "later", acted: "no", blame: "key" } },
    { name: "a 403", fault: answer(403, words), expected: { kind: "later", acted: "no", blame: "key" } },
    {
      name: "a 404: the address is wrong",
      fault: answer(404, "nothing here"),
      expected: { kind: "later", acted: "no", blame: "service" },
    },
    {
      name: "a redirect",
      fault: answer(302, "", { location: "/login" }),
      expected: { kind: "later", acted: "no", blame: "service" },
    },
    {
      name: "a 429",
      fault: answer(429, words, { "retry-after": "3" }),
      expected: { kind: "later", acted: "no", blame: "service", retryAfterMs: 3000 },
    },
    {
      name: "a 503 of the service",
      fault: answer(503, words),
      expected: { kind: "later", acted: "no", blame: "service" },
    },
    {
      name: "a 503 for a damaged store, which a person has to repair",
      fault: answer(503, '{"success":false,"message":"m","error":{"code":"store_damaged","hint":"h"}}'),
      expected: { kind: "later", acted: "no", blame: "service", reason: "m", hint: "h" },
    },
    { name: "a 503 of a proxy", fault: answer(503, "<html>"), expected: { kind: "later", acted: "maybe" } },
    {
      name: "a 500",
      fault: answer(500, words),
      expected: { kind: "later", acted: "maybe", blame: "request" },
    },
    { name: "a 502", fault: answer(502, "<html>"), expected: { kind: "later", acted: "maybe" } },
    {
      name: "a page instead of an answer",
      fault: { kind: "html" },
      expected: { kind: "later", acted: "maybe" },
    },
    { name: "half an answer", fault: { kind: "cut-answer" }, expected: { kind: "later", acted: "maybe" } },
    {
      name: "success without a resource",
      fault: answer(200, '{"success":true}'),
      expected: { kind: "refused", code: "no_id" },
    },
    { name: "a lost answer", fault: { kind: "lose-answer" }, expected: { kind: "later", acted: "maybe" } },
  ])("interprets the answer to a create: $name", async ({ fault, expected }) => {
    service.fault = () => fault;
    expect(await remote.create(text, "key", signal)).toMatchObject(expected as object);
  });

  it.each([429, 503])(
    "waits as the service asks where it is asked whether it accepts the key: %i",
    async (status) => {
      service.fault = ({ operation }) =>
        operation === "list" ? answer(status, words, { "retry-after": "60" }) : answer(403, words);
      expect(await remote.create(text, "key", signal)).toMatchObject({
        kind: "later",
        acted: "no",
        blame: "service",
        retryAfterMs: 60_000,
      });
      expect(pacer.state()).toMatchObject({ kind: "waiting", reason: "its words" });
    },
  );

  it("does not ask whether the service accepts the key while all requests wait", async () => {
    service.fault = () => {
      // Another request is asked to wait meanwhile.
      pacer.failed(0, { kind: "later", acted: "no", blame: "service", reason: "busy", retryAfterMs: 60_000 });
      return answer(403, words);
    };
    await remote.create(text, "key", signal);
    expect(service.requests.map(({ operation }) => operation)).toEqual(["create"]);
    expect(pacer.state()).toMatchObject({ kind: "waiting", reason: "busy" });
  });

  it("proves with a refused connection that nothing was done", async () => {
    await service.close();
    expect(await remote.create(text, "key", signal)).toMatchObject({
      kind: "later",
      acted: "no",
      blame: "service",
    });
    service = await openFakeService();
  });

  it("reports that a request without an answer in time may have acted", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    service.fault = () => ({ kind: "wait", until: promise });
    await remote.close();
    const address = { apiUrl: service.url, dbUrl: service.url, pauthkey: service.key };
    let moves = 0;
    const onMoved = (): void => void (moves += 1);
    remote = openRemote({ address, pacer, connections: 8, timeoutMs: 50, now: Date.now, onMoved });
    expect(await remote.create(text, "key", signal)).toMatchObject({
      kind: "later",
      acted: "maybe",
      blame: "request",
    });
    // A document whose processing repeatedly exceeds the timeout is not a hang of the daemon.
    for (const tries of [2, 3]) {
      expect(await remote.update("f".repeat(24), { title: "t", content: "t" }, signal)).toMatchObject({
        kind: "later",
      });
      expect(moves).toBe(tries);
    }
    resolve();
  });

  it("takes the service's 404 for a gone resource, but not a proxy's", async () => {
    expect(await remote.delete("f".repeat(24), signal)).toEqual({ kind: "gone" });
    service.fault = () => answer(404, '{"message":"no Route matched with those values"}');
    expect(await remote.delete("f".repeat(24), signal)).toMatchObject({
      kind: "later",
      acted: "no",
      blame: "service",
    });
    service.fault = () => answer(404, "<html>not found</html>");
    expect(await remote.delete("f".repeat(24), signal)).toMatchObject({ kind: "later" });
  });
});

describe("requests", () => {
  it("sends the key and the idempotency key", async () => {
    await remote.create(text, "key-1", signal);
    expect(service.requests[0]?.headers).toMatchObject({ pauthkey: service.key, "idempotency-key": "key-1" });
    expect(service.requests[0]?.body).toEqual({
      title: "t",
      description: "d",
      settings: text.settings,
      content: "text",
      collection_details: "fastest",
      owner_id: "o",
    });
  });

  it.each([false, true])("lists everything, in pages or whole (%s)", async (paged) => {
    await remote.close();
    await service.close();
    service = await openFakeService({ paged });
    open();
    for (let index = 0; index < 2500; index += 1) {
      const at = new Date().toISOString();
      const id = index.toString(16).padStart(24, "0");
      service.resources.set(id, {
        _id: id,
        title: `${index}`,
        description: "",
        settings: {},
        content: `text "${index}" \\`,
        ownerId: "o",
        collectionId: `${"c".repeat(23)}1`,
        refreshedAt: null,
        isDeleted: index % 5 === 0,
        createdAt: at,
        updatedAt: at,
      });
    }
    const seen: string[] = [];
    const at = { collectionId: `${"c".repeat(23)}1`, ownerId: "o" };
    const reply = await remote.list(at, ({ title, content }) => seen.push(`${title}|${content}`), signal);
    expect(reply).toMatchObject({ kind: "done" });
    expect(seen).toHaveLength(2000);
    expect(seen[0]).toBe('1|text "1" \\');
    expect(service.count("list")).toBe(paged ? 2 : 1);
  });

  it("ends a list at an empty cursor and at a page that follows itself", async () => {
    const page = (nextCursor: string): Fault =>
      answer(200, JSON.stringify({ success: true, data: { resources: [], created: 0, nextCursor } }));
    const place = { collectionId: "c", ownerId: "o" };
    service.fault = () => page("");
    expect(await remote.list(place, () => undefined, signal)).toMatchObject({ kind: "done" });
    expect(service.requests).toHaveLength(1);
    service.fault = () => (service.requests.length < 20 ? page("again") : page(""));
    expect(await remote.list(place, () => undefined, signal)).toMatchObject({ kind: "later" });
    expect(service.requests).toHaveLength(3);
  });

  it("takes no list for empty whose resources have an unknown form", async () => {
    service.fault = () =>
      answer(200, '{"success":true,"d\\u0061ta":{"resources":[{"_id":"a"}],"created":0}}');
    const seen: unknown[] = [];
    const reply = await remote.list({ collectionId: "c", ownerId: "o" }, (each) => seen.push(each), signal);
    expect([reply, seen]).toMatchObject([{ kind: "later" }, []]);
  });

  it("returns the whole record of a resource that is about to be deleted", async () => {
    const made = await remote.create(text, "k", signal);
    const docId = made.kind === "done" ? made.value._id : "";
    expect(await remote.take(docId, "t", signal)).toMatchObject({
      kind: "done",
      value: { _id: docId, title: "t", content: "text" },
    });
  });

  it("returns the stored text of a resource that the service is still working on", async () => {
    await remote.close();
    await service.close();
    service = await openFakeService({ reads: true });
    open();
    const made = await remote.create(text, "k", signal);
    const docId = made.kind === "done" ? made.value._id : "";
    const queued = JSON.stringify({ success: true, data: { _id: docId, metadata: { status: "queued" } } });
    service.fault = ({ operation }) => (operation === "update" ? answer(202, queued) : undefined);
    expect(await remote.take(docId, "t", signal)).toMatchObject({ kind: "done", value: { content: "text" } });
    expect(service.requests.at(-2)?.headers["prefer"]).toContain("respond-async");
  });

  it("quotes nothing of a document's text from half an answer", async () => {
    service.fault = () => answer(200, '{"success":true,"data":{"_id":"a","content":"a secret of the do');
    const reply = await remote.update("a", { title: "t" }, signal);
    expect(reply).toMatchObject({ kind: "later", acted: "maybe" });
    expect(JSON.stringify(reply)).not.toContain("secret");
  });

  it("uploads the exact bytes of a file on disk", async () => {
    const dir = mkdtempSync(join(tmpdir(), "kbsync-upload-"));
    const bytes = Buffer.alloc(2_500_000, "pdf ");
    const absolutePath = join(dir, 'odd "name"\n.pdf');
    writeFileSync(absolutePath, bytes);
    const hash = createHash("sha256").update(bytes).digest("hex");
    const file = {
      root: dir,
      path: 'odd "name"\n.pdf',
      name: 'odd "name"\n.pdf',
      sizeBytes: bytes.length,
      hash,
      mediaType: "application/pdf",
    };
    const reply = await remote.upload(file, "key", signal);
    expect(reply.kind === "done" && service.uploads.get(reply.value)).toMatchObject({
      bytes: bytes.length,
      hash,
    });
    expect(service.requests[0]?.headers["content-length"]).toBeDefined();

    writeFileSync(absolutePath, Buffer.alloc(2_500_000, "fdp "));
    expect(await remote.upload(file, "key", signal)).toEqual({ kind: "torn" });
    writeFileSync(absolutePath, "short");
    expect(await remote.upload(file, "key", signal)).toEqual({ kind: "torn" });
    expect(service.uploads.size).toBe(1);
    rmSync(dir, { recursive: true });
    // A bad file is not the service's fault.
    expect(await remote.upload(file, "key", signal)).toEqual({ kind: "torn" });
    expect(pacer.state().kind).toBe("open");
  });

  it("downloads a file with the key from the service's hosts only", async () => {
    const other = await openFakeService();
    const address = { apiUrl: service.url, dbUrl: service.url, pauthkey: service.key };
    const connect: Connect = (origin, limits) =>
      new Pool(origin === "http://elsewhere.example" ? other.url : origin, limits);
    await remote.close();
    remote = openRemote({ address, pacer, connections: 8, timeoutMs: 2000, now: Date.now, connect });
    const sink = async (): Promise<void> => {};
    await remote.download("http://elsewhere.example/files/a", 4, sink, signal);
    await remote.download(`${service.url}/files/a`, 4, sink, signal);
    const keysOf = ({ requests }: FakeService): unknown[] =>
      requests.map(({ headers }) => headers["pauthkey"]);
    expect([keysOf(other), keysOf(service)]).toEqual([[undefined], [service.key]]);
    await other.close();
  });
});

describe("the collections of a service", () => {
  const body = JSON.stringify({
    success: true,
    data: { collections: [{ _id: "c1", details: "fastest", resources: 0, chunks: 0 }] },
  });

  it("reports what the service declares with its collections", async () => {
    const declared: unknown[] = [];
    await remote.close();
    open({ onCapabilities: (each) => declared.push(each) });
    for (const [status, more] of [
      [200, {}],
      [200, { reads: ["message/rfc822"], locations: true, metadata: true, purges: true }],
      [404, {}],
      [500, {}],
    ] as const) {
      service.fault = () =>
        answer(status, JSON.stringify({ success: status === 200, data: { collections: [], ...more } }));
      await remote.collections(signal);
    }
    const nothing = { readsMails: false, takesMetadata: false, takesLocations: false, purges: false };
    const all = { readsMails: true, takesMetadata: true, takesLocations: true, purges: true };
    expect(declared).toEqual([nothing, all, undefined]);
  });

  it.each<[what: string, fault: Fault, expected: unknown]>([
    ["are named by their tiers", answer(200, body), { kind: "done", value: new Map([["fastest", "c1"]]) }],
    [
      "are named whatever else its answer has",
      answer(
        200,
        JSON.stringify({
          success: true,
          data: {
            collections: [
              { _id: 7, details: "fastest", resources: null },
              { _id: "c2", details: "swift" },
              {},
            ],
            reads: null,
            metadata: "yes",
          },
        }),
      ),
      { kind: "done", value: new Map([["fastest", "7"]]) },
    ],
    ["are unknown if it does not know the request", answer(404, words), { value: "unsupported" }],
    ["are unclear if a gateway does not know the request", answer(404, "no"), { value: "unclear" }],
    ["are unknown if it refuses the request", answer(400, words), { value: "unsupported" }],
    [
      "are unclear if it answers with a failure",
      answer(200, '{"success":false,"message":"no"}'),
      { value: "unclear" },
    ],
    ["are unclear behind a page for every address", answer(200, "<html>"), { value: "unclear" }],
    ["are unclear in an answer of another form", answer(200, '{"success":true}'), { value: "unclear" }],
    ["are requested again after a failure", answer(500, "no"), { kind: "later" }],
    ["are requested again after a delay", answer(429, words), { kind: "later" }],
    ["are requested again after a time-out", answer(408, words), { kind: "later" }],
    ["are requested again with another key", answer(401, words), { kind: "later", blame: "key" }],
  ])("the collections of a service %s", async (_what, fault, expected) => {
    service.fault = () => fault;
    expect(await remote.collections(signal)).toMatchObject(expected as Record<string, unknown>);
  });
});

describe("the gate", () => {
  it("closes the gate for all requests when the service asks for it, sends a probe, and opens again", async () => {
    let refusals = 2;
    service.fault = () => (refusals-- > 0 ? answer(429, words) : undefined);
    const replies = await Promise.all(Array.from({ length: 4 }, () => remote.create(text, "k", signal)));
    expect(replies.map(({ kind }) => kind).toSorted()).toEqual(["done", "done", "later", "later"].toSorted());
    expect(pacer.width()).toBeLessThan(8);
    for (let index = 0; index < 60; index += 1) await remote.create(text, "k", signal);
    expect(pacer.state().kind).toBe("open");
    expect(pacer.width()).toBe(8);
  });

  it("stops at a key that is refused twice without asking again", async () => {
    service.fault = () => answer(401, words);
    await remote.create(text, "k", signal);
    expect(await remote.create(text, "k", signal)).toMatchObject({ kind: "later", blame: "key" });
    expect(pacer.state()).toMatchObject({ kind: "key_refused", reason: "its words" });
    patienceMs = 0;
    await expect(remote.create(text, "k", signal)).rejects.toMatchObject({ code: "key_refused" });
    expect(service.requests).toHaveLength(2);
  });

  it("does not wait for a probe that was suspended because its source is paused", async () => {
    const paused = new AbortController().signal;
    const address = { apiUrl: service.url, dbUrl: service.url, pauthkey: service.key };
    await remote.close();
    const isHeld = (asked: AbortSignal): boolean => asked === paused;
    remote = openRemote({ address, pacer, connections: 8, timeoutMs: 2000, now: Date.now, isHeld });
    let refusals = 1;
    service.fault = () => (refusals-- > 0 ? answer(429, words) : undefined);
    await remote.create(text, "k", signal);
    const [first, second] = [remote.create(text, "k", paused), remote.create(text, "k", signal)];
    expect(await first).toMatchObject({ kind: "later", acted: "no", reason: "paused" });
    expect(await second).toMatchObject({ kind: "done" });
  });

  const file = {
    root: import.meta.dirname,
    path: "remote.test.ts",
    name: "a.png",
    sizeBytes: statSync(import.meta.filename).size,
    hash: createHash("sha256")
      .update(readFileSync(import.meta.filename))
      .digest("hex"),
    mediaType: "image/png",
  };
  const changes: [name: string, ask: (asked: AbortSignal) => Promise<unknown>][] = [
    ["create", (asked) => remote.create(text, "k", asked)],
    ["update", (asked) => remote.update("a", { title: "t" }, asked)],
    ["take", (asked) => remote.take("a", "t", asked)],
    ["delete", (asked) => remote.delete("a", asked)],
    ["upload", (asked) => remote.upload(file, "k", asked)],
  ];
  const questions: typeof changes = [
    ["read", (asked) => remote.read("a", asked)],
    ["download", (asked) => remote.download(`${service.url}/files/a`, 1, async () => {}, asked)],
    ["list", (asked) => remote.list({ collectionId: "c", ownerId: "o" }, () => undefined, asked)],
    ["collections", (asked) => remote.collections(asked)],
    ["search", (asked) => remote.search({ query: "q", topK: 1, where: { docId: "a" } }, asked)],
  ];
  /** Opens a remote, paused or not, and returns its reports. */
  const observed = async (
    isPaused: boolean,
  ): Promise<{ counted: string[]; steps: string[]; moves: () => number }> => {
    const address = { apiUrl: service.url, dbUrl: service.url, pauthkey: service.key };
    const counted: string[] = [];
    const steps: string[] = [];
    let moves = 0;
    await remote.close();
    remote = openRemote({
      address,
      pacer,
      connections: 8,
      timeoutMs: 2000,
      now: Date.now,
      isHeld: () => isPaused,
      onRequest: (operation, _outcome, seconds) => {
        // By the timers' clock, as metrics have it.
        if (seconds >= 0 && seconds < 60) counted.push(operation);
      },
      onMoved: () => (moves += 1),
      step: (step) => steps.push(step),
    });
    return { counted, steps, moves: () => moves };
  };

  it.each(changes)("lets no %s leave during a pause", async (_name, ask) => {
    const { counted, steps } = await observed(true);
    expect(await ask(signal)).toMatchObject({ kind: "later", acted: "no", reason: "paused" });
    expect([counted, steps, service.requests]).toEqual([[], [], []]);
  });

  it.each([...changes, ...questions])("counts a %s by that name when it has left", async (name, ask) => {
    const { counted, steps, moves } = await observed(!changes.some(([each]) => each === name));
    await ask(signal);
    expect([counted, steps, moves() > 0]).toEqual([[name], [name, `${name}:answered`], true]);
  });

  it("gives up at the end of patience", async () => {
    patienceMs = 0;
    service.fault = () => ({ kind: "lose-request" });
    await remote.create(text, "k", signal);
    await expect(remote.create(text, "k", signal)).rejects.toMatchObject({ code: "service_unreachable" });
  });

  it("ends waiting when the signal aborts", async () => {
    service.fault = () => answer(429, words, { "retry-after": "1000" });
    await remote.create(text, "k", signal);
    const abort = new AbortController();
    const waiting = remote.create(text, "k", abort.signal);
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });
});

describe("the arithmetic of waiting", () => {
  it("doubles delays up to a minute, honours the service's, and never waits a day because of a wrong clock", () => {
    expect([1, 2, 3, 30].map((failures) => delayMs(failures, undefined, 0))).toEqual([125, 250, 500, 30_000]);
    expect(delayMs(30, undefined, 0.999)).toBeLessThanOrEqual(60_000);
    expect(delayMs(1, 5000, 0)).toBe(5000);
    expect(delayMs(1, 1e12, 0)).toBe(3_600_000);
  });
});
