import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { OcrRequest } from "../../../src/kb/ingest/extract/ocr-child.ts";
import type { AskOptions } from "../../../src/lib/capped/pool.ts";
import type { CappedEnd } from "../../../src/lib/capped/process.ts";
import { createBody, fileForm, openRunning, type Running } from "../service/running.ts";

const WAIT = { timeout: 30_000, interval: 20 };
const ASYNC = { prefer: "respond-async" };

/** The processes that read documents: a PDF has these pages, and the recogniser reads pages until one that does not end. */
const readers = vi.hoisted(() => ({
  pages: [] as string[],
  asked: [] as number[],
  /** How reading a page ends, in place of its text. `stay`: not before its signal aborts. */
  ends: new Map<number, CappedEnd | "stay">(),
}));
vi.mock("../../../src/lib/capped/pool.ts", async (original) => {
  const real = await original<typeof import("../../../src/lib/capped/pool.ts")>();
  type Kind = Parameters<typeof real.openCappedPool<OcrRequest, unknown, CappedEnd>>[0];
  const recognise = async (kind: Kind, request: OcrRequest, signal: AbortSignal | undefined) => {
    const { page = 0 } = request;
    readers.asked.push(page);
    const end = readers.ends.get(page);
    if (end === "stay") await new Promise((_, reject) => signal?.addEventListener("abort", reject));
    else if (end !== undefined) throw kind.failure(end, request, "got 1 s in 9 s");
    const text = `recognised${page}`;
    const word = { text, confidence: 1, box: { left: 0, top: 0, right: 1, bottom: 1 } };
    return [{ page, lines: [{ ...word, words: [word], startsParagraph: true }] }];
  };
  return {
    ...real,
    openCappedPool: (kind: Kind, ...rest: never[]) => {
      const path = kind.module.pathname;
      if (path.includes("pdf-child"))
        return { ask: async () => [{ texts: readers.pages }], close: () => undefined };
      if (!path.includes("ocr-child")) return Reflect.apply(real.openCappedPool, undefined, [kind, ...rest]);
      const ask = (request: OcrRequest, { signal }: AskOptions) => recognise(kind, request, signal);
      return { ask, close: () => undefined };
    },
  };
});

let stateDir: string;
let running: Running;
/** How far the service's clock is ahead, in ms. */
let aheadMs = 0;
const open = async (): Promise<void> => {
  running = await openRunning({ stateDir, nowMs: () => Date.now() + aheadMs, limits: { drainMs: 100 } });
};
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "kbsync-kept-"));
  readers.pages = ["Typed heron.", "", "", "", ""];
  readers.asked = [];
  readers.ends.clear();
  await open();
});
afterEach(async () => {
  await running.close();
  await rm(stateDir, { recursive: true });
});

const upload = async (bytes = "%PDF-1.7 a"): Promise<string> => {
  const body = fileForm(bytes, "a.pdf");
  return (await running.send("POST", "/image/processing/upload", { body })).json.file_url;
};
const create = async (): Promise<string> => {
  const body = createBody({ content: undefined, url: await upload() });
  return (await running.send("POST", "/api/rag/resource", { body, headers: ASYNC })).json.data._id;
};
const put = (id: string, body: object) =>
  running.send("PUT", `/api/rag/resource/${id}`, { body, headers: ASYNC });
const read = async (id: string) => (await running.send("GET", `/api/rag/resource/${id}`)).json.data;
const isAsked = (...pages: readonly number[]): Promise<void> =>
  vi.waitFor(() => expect(readers.asked).toEqual(pages), WAIT);
/** Ends the waits of the queue. */
const skipWaits = async (): Promise<void> => {
  aheadMs += 10 * 60_000;
  await running.send("POST", "/api/rag/resource", { body: createBody({}), headers: ASYNC });
};

it("a change that leaves the file as it is repeats no page that was read", async () => {
  readers.ends.set(4, "stay");
  const id = await create();
  await isAsked(2, 3, 4);
  // A new title does not wait for the pages either.
  for (const title of ["Birds", "Birds of prey"]) {
    await put(id, { title });
    const metadata = { status: "chunked", warning: "Pages 4–5 are still being read." };
    await vi.waitFor(async () => expect(await read(id)).toMatchObject({ title, metadata }), WAIT);
  }
  await isAsked(2, 3, 4, 4, 4);
  readers.ends.clear();
  await put(id, { title: "Herons" });
  await vi.waitFor(async () => expect((await read(id)).metadata.warning).toBeUndefined(), WAIT);
  expect(readers.asked).toEqual([2, 3, 4, 4, 4, 4, 5]);
  expect(await read(id)).toMatchObject({
    title: "Herons",
    content: "Typed heron.\n\nrecognised2\n\nrecognised3\n\nrecognised4\n\nrecognised5",
    metadata: { status: "chunked", pages: 5 },
  });
});

it("the same file repeats no page that was read if it is uploaded again", async () => {
  readers.ends.set(4, "stay");
  const id = await create();
  await isAsked(2, 3, 4);
  readers.ends.clear();
  await put(id, { url: await upload() });
  await isWhole(id, `Typed heron.\n\n${RECOGNISED}`);
  expect(readers.asked).toEqual([2, 3, 4, 4, 5]);
});

