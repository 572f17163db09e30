import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { buildPdf, textPage } from "../ingest/extract/pdf-fixture.ts";
import { createBody, fileForm, openRunning, type Running } from "../service/running.ts";
import { withMethods } from "../store/with-methods.ts";
import { openReceiver } from "../webhooks/receiver.ts";

/** Recognising a page starts a process, which takes seconds on a busy machine. */
const SLOW = { timeout: 300_000 };
const PATIENCE = { timeout: 120_000, interval: 50 };
const ASYNC = { prefer: "respond-async" };
const READING = "Pages 2–3 are still being read.";

let stateDir: string;
let running: Running;
/** Writes of whole texts wait for this. */
let held: PromiseWithResolvers<void>;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "kbsync-parts-"));
});
afterEach(async () => {
  held.resolve();
  await running.close();
  await rm(stateDir, { recursive: true });
});

async function open(): Promise<void> {
  held = Promise.withResolvers();
  const { promise } = held;
  running = await openRunning({
    stateDir,
    webhookAllow: ["127.0.0.1"],
    limits: { drainMs: 100 },
    wrapStore: (store) =>
      withMethods(store, {
        records: {
          updateResource: async (change, chunking, by) => {
            if (by?.job !== undefined && by.isPart !== true) await promise;
            return store.records.updateResource(change, chunking, by);
          },
        },
      }),
  });
}

const upload = async (words: string, pictures = 2): Promise<string> => {
  const pages = [[words], ...Array.from({ length: pictures }, () => [])];
  const body = fileForm(buildPdf(pages.map(textPage)), "a.pdf");
  return (await running.send("POST", "/image/processing/upload", { body })).json.file_url;
};
const create = async (words: string): Promise<string> => {
  const body = createBody({ content: undefined, url: await upload(words) });
  const { status, json } = await running.send("POST", "/api/rag/resource", { body, headers: ASYNC });
  expect(status).toBe(202);
  return json.data._id;
};
const read = async (id: string) => (await running.send("GET", `/api/rag/resource/${id}`)).json.data;
const found = async (id: string, query: string) => {
  const { json } = await running.send("POST", "/rag/query", { body: { query, doc_id: id } });
  return json.results.map(
    ({ version, payload }: { version: number; payload: { content: string } }) =>
      `${version}: ${payload.content}`,
  );
};
const becomesPart = (id: string): Promise<void> =>
  vi.waitFor(
    async () =>
      expect((await read(id)).metadata).toMatchObject({ status: "chunked", pages: 3, warning: READING }),
    PATIENCE,
  );
const becomesWhole = (id: string): Promise<void> =>
  vi.waitFor(
    async () => expect((await read(id)).metadata).toEqual({ status: "chunked", pages: 3 }),
    PATIENCE,
  );

it(
  "finds a PDF by its typed pages while others are being read, then whole, and reports both",
  SLOW,
  async () => {
    await open();
    const receiver = await openReceiver();
    const admin = await running.issueKey("local", ["admin", "write", "read"]);
    await running.send("POST", "/v1/webhooks", { key: admin, body: { url: `${receiver.url}/` } });
    const id = await create("Typed heron.");
    await becomesPart(id);
    expect(await found(id, "heron")).toEqual(["1: Typed heron."]);
    held.resolve();
    await becomesWhole(id);
    expect(await found(id, "heron")).toEqual(["2: Typed heron."]);
    expect((await read(id)).refreshedAt).toBeNull();
    const chunked = () =>
      receiver.messages.flatMap(({ json }) => (json.type === "resource.chunked" ? [json.data.version] : []));
    await vi.waitFor(() => expect(chunked().toSorted((a, b) => a - b)).toEqual([1, 2]), PATIENCE);
    await receiver.close();
  },
);

it("a create without the queue writes the whole document once", SLOW, async () => {
  await open();
  const body = createBody({ content: undefined, url: await upload("Typed heron.") });
  const { status, json } = await running.send("POST", "/api/rag/resource", { body });
  expect(status).toBe(201);
  expect(json.data.metadata).toBeUndefined();
  expect(await found(json.data._id, "heron")).toEqual(["1: Typed heron."]);
});

it("a PDF whose reading a stop interrupts is whole after the next start", SLOW, async () => {
  await open();
  const id = await create("Typed heron.");
  await becomesPart(id);
  await running.close();
  await open();
  expect(await found(id, "heron")).toEqual(["1: Typed heron."]);
  held.resolve();
  await becomesWhole(id);
  expect(await found(id, "heron")).toEqual(["2: Typed heron."]);
});

it("a newer change of a PDF that is being read wins", SLOW, async () => {
  await open();
  const id = await create("Typed heron.");
  await becomesPart(id);
  const body = { url: await upload("Newer otter.") };
  const changed = await running.send("PUT", `/api/rag/resource/${id}`, { body, headers: ASYNC });
  expect(changed.status).toBe(202);
  held.resolve();
  await vi.waitFor(async () => expect((await read(id)).content).toBe("Newer otter."), PATIENCE);
  await becomesWhole(id);
  expect((await read(id)).content).toBe("Newer otter.");
  expect(await found(id, "heron")).toEqual([]);
});

it(
  "a new title of a PDF that is still being read is answered after the wait that its client accepts",
  SLOW,
  async () => {
    await open();
    const id = await create("Typed heron.");
    await becomesPart(id);
    const changed = await running.send("PUT", `/api/rag/resource/${id}`, {
      body: { title: "Herons" },
      headers: { prefer: "respond-async, wait=1" },
    });
    expect(changed.status).toBe(202);
    held.resolve();
    await becomesWhole(id);
    expect((await read(id)).title).toBe("Herons");
  },
);
