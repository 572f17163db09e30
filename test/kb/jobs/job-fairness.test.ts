import { afterEach, expect, it, vi } from "vitest";
import { openWeb } from "../fetch/web.ts";
import { createBody, openRunning, type Running, type RunningOptions } from "../service/running.ts";
import { withMethods } from "../store/with-methods.ts";

const WAIT = { timeout: 20_000, interval: 20 };
/** More than the slots of documents in ingestion. */
const MANY = 40;

let running: Running | undefined;
afterEach(() => running?.close());

async function open(options: RunningOptions): Promise<Running> {
  running = await openRunning(options);
  return running;
}

/** Queues a text as a background job; returns the id of its resource. */
async function queue(service: Running, key: string, change: object): Promise<string> {
  const made = await service.send("POST", "/api/rag/resource", {
    key,
    body: createBody(change),
    headers: { prefer: "respond-async" },
  });
  expect(made.status).toBe(202);
  return made.json.data._id;
}

const statusOf = async (service: Running, key: string, id: string): Promise<string> =>
  (await service.send("GET", `/api/rag/resource/${id}`, { key })).json.data.metadata.status;

it("documents that wait for the embedder delay no other documents, not even of their account", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const embed = async (texts: readonly string[]): Promise<Float32Array[]> => {
    await released;
    return texts.map(() => Float32Array.of(1, 0));
  };
  const service = await open({
    openEmbedder: async () => ({
      fingerprint: "slow",
      dimensions: 2,
      tokensMax: 256,
      embed,
      close: async () => undefined,
    }),
  });
  const waiting: string[] = [];
  const settings = { strategy: "semantic", chunkSize: 20, chunkOverlap: 0 };
  for (let at = 0; at < MANY; at += 1)
    waiting.push(await queue(service, service.key, { settings, title: `${at}` }));
  const note = await queue(service, service.key, {});
  await vi.waitFor(async () => expect(await statusOf(service, service.key, note)).toBe("chunked"), WAIT);
  const states = await Promise.all(waiting.map((id) => statusOf(service, service.key, id)));
  expect(new Set(states)).toEqual(new Set(["queued"]));
  release();
  await vi.waitFor(
    async () => expect(await statusOf(service, service.key, waiting.at(-1) ?? "")).toBe("chunked"),
    WAIT,
  );
});

it("links to slow servers delay no other documents, not even of their account", async () => {
  const web = await openWeb({
    "/slow": () => undefined,
    "/quick": (_request, response) => response.end("Quick words."),
  });
  const service = await open({ fetchAllow: ["127.0.0.1"] });
  const linkTo = (path: string) => ({ content: undefined, url: web.url(path).href });
  for (let at = 0; at < 200; at += 1) await queue(service, service.key, linkTo("/slow"));
  await vi.waitFor(() => expect(web.requests.length).toBeGreaterThanOrEqual(32), WAIT);
  const note = await queue(service, service.key, {});
  const other = await service.issueKey("other");
  const link = await queue(service, other, linkTo("/quick"));
  await vi.waitFor(async () => expect(await statusOf(service, service.key, note)).toBe("chunked"), WAIT);
  await vi.waitFor(async () => expect(await statusOf(service, other, link)).toBe("chunked"), WAIT);
  await web.close();
});

it("an account with more documents than slots leaves slots to other accounts", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const started: string[] = [];
  const service = await open({
    wrapStore: (store) =>
      withMethods(store, {
        records: {
          updateResource: async (...given) => {
            started.push(given[0].accountId);
            await released;
            return store.records.updateResource(...given);
          },
        },
      }),
  });
  const other = await service.issueKey("other");
  for (let at = 0; at < MANY; at += 1) await queue(service, service.key, { title: `${at}` });
  const { id: busy } = await service.store.records.ensureAccount("local");
  await vi.waitFor(() => expect(started.length).toBeGreaterThan(20), WAIT);
  await queue(service, other, {});
  await vi.waitFor(() => expect(started.some((accountId) => accountId !== busy)).toBe(true), WAIT);
  release();
});