it("a stop repeats no page that was read", async () => {
  readers.ends.set(4, "stay");
  const id = await create();
  await isAsked(2, 3, 4);
  await running.close();
  readers.ends.clear();
  await open();
  await vi.waitFor(async () => expect((await read(id)).metadata.warning).toBeUndefined(), WAIT);
  expect(readers.asked).toEqual([2, 3, 4, 4, 5]);
});

it("a busy machine repeats no page that was read, and none that failed", async () => {
  readers.ends.set(3, "hang").set(5, "busy");
  const id = await create();
  await isAsked(2, 3, 4, 5);
  await vi.waitFor(async () => {
    await skipWaits();
    expect(readers.asked.length).toBeGreaterThan(4);
  }, WAIT);
  readers.ends.delete(5);
  await vi.waitFor(async () => {
    await skipWaits();
    expect((await read(id)).metadata.warning).toContain("Page 3 was not read");
  }, WAIT);
  expect(new Set(readers.asked.slice(4))).toEqual(new Set([5]));
  expect((await read(id)).metadata).toMatchObject({
    status: "chunked",
    warning: "Page 3 was not read: recognising text got 1 s in 9 s, twice.",
  });
  expect((await read(id)).content).toBe("Typed heron.\n\nrecognised2\n\nrecognised4\n\nrecognised5");
});

it("another file is read from its first page", async () => {
  readers.ends.set(4, "stay");
  const id = await create();
  await isAsked(2, 3, 4);
  readers.ends.clear();
  await put(id, { url: await upload("%PDF-1.7 b") });
  await vi.waitFor(() => expect(readers.asked).toEqual([2, 3, 4, 2, 3, 4, 5]), WAIT);
});

const RECOGNISED = "recognised2\n\nrecognised3\n\nrecognised4\n\nrecognised5";
const isWhole = (id: string, content: string): Promise<void> =>
  vi.waitFor(async () => {
    const { metadata, ...document } = await read(id);
    expect(metadata).toEqual({ status: "chunked", pages: readers.pages.length });
    expect(document.content).toBe(content);
  }, WAIT);
/** Replaces the file of a document by one with these typed pages. */
const replace = async (id: string, pages: readonly string[]): Promise<void> => {
  readers.pages = [...pages];
  await put(id, { url: await upload(`%PDF-1.7 ${pages.join()}`) });
};

it("an edit of a typed page is found while the others are read again, and these keep their text", async () => {
  const id = await create();
  await isWhole(id, `Typed heron.\n\n${RECOGNISED}`);
  readers.ends.set(3, "stay");
  await replace(id, ["Typed otter.", "", "", "", ""]);
  const part = { content: `Typed otter.\n\n${RECOGNISED}` };
  const warning = "Pages 2–5 have the text of the version before, and are still being read.";
  await vi.waitFor(
    async () => expect(await read(id)).toMatchObject({ ...part, metadata: { status: "chunked", warning } }),
    WAIT,
  );
  const body = { query: "recognised4", doc_id: id, top_k: 1 };
  const { json } = await running.send("POST", "/rag/query", { body });
  expect(json.results[0].payload.locations).toContainEqual({ pages: { first: 1, last: 5 } });
  readers.ends.clear();
  await put(id, { title: "Otters" });
  await isWhole(id, part.content);
});

it("a document whose new version cannot be read keeps the text of the pages that were recognised before", async () => {
  const id = await create();
  await isWhole(id, `Typed heron.\n\n${RECOGNISED}`);
  readers.ends.set(3, "unable");
  await replace(id, ["Typed otter.", "", "", "", ""]);
  await vi.waitFor(async () => {
    await skipWaits();
    expect(await read(id)).toMatchObject({
      content: `Typed otter.\n\n${RECOGNISED}`,
      metadata: {
        status: "error",
        error: "extraction_failed",
        warning: "Pages 3–5 have the text of the version before, and are not read.",
      },
    });
  }, WAIT);
});

it("a new version with another number of pages leaves the text before searchable until it is whole", async () => {
  const id = await create();
  const before = `Typed heron.\n\n${RECOGNISED}`;
  await isWhole(id, before);
  const { length } = readers.asked;
  readers.ends.set(3, "stay");
  await replace(id, ["Typed otter.", "Typed page.", "", "", "", ""]);
  await isAsked(...readers.asked.slice(0, length), 3);
  expect(await read(id)).toMatchObject({ content: before, metadata: { status: "queued" } });
  readers.ends.clear();
  await put(id, { title: "Otters" });
  await isWhole(
    id,
    "Typed otter.\n\nTyped page.\n\nrecognised3\n\nrecognised4\n\nrecognised5\n\nrecognised6",
  );
});

it("a first version that is replaced while it is read is found by the typed pages of the newer one", async () => {
  readers.ends.set(3, "stay");
  const id = await create();
  await isAsked(2, 3);
  await replace(id, ["Typed otter.", "Typed page.", "", ""]);
  const content = "Typed otter.\n\nTyped page.";
  const metadata = { status: "chunked", warning: "Pages 3–4 are still being read." };
  await vi.waitFor(async () => expect(await read(id)).toMatchObject({ content, metadata }), WAIT);
});
