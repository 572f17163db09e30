import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { embeddingText } from "../../../src/kb/embed/embedding-text.ts";
import type { ModelEmbedder } from "../../../src/kb/ingest/model.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { createBody, openRunning } from "./running.ts";
import type { Running, RunningOptions } from "./running.ts";
import { lackingChunks } from "../store/embedded.ts";

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

  /** Resolves when every chunk has its vectors. */
  const embedded = async (on: Running): Promise<void> =>
    vi.waitFor(async () => {
      expect(await lackingChunks(on.store.index, "one/64")).toEqual([]);
      const deep = { tiers: ["high_accuracy"], lacks: "sentences" } as const;
      expect(await lackingChunks(on.store.index, "one/64", deep)).toEqual([]);
    }, PATIENCE);

  it.each(["moderate", "high_accuracy"])(
    "embeds nothing again when a tag in front matter changes, and finds the document by it: %s",
    async (tier) => {
      const { embedder, asked } = watchedEmbedder("one/64");
      const on = await start({ openEmbedder: async () => embedder });
      const note = (tags: string): string => `---\ntags: [${tags}]\n---\n${paragraph("alpha")}`;
      const made = await create(on, note("sea"), { owner_id: "ann", collection_details: tier });
      await embedded(on);
      asked.length = 0;

      const body = { content: note("sea, moon"), metadata: { tags: ["sea", "moon"] } };
      expect((await on.send("PUT", `/api/rag/resource/${made._id}`, { body })).status).toBe(200);
      // Another document comes after it.
      await create(on, paragraph("omega"), { collection_details: tier });
      await embedded(on);
      expect(asked.filter((text) => !text.includes("omega"))).toEqual([]);
      expect(await found(on, made.collectionId, "moon")).toEqual([note("sea, moon")]);
    },
  );

  it("does not embed again what an update leaves unchanged", async () => {
    const { embedder, asked } = watchedEmbedder("one/64");
    const on = await start({ openEmbedder: async () => embedder });
    const paragraphs = ["alpha", "beta", "gamma", "delta"].map(paragraph);
    const { _id: id, collectionId } = await create(on, paragraphs.join("\n\n"), { owner_id: "ann" });
    const context = (text: string): string => embeddingText({ title: "Words", headings: [], text });
    await embedded(on);
    expect(asked.splice(0)).toEqual(paragraphs.map(context));

    const changed = paragraphs.with(1, paragraph("omega"));
    const put = (body: object) => on.send("PUT", `/api/rag/resource/${id}`, { body });
    expect((await put({ content: changed.join("\n\n") })).status).toBe(200);
    await embedded(on);
    expect(asked.splice(0)).toEqual([context(paragraph("omega"))]);
    expect(await found(on, collectionId, "gamma")).toContain(paragraph("gamma"));
    asked.splice(0);

    // Under another title all are embedded again, with the same text too.
    expect((await put({ content: changed.join("\n\n"), title: "Letters" })).status).toBe(200);
    await embedded(on);
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
    await embedded(on);
    expect(asked).toHaveLength(2);
    const chunks = async () => (await on.send("GET", `/api/rag/resource/${id}/chunks`)).json.data.chunks;
    const before = await chunks();
    asked.splice(0);

    const body = { metadata: { ...metadata, tags: ["published"] } };
    const { status, json } = await on.send("PUT", `/api/rag/resource/${id}`, { body });
    expect(status).toBe(200);
    expect(json.data.metadata).toMatchObject(body.metadata);
    expect(await lackingChunks(on.store.index, "one/64", { tiers: ["moderate"] })).toEqual([]);
    expect(await chunks()).toEqual(before);
    expect(asked).toEqual([]);
    expect(await found(on, collectionId, "published")).toEqual(expect.arrayContaining(paragraphs));
  });

  it("embeds only the changed chunks of a document", async () => {
    const { embedder, asked } = watchedEmbedder("one/64");
    const on = await start({ openEmbedder: async () => embedder });
    const paragraphs = Array.from({ length: 100 }, (_, at) => paragraph(`word${at}`));
    const { _id: id } = await create(on, paragraphs.join("\n\n"));
    await embedded(on);
    expect(asked.splice(0)).toHaveLength(100);
    const body = { content: paragraphs.with(50, paragraph("omega")).join("\n\n") };
    await on.send("PUT", `/api/rag/resource/${id}`, { body });
    await embedded(on);
    expect(asked).toEqual([embeddingText({ title: "Words", headings: [], text: paragraph("omega") })]);
  });

  it("lets the earlier model serve until the new one has all vectors, then the new one", async () => {
    const one = watchedEmbedder("one/64");
    const first = await start({ openEmbedder: async () => one.embedder });
    const { collectionId } = await create(first, ["alpha", "beta"].map(paragraph).join("\n\n"), {
      owner_id: "ann",
    });
    await embedded(first);
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
    // Nothing of the new model yet: a search is the earlier one's, and words find a new document.
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
    expect(await lackingChunks(third.store.index, "two/64", { tiers: ["moderate"] })).toEqual([]);
    expect(await found(third, collectionId, "gamma")).toContain(paragraph("gamma"));
  });

  it("uses the new model at once if the earlier one is not available", async () => {
    const first = await start({ openEmbedder: async () => watchedEmbedder("one/64").embedder });
    const { collectionId } = await create(first, paragraph("alpha"), { owner_id: "ann" });
    await embedded(first);
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
