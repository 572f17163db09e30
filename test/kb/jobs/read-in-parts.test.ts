import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { buildPdf, textPage } from "../ingest/extract/pdf-fixture.ts";
import { createBody, fileForm, openRunning, type Running } from "../service/running.ts";
import { withMethods } from "../store/with-methods.ts";
import { openReceiver } from "../webhooks/receiver.ts";

/** Recognising a page starts a process, which takes seconds on a busy machine. */
const SLOW = { timeout: 300_000 };
const PATIENCE = { timeout: 120_000, interval: 50 };

let running: Running;
/** Writes of whole texts by the queue wait for this. */
const held = Promise.withResolvers<void>();
/** Failures of jobs wait for this. */
const failing = Promise.withResolvers<void>();
beforeAll(async () => {
  running = await openRunning({
    webhookAllow: ["127.0.0.1"],
    wrapStore: (store) =>
      withMethods(store, {
        records: {
          failJob: async (...failure) => {
            await failing.promise;
            return store.records.failJob(...failure);
          },
          updateResource: async (change, chunking, by) => {
            if (by?.job !== undefined && by.isPart !== true) await held.promise;
            return store.records.updateResource(change, chunking, by);
          },
        },
      }),
  });
});
afterAll(async () => {
  held.resolve();
  failing.resolve();
  await running.close();
});

const upload = async (pages: readonly string[][] = [["Typed heron."], [], []]): Promise<string> => {
  const body = fileForm(buildPdf(pages.map(textPage)), "a.pdf");
  return (await running.send("POST", "/image/processing/upload", { body })).json.file_url;
};
const create = async (headers: Record<string, string> = {}) => {
  const body = createBody({ content: undefined, url: await upload() });
  return running.send("POST", "/api/rag/resource", { body, headers });
};
const found = async (id: string) => {
  const { json } = await running.send("POST", "/rag/query", { body: { query: "heron", doc_id: id } });
  return json.results.map(
    ({ version, payload }: { version: number; payload: { content: string } }) =>
      `${version}: ${payload.content}`,
  );
};

it(
  "finds a PDF by its typed pages while others are being read, then whole, and reports both",
  SLOW,
  async () => {
    const receiver = await openReceiver();
    const admin = await running.issueKey("local", ["admin", "write", "read"]);
    await running.send("POST", "/v1/webhooks", { key: admin, body: { url: `${receiver.url}/` } });
    const { status, json } = await create({ prefer: "respond-async" });
    expect(status).toBe(202);
    const id: string = json.data._id;
    const read = async () => (await running.send("GET", `/api/rag/resource/${id}`)).json.data;
    const becomes = (metadata: object): Promise<void> =>
      vi.waitFor(async () => expect((await read()).metadata).toEqual(metadata), PATIENCE);
    await becomes({ status: "chunked", pages: 3, warning: "Pages 2–3 are still being read." });
    expect(await found(id)).toEqual(["1: Typed heron."]);
    held.resolve();
    await becomes({ status: "chunked", pages: 3 });
    expect(await found(id)).toEqual(["2: Typed heron."]);
    expect((await read()).refreshedAt).toBeNull();
    const chunked = () =>
      receiver.messages.flatMap((message) =>
        message.json.type === "resource.chunked" ? [message.json.data.version] : [],
      );
    await vi.waitFor(() => expect(chunked().toSorted((a, b) => a - b)).toEqual([1, 2]), PATIENCE);
    await receiver.close();
  },
);

it("a create without the queue writes the whole document once", SLOW, async () => {
  const { status, json } = await create();
  expect(status).toBe(201);
  expect(json.data.metadata).toBeUndefined();
  expect(await found(json.data._id)).toEqual(["1: Typed heron."]);
});

it(
  "a queued PDF without any text layer says that its pages are being read, until it ends",
  SLOW,
  async () => {
    const body = createBody({ content: undefined, url: await upload([[], []]) });
    const { json } = await running.send("POST", "/api/rag/resource", {
      body,
      headers: { prefer: "respond-async" },
    });
    const metadata = async () => {
      const { json: shown } = await running.send("GET", `/api/rag/resource/${json.data._id}`);
      return shown.data.metadata;
    };
    const warning = "Pages 1–2 are still being read.";
    await vi.waitFor(
      async () => expect(await metadata()).toMatchObject({ status: "queued", warning }),
      PATIENCE,
    );
    failing.resolve();
    await vi.waitFor(async () => expect((await metadata()).status).toBe("error"), PATIENCE);
    expect((await metadata()).warning).toBeUndefined();
  },
);
