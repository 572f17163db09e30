import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Pool, request } from "undici";
import { generateKey } from "../../../src/kb/keys/keys.ts";
import { openWeb, type Page } from "../fetch/web.ts";
import { openReceiver, type Receiver } from "../webhooks/receiver.ts";
import { startProcess } from "./process.ts";
import { createBody, openRunning, queuesOf } from "./running.ts";
import type { Running } from "./running.ts";

/** Five starts of the service, one after the other, take half a minute on a busy machine. */
const WAIT = { timeout: 90_000, interval: 100 };
const LANES = 8;
const OWNER = "killed";
/** Where the receiver has endpoints. */
const PATHS = ["/", "/second"];

let stateDir: string;
let key: string;
let receiver: Receiver;
let running: Running | undefined;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "kbsync-kill-"));
  key = generateKey();
  receiver = await openReceiver();
});
afterEach(async () => {
  await running?.close();
  running = undefined;
  await receiver.close();
  await rm(stateDir, { recursive: true });
});

/** Sends creates, several at once, until the service is killed after so many answers; each with a key of its own. */
async function createUntilKilled(round: number, answers: number, headers: object, endpoint: boolean) {
  const { child, url } = await startProcess({ stateDir, key });
  const pool = new Pool(url, { connections: LANES });
  const post = async (path: string, body: object, more: object) => {
    const answer = await pool.request({
      method: "POST",
      path,
      headers: { pauthkey: key, "content-type": "application/json", ...more },
      body: JSON.stringify(body),
    });
    return (await answer.body.json()) as { data: { _id: string } }; // a create answers so
  };
  for (const path of endpoint ? PATHS : []) await post("/v1/webhooks", { url: receiver.url + path }, {});
  const sent: { key: string; body: object }[] = [];
  const acknowledged: string[] = [];
  const lane = async (): Promise<never> => {
    for (;;) {
      const name = `round-${round}-${sent.length}`;
      const body = createBody({ owner_id: OWNER, title: name, content: `Words of ${name}.` });
      sent.push({ key: name, body });
      acknowledged.push(
        (await post("/api/rag/resource", body, { ...headers, "idempotency-key": name })).data._id,
      );
      if (acknowledged.length === answers) child.kill("SIGKILL");
    }
  };
  const gone = once(child, "exit");
  await Promise.allSettled(Array.from({ length: LANES }, lane));
  await pool.destroy();
  await gone;
  return { sent, acknowledged };
}

async function listed(): Promise<{ _id: string; title: string; content: string; metadata: object }[]> {
  const { json } = (await running?.send("GET", "/api/rag/collections", { key })) ?? {};
  const collectionId = json.data.collections[0]._id;
  const path = `/api/rag/resource/by-collection?collectionId=${collectionId}&ownerId=${OWNER}`;
  return (await running?.send("GET", path, { key }))?.json.data.resources;
}

