import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { request } from "undici";
import { generateKey } from "../../../src/kb/keys/keys.ts";
import type { Batch, BatchKind } from "../../../src/wire/batch.ts";
import { openWeb, type Page, type Web } from "../fetch/web.ts";
import { killProcess, type ServiceProcess, startProcess } from "./process.ts";
import { createBody } from "./running.ts";

const WAIT = { timeout: 30_000, interval: 20 };
const OWNER = "killed";
/** Enough groups of a batch for several kills. */
const DOCUMENTS = 100;
/** Documents that are left when the service is killed. */
const KILLS = [80, 30];
/** Documents that are taken in at a time. */
const DOWNLOADS = 32;

let stateDir: string;
let key: string;
let service: ServiceProcess | undefined;
let web: Web | undefined;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "kbsync-kill-batch-"));
  key = generateKey();
});
afterEach(async () => {
  await kill();
  await web?.close();
  web = undefined;
  await rm(stateDir, { recursive: true });
});

async function start(): Promise<void> {
  service = await startProcess({ stateDir, key });
}

async function kill(): Promise<void> {
  if (service !== undefined) await killProcess(service.child);
}

/** Sends a request, and returns the data of its answer. */
async function call<T>(method: "GET" | "POST", path: string, body?: object, headers?: object): Promise<T> {
  const answer = await request(`${service?.url}${path}`, {
    method,
    headers: { pauthkey: key, "content-type": "application/json", ...headers },
    body: body === undefined ? null : JSON.stringify(body),
  });
  return ((await answer.body.json()) as { data: T }).data; // all of these answer so
}

/** Runs what the store holds through a query. The store is read beside the service, or without it. */
function stored(sql: string): unknown[] {
  const db = new Database(join(stateDir, "kb.sqlite"), { readonly: true });
  try {
    return db.prepare(sql).pluck().all();
  } finally {
    db.close();
  }
}

const pending = (): number => stored("SELECT position FROM batch_item WHERE code IS NULL").length;

/** Starts a batch, and kills the service each time so many documents are left; then lets it end. Returns what was read after each start. */
async function runThroughKills(
  kind: BatchKind,
  ids: readonly string[],
  killsAt: readonly number[],
): Promise<Batch[]> {
  const headers = { "idempotency-key": "one" };
  const { _id } = await call<Batch>("POST", "/v1/batches", { kind, ids }, headers);
  const seen: Batch[] = [];
  for (const left of killsAt) {
    await vi.waitFor(() => expect(pending()).toBeLessThanOrEqual(left), { ...WAIT, interval: 1 });
    await kill();
    await start();
    // The request is repeated, as a client does that got no answer.
    expect((await call<Batch>("POST", "/v1/batches", { kind, ids }, headers))._id).toBe(_id);
    seen.push(await call<Batch>("GET", `/v1/batches/${_id}`));
  }
  await vi.waitFor(async () => {
    seen.push(await call<Batch>("GET", `/v1/batches/${_id}`));
    expect(seen.at(-1)?.state).toBe("done");
  }, WAIT);
  expect(await call<{ batches: Batch[] }>("GET", "/v1/batches")).toMatchObject({ batches: [{ _id }] });
  return seen;
}

function expectProgress(seen: readonly Batch[]): void {
  expect(seen.map(({ total }) => total)).toEqual(seen.map(() => DOCUMENTS));
  expect(seen.map(({ done }) => done)).toEqual(seen.map(({ done }) => done).toSorted((a, b) => a - b));
  expect(seen.at(-1)).toMatchObject({ state: "done", done: DOCUMENTS, failed: 0 });
}

describe("a batch through kill -9", () => {
  it("deletes every document, those of no other, and continues its count", async () => {
    await start();
    const create = async (owner_id: string): Promise<string> =>
      (await call<{ _id: string }>("POST", "/api/rag/resource", createBody({ owner_id })))._id;
    const ids = await Promise.all(Array.from({ length: DOCUMENTS }, () => create(OWNER)));
    const other = await create("other");
    expectProgress(await runThroughKills("delete", ids, KILLS));
    expect(stored("SELECT id FROM resource WHERE is_deleted = 0")).toEqual([other]);
  });

  it("takes every failed document in again once", async () => {
    let isUp = false;
    const page: Page = (_request, response) => {
      if (isUp) response.writeHead(200, { "content-type": "text/plain" }).end("Words at last.");
      else response.writeHead(404).end();
    };
    const paths = Array.from({ length: DOCUMENTS }, (_, index) => `/page-${index}`);
    web = await openWeb(Object.fromEntries(paths.map((path) => [path, page])));
    await start();
    const ids: string[] = [];
    for (const path of paths) {
      const body = createBody({ owner_id: OWNER, content: undefined, url: web.url(path).href });
      const made = await call<{ _id: string }>("POST", "/api/rag/resource", body, {
        prefer: "respond-async",
      });
      ids.push(made._id);
    }
    const states = (): unknown[] => stored("SELECT DISTINCT status FROM resource");
    await vi.waitFor(() => expect(states()).toEqual(["error"]), WAIT);
    const { length: before } = web.requests;
    isUp = true;
    expectProgress(await runThroughKills("retry", ids, KILLS));
    await vi.waitFor(() => expect(states()).toEqual(["chunked"]), WAIT);
    expect(stored("SELECT DISTINCT version FROM resource")).toEqual([1]);
    const fetched = web.requests.slice(before).map((each) => each.url);
    expect(new Set(fetched).size).toBe(DOCUMENTS);
    // A download that was interrupted is repeated, no other.
    expect(fetched.length - DOCUMENTS).toBeLessThanOrEqual(KILLS.length * DOWNLOADS);
  });
});
