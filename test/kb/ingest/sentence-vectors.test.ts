import { describe, expect, it } from "vitest";
import { embedSentences, sentencesOfChunks } from "../../../src/kb/ingest/sentence-vectors.ts";
import type { ChunkText } from "../../../src/kb/store/search-index.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";

const TEXT = "The heron waits by the river. The otter swims under the ice.";

const chunksOf = (count: number, bad?: number): ChunkText[] =>
  Array.from({ length: count }, (_, at) => ({
    ref: at + 1,
    text: at + 1 === bad ? "Cursed words." : (at + 1) % 3 === 0 ? "---" : TEXT,
  }));

describe("embedSentences", () => {
  it("embedSentences returns the sentence vectors of each text, none for a text without sentences", async () => {
    const vectors = await embedSentences(hashedEmbedder(), [TEXT, "", "Short."]);
    expect(vectors.map(({ length }) => length)).toEqual([2, 0, 1]);
    const [first] = await hashedEmbedder().embed(["The heron waits by the river."]);
    expect(vectors[0]?.[0]).toEqual(first);
  });
});

describe("sentencesOfChunks", () => {
  const ready = async (): Promise<void> => undefined;

  it("sentencesOfChunks embeds the sentences of every chunk, also of one without sentences", async () => {
    const made = await sentencesOfChunks(hashedEmbedder(), chunksOf(60), ready);
    expect(made.map(({ ref }) => ref)).toEqual(chunksOf(60).map(({ ref }) => ref));
    expect([made[0]?.vectors.length, made[2]?.vectors.length]).toEqual([2, 0]);
  });

  it("sentencesOfChunks stops at the signal between two calls of the model", async () => {
    const stop = new AbortController();
    const real = hashedEmbedder();
    let calls = 0;
    const embedder = {
      ...real,
      embed: (texts: readonly string[]) => {
        if (++calls === 10) stop.abort(new Error("enough"));
        return real.embed(texts);
      },
    };
    await expect(
      sentencesOfChunks(embedder, chunksOf(64), async () => stop.signal.throwIfAborted()),
    ).rejects.toThrow("enough");
    expect(calls).toBe(10);
  });

  /** An embedder that fails on a word, and on everything when `isDown`. */
  const failingOn = (word: string, state = { isDown: false }) => {
    const embedder = hashedEmbedder();
    return {
      ...embedder,
      embed: async (texts: readonly string[]): Promise<Float32Array[]> => {
        if (state.isDown || texts.some((text) => text.includes(word))) throw new Error("it fails");
        return embedder.embed(texts);
      },
    };
  };

  it("sentencesOfChunks skips a chunk that the model cannot embed, and does not retry it", async () => {
    const left = new Set<number>();
    const chunks = chunksOf(20, 7);
    expect(await sentencesOfChunks(failingOn("Cursed"), chunks, ready, left)).toHaveLength(19);
    expect([...left]).toEqual([7]);
    expect(await sentencesOfChunks(hashedEmbedder(), chunks, ready, left)).toHaveLength(19);
  });

  it("sentencesOfChunks gives up no chunk if the model itself fails", async () => {
    const left = new Set<number>();
    const down = failingOn("Cursed", { isDown: true });
    await expect(sentencesOfChunks(down, chunksOf(4), ready, left)).rejects.toThrow("it fails");
    expect(left.size).toBe(0);
  });
});