describe("kill -9, then a start", () => {
  it("a create repeated under its Idempotency-Key after kill -9 makes no second resource", async () => {
    const { sent, acknowledged } = await createUntilKilled(1, 120, {}, false);
    running = await openRunning({ stateDir });
    for (const { key: name, body } of sent) {
      const answer = await running.send("POST", "/api/rag/resource", {
        key,
        body,
        headers: { "idempotency-key": name },
      });
      expect(answer.status).toBe(201);
    }
    const resources = await listed();
    expect(resources.map(({ title }) => title).toSorted()).toEqual(sent.map((each) => each.key).toSorted());
    expect(resources.map(({ _id }) => _id)).toEqual(expect.arrayContaining(acknowledged));
  });

  it("after kill -9 every document whose request was answered 202 is ingested once", async () => {
    const acknowledged: string[] = [];
    for (const round of [1, 2, 3]) {
      const made = await createUntilKilled(round, 40, { prefer: "respond-async" }, false);
      acknowledged.push(...made.acknowledged);
    }
    running = await openRunning({ stateDir });
    const started = running;
    await vi.waitFor(async () => expect((await queuesOf(started, key)).ingest.waiting).toBe(0), WAIT);
    const resources = await listed();
    expect(resources.map(({ _id }) => _id)).toEqual(expect.arrayContaining(acknowledged));
    for (const { title, content, metadata } of resources) {
      expect([content, metadata]).toEqual([`Words of ${title}.`, { status: "chunked" }]);
    }
    for (const { _id } of resources) {
      const chunks = await running.send("GET", `/api/rag/resource/${_id}/chunks`, { key });
      expect([chunks.json.data.version, chunks.json.data.chunks.length]).toEqual([1, 1]);
    }
  });

  it("gives up the document that crashes the process, and none that ran at the same time", async () => {
    let service = await startProcess({ stateDir, key });
    let isDeadly = false;
    let ends = 0;
    const startNext = async (): Promise<void> => {
      ends += 1;
      service = await startProcess({ stateDir, key });
      if (isDeadly) service.child.once("exit", startAgain);
      else service.child.kill("SIGKILL");
    };
    const startAgain = (): void => void startNext();
    const over = Promise.withResolvers<void>();
    // A document is under way for as long as its host says nothing.
    const deadlyPage: Page = () => {
      if (isDeadly) service.child.kill("SIGKILL");
    };
    const soundPage: Page = (_request, response) => {
      void over.promise.then(() =>
        response.writeHead(200, { "content-type": "text/plain" }).end("Sound words."),
      );
    };
    const web = await openWeb({
      "/deadly": deadlyPage,
      "/one": soundPage,
      "/two": soundPage,
      "/three": soundPage,
    });
    const call = async <T>(path: string, body?: object): Promise<T> => {
      const answer = await request(service.url + path, {
        method: body === undefined ? "GET" : "POST",
        headers: { pauthkey: key, "content-type": "application/json", prefer: "respond-async" },
        body: body === undefined ? null : JSON.stringify(body),
      });
      return ((await answer.body.json()) as { data: T }).data; // all of these answer so
    };
    const create = async (path: string): Promise<string> => {
      const body = createBody({ content: undefined, url: web.url(path).href });
      return (await call<{ _id: string }>("/api/rag/resource", body))._id;
    };
    const stateOf = async (id: string) =>
      (await call<{ metadata: { status: string; message?: string } }>(`/api/rag/resource/${id}`)).metadata;
    try {
      const sound = [await create("/one"), await create("/two"), await create("/three")];
      // The newest change goes first, and the pages of the others say nothing until it is over.
      const deadly = await create("/deadly");
      const db = new Database(join(stateDir, "kb.sqlite"), { readonly: true });
      await vi.waitFor(() => {
        expect(db.prepare("SELECT is_working FROM job WHERE queue = 'ingest'").pluck().all()).toEqual([
          1, 1, 1, 1,
        ]);
      }, WAIT);
      db.close();
      isDeadly = true;
      service.child.once("exit", startAgain).kill("SIGKILL");
      await vi.waitFor(async () => expect((await stateOf(deadly)).status).toBe("error"), WAIT);
      expect((await stateOf(deadly)).message).toContain("crashed 4 times");
      expect(ends).toBe(4);
      over.resolve();
      await vi.waitFor(async () => {
        const states = await Promise.all(sound.map(stateOf));
        expect(states.map(({ status }) => status)).toEqual(["chunked", "chunked", "chunked"]);
      }, WAIT);
    } finally {
      isDeadly = false;
      service.child.off("exit", startAgain).kill("SIGKILL");
      await web.close();
    }
  });

  it("after kill -9 every endpoint receives every change under one id", async () => {
    for (const round of [1, 2]) await createUntilKilled(round, 40, {}, round === 1);
    running = await openRunning({ stateDir, webhookAllow: ["127.0.0.1"] });
    const resources = await listed();
    expect(resources.length).toBeGreaterThan(70);
    await vi.waitFor(() => {
      for (const path of PATHS) {
        const messages = receiver.messages.filter((message) => message.path === path);
        const reported = new Set<string>(messages.map(({ json }) => json.data._id));
        expect(reported).toEqual(new Set(resources.map(({ _id }) => _id)));
      }
    }, WAIT);
    // A message that was sent twice, because its arrival was unknown, has the same id.
    expect(new Set(receiver.messages.map(({ id }) => id)).size).toBe(resources.length);
  });
});
