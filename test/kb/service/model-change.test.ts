import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { embeddingText } from "../../../src/kb/embed/embedding-text.ts";
import type { ModelEmbedder } from "../../../src/kb/ingest/model.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { createBody, openRunning } from "./running.ts";
import type { Running, RunningOptions } from "./running.ts";

/** A hashed embedder that keeps what it was asked, and answers nothing while it is held. */
function watchedEmbedder(fingerprint: string) {
  const real = hashedEmbedder(fingerprint);
  const asked: string[] = [];
  let gate = Promise.resolve();
  let open = (): void => undefined;
  const embedder: ModelEmbedder = {
    ...real,
    embed: async (texts) => {
      await gate;
      asked.push(...texts);
      return real.embed(texts);
    },
    close: async () => {
      open();
    },
  };
  return {
    embedder,
    asked,
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = promise;
      open = resolve;
    },
    release: () => open(),
  };
}

const paragraph = (name: string): string => `${name} `.repeat(12).trim();
/** For what happens behind an answer. */
const PATIENCE = { timeout: 10_000 };
const SETTINGS = { strategy: "recursive", chunkSize: 100, chunkOverlap: 0 };

describe("vectors of documents that change", () => {
  let stateDir: string;
  let running: Running | undefined;
  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), "kbsync-model-"));
  });
  afterEach(async () => {
    await running?.close();
    await rm(stateDir, { recursive: true });
  });

  const start = async (options: RunningOptions): Promise<Running> => {
    running = await openRunning({ ...options, stateDir });
    return running;
  };
  const create = async (on: Running, content: string, change: object = {}) => {
    const body = createBody({
      title: "Words",
      content,
      settings: SETTINGS,
      collection_details: "moderate",
      ...change,
    });
    const { status, json } = await on.send("POST", "/api/rag/resource", { body });
    expect(status).toBe(201);
    return json.data;
  };
  /** Contents found by a query no chunk holds a word of but by its vector: the hashed embedder folds case, the index stems. */
  const found = async (on: Running, collectionId: string, query: string): Promise<string[]> => {
    const body = { collection_id: collectionId, owner_id: "ann", query, top_k: 3 };
    const { json } = await on.send("POST", "/rag/query", { body });
    return json.results.map(({ payload }: { payload: { content: string } }) => payload.content);
  };

  it.each(["moderate", "high_accuracy"])(
    "embeds nothing again when a tag in front matter changes, and finds the document by it: %s",
    async (tier) => {
      const { embedder, asked } = watchedEmbedder("one/64");
      const on = await start({ openEmbedder: async () => embedder });
      const note = (tags: string): string => `---\ntags: [${tags}]\n---\n${paragraph("alpha")}`;
      const made = await create(on, note("sea"), { owner_id: "ann", collection_details: tier });
      await vi.waitFor(() => expect(asked.length).toBeGreaterThan(tier === "moderate" ? 0 : 1), PATIENCE);
      asked.length = 0;

      const body = { content: note("sea, moon"), metadata: { tags: ["sea", "moon"] } };
      expect((await on.send("PUT", `/api/rag/resource/${made._id}`, { body })).status).toBe(200);
      expect(asked).toEqual([]);
      expect(await found(on, made.collectionId, "moon")).toEqual([note("sea, moon")]);
    },
  );

  it("does not embed again what an update leaves unchanged", async () => {
    const { embedder, asked } = watchedEmbedder("one/64");
    const on = await start({ openEmbedder: async () => embedder });
    const paragraphs = ["alpha", "beta", "gamma", "delta"].map(paragraph);
    const { _id: id, collectionId } = await create(on, paragraphs.join("\n\n"), { owner_id: "ann" });
    const context = (text: string): string => embeddingText({ title: "Words", headings: [], text });
    expect(asked.splice(0)).toEqual(paragraphs.map(context));

    const changed = paragraphs.with(1, paragraph("omega"));
    const put = (body: object) => on.send("PUT", `/api/rag/resource/${id}`, { body });
    expect((await put({ content: changed.join("\n\n") })).status).toBe(200);
    expect(asked.splice(0)).toEqual([context(paragraph("omega"))]);
    expect(await found(on, collectionId, "gamma")).toContain(paragraph("gamma"));
    asked.splice(0);

    // Under another title all are embedded again: the same text, at once or behind the answer.
    expect((await put({ content: changed.join("\n\n"), title: "Letters" })).status).toBe(200);
    expect(asked.splice(0)).toHaveLength(4);
    expect((await put({ title: "Signs" })).status).toBe(200);
    await vi.waitFor(() => expect(asked).toHaveLength(4), PATIENCE);
    expect(asked).toEqual(changed.map((text) => embeddingText({ title: "Signs", headings: [], text })));
  });

  it("embeds nothing and keeps the chunks when only the metadata changes, and finds the document by its new tag", async () => {
    const { embedder, asked } = watchedEmbedder("one/64");
    const on = await start({ openEmbedder: async () => embedder });
    const paragraphs = ["alpha", "beta"].map(paragraph);
    const metadata = { path: "notes/letters.md", tags: ["draft"] };
    const { _id: id, collectionId } = await create(on, paragraphs.join("\n\n"), {
      owner_id: "ann",
      metadata,
    });
    expect(asked).toHaveLength(2);
    const chunks = async () => (await on.send("GET", `/api/rag/resource/${id}/chunks`)).json.data.chunks;
    const before = await chunks();
    asked.splice(0);

    const body = { metadata: { ...metadata, tags: ["published"] } };
    const { status, json } = await on.send("PUT", `/api/rag/resource/${id}`, { body });
    expect(status).toBe(200);
    expect(json.data.metadata).toMatchObject(body.metadata);
    expect(await on.store.index.chunksWithoutVector("one/64", ["moderate"], 1)).toEqual([]);
    expect(await chunks()).toEqual(before);
    expect(asked).toEqual([]);
    expect(await found(on, collectionId, "published")).toEqual(expect.arrayContaining(paragraphs));
  });

  it("embeds only the changed chunks of a document", async () => {
    const { embedder, asked } = watchedEmbedder("one/64");
    const on = await start({ openEmbedder: async () => embedder });
    const paragraphs = Array.from({ length: 100 }, (_, at) => paragraph(`word${at}`));
    const { _id: id } = await create(on, paragraphs.join("\n\n"));
    await vi.waitFor(() => expect(asked).toHaveLength(100), PATIENCE);
    asked.splice(0);
    const body = { content: paragraphs.with(50, paragraph("omega")).join("\n\n") };
    await vi.waitFor(
      async () => expect(await on.store.index.chunksWithoutVector("one/64", ["moderate"], 1)).toEqual([]),
      PATIENCE,
    );
    await on.send("PUT", `/api/rag/resource/${id}`, { body });
    expect(asked).toEqual([embeddingText({ title: "Words", headings: [], text: paragraph("omega") })]);
    expect(await on.store.index.chunksWithoutVector("one/64", ["moderate"], 1)).toEqual([]);
  });

  it("lets the earlier model serve until the new one has all vectors, then the new one", async () => {
    const one = watchedEmbedder("one/64");
    const first = await start({ openEmbedder: async () => one.embedder });
    const { collectionId } = await create(first, ["alpha", "beta"].map(paragraph).join("\n\n"), {
      owner_id: "ann",
    });
    await first.close();

    const earlier = watchedEmbedder("one/64");
    const two = watchedEmbedder("two/64");
    two.hold();
    const options = {
      openEmbedder: async () => two.embedder,
      openEarlierEmbedder: async () => earlier.embedder,
    };
    const second = await start(options);
    const place = {
      accountId: (await second.store.records.ensureAccount("local")).id,
      collectionId,
      ownerId: "ann",
    };
    const key = { key: second.key };
    // Nothing of the new model yet: a search and a new document are the earlier one's.
    expect(await found(second, collectionId, "alpha")).toContain(paragraph("alpha"));
    expect(earlier.asked).toEqual(["alpha"]);
    await create(second, paragraph("gamma"), { owner_id: "ann", ...key });
    expect(await second.store.index.servingFingerprint(place)).toBe("one/64");
    expect(await found(second, collectionId, "gamma")).toContain(paragraph("gamma"));
    expect(two.asked).toEqual([]);
    // Ended in the middle, it goes on with the next start.
    two.release();
    await second.close();

    const third = await start({ ...options, openEmbedder: async () => watchedEmbedder("two/64").embedder });
    await vi.waitFor(
      async () => expect(await third.store.index.servingFingerprint(place)).toBe("two/64"),
      PATIENCE,
    );
    expect(await third.store.index.chunksWithoutVector("two/64", ["moderate"], 1)).toEqual([]);
    expect(await found(third, collectionId, "gamma")).toContain(paragraph("gamma"));
  });

  it("uses the new model at once if the earlier one is not available", async () => {
    const first = await start({ openEmbedder: async () => watchedEmbedder("one/64").embedder });
    const { collectionId } = await create(first, paragraph("alpha"), { owner_id: "ann" });
    await first.close();
    const two = watchedEmbedder("two/64");
    const second = await start({
      openEmbedder: async () => two.embedder,
      openEarlierEmbedder: async () => watchedEmbedder("three/64").embedder,
    });
    expect(await found(second, collectionId, "alpha")).toContain(paragraph("alpha"));
    await vi.waitFor(() => expect(two.asked).toContain("alpha"), PATIENCE);
  });
});
