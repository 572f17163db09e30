import { describe, expect, it } from "vitest";
import { embeddingText } from "../../../src/kb/embed/embedding-text.ts";
import { openEmbeddingFailures, PROBE } from "../../../src/kb/ingest/embedding-failures.ts";
import type { ChunkContext } from "../../../src/kb/store/search-index.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";

const chunkOf = (ref: number): ChunkContext => ({
  ref,
  staleSince: ref + 100,
  title: "",
  headings: [],
  text: `text ${ref}`,
});
const chunks = (count: number): ChunkContext[] => Array.from({ length: count }, (_, ref) => chunkOf(ref));
const ready = async (): Promise<void> => undefined;

/** An embedder that fails for the texts that are named, and notes its calls. */
function openPicky(isBad: (text: string) => boolean) {
  const calls: (readonly string[])[] = [];
  const base = hashedEmbedder();
  const embedder = {
    ...base,
    kind: "local" as const,
    embed: async (texts: readonly string[]) => {
      calls.push(texts);
      if (texts.some(isBad)) throw new Error("it crashed");
      return base.embed(texts);
    },
  };
  return { embedder, calls };
}

describe("chunks that a model may not embed", () => {
  it("a local model embeds four chunks at a time, each with its ref", async () => {
    const failures = openEmbeddingFailures();
    const { embedder, calls } = openPicky(() => false);
    const found = await failures.embed(embedder, chunks(10), ready);
    expect(calls.map((texts) => texts.length)).toEqual([4, 4, 2]);
    expect(calls.flat()).toEqual(chunks(10).map(embeddingText));
    expect(found.map(({ ref, staleSince }) => [ref, staleSince])).toEqual(
      chunks(10).map(({ ref, staleSince }) => [ref, staleSince]),
    );
    expect(chunks(10).some(({ ref }) => failures.isSuspected(ref))).toBe(false);
  });

  it("a remote model embeds 32 chunks at a time", async () => {
    const { embedder, calls } = openPicky(() => false);
    await openEmbeddingFailures().embed({ ...embedder, kind: "remote" }, chunks(40), ready);
    expect(calls.map((texts) => texts.length)).toEqual([32, 8]);
  });

  it("chunks are suspected with all of their call, and no others", async () => {
    const failures = openEmbeddingFailures();
    const { embedder } = openPicky((text) => text.includes("text 5"));
    await expect(failures.embed(embedder, chunks(12), ready)).rejects.toThrow("it crashed");
    const suspects = chunks(12).filter(({ ref }) => failures.isSuspected(ref));
    expect(suspects.map(({ ref }) => ref)).toEqual([4, 5, 6, 7]);
    expect(failures.givenUp()).toEqual([]);
  });

  it("chunks are given up when they fail twice more alone while the model works", async () => {
    const failures = openEmbeddingFailures();
    const { embedder, calls } = openPicky((text) => text.includes("text 1"));
    await expect(failures.embed(embedder, chunks(2), ready)).rejects.toThrow("it crashed");
    calls.length = 0;
    expect(await failures.embedAlone(embedder, chunkOf(0))).toMatchObject({ ref: 0, staleSince: 100 });
    expect(failures.isSuspected(0)).toBe(false);
    expect(await failures.embedAlone(embedder, chunkOf(1))).toBeUndefined();
    expect([failures.isGivenUp(1), failures.givenUp()]).toEqual([false, []]);
    expect(await failures.embedAlone(embedder, chunkOf(1))).toBeUndefined();
    expect([failures.isGivenUp(1), failures.givenUp(), failures.isSuspected(1)]).toEqual([true, [1], true]);
    expect(calls.slice(-1)).toEqual([[PROBE]]);
  });

  it("chunks are not counted while the model itself fails", async () => {
    const failures = openEmbeddingFailures();
    const { embedder } = openPicky(() => true);
    for (let attempt = 0; attempt < 5; attempt++) {
      await expect(failures.embedAlone(embedder, chunkOf(1))).rejects.toThrow("it crashed");
    }
    expect([failures.isSuspected(1), failures.isGivenUp(1)]).toEqual([false, false]);
  });

  it("chunks are suspected where the model gives fewer vectors than texts", async () => {
    const failures = openEmbeddingFailures();
    const embedder = { ...hashedEmbedder(), embed: async () => [] };
    await expect(failures.embed(embedder, chunks(2), ready)).rejects.toThrow("0 vectors for 2 texts");
    expect(failures.isSuspected(1)).toBe(true);
  });

  it("chunks are not suspected when the model may not be called", async () => {
    const failures = openEmbeddingFailures();
    const { embedder, calls } = openPicky(() => false);
    const reason = new Error("stop");
    await expect(failures.embed(embedder, chunks(2), () => Promise.reject(reason))).rejects.toBe(reason);
    expect([calls, failures.isSuspected(0)]).toEqual([[], false]);
  });
});
