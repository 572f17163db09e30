import { describe, expect, it } from "vitest";
import { embedSentences, giveSentences } from "../../../src/kb/ingest/sentence-vectors.ts";
import type { ChunkSentences } from "../../../src/kb/store/search-index.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";

const TEXT = "The heron waits by the river. The otter swims under the ice.";

/** What the work asks of a store, over a map; `gone` are deleted before they are written. */
function memory(chunks: number, gone: readonly number[] = []) {
  const given = new Map<number, number>();
  const asked: number[] = [];
  return {
    given,
    asked,
    chunksWithoutSentences: async (_fingerprint: string, limit: number, after = 0) => {
      asked.push(after);
      const refs = Array.from({ length: chunks }, (_, at) => at + 1).filter(
        (ref) => ref > after && !given.has(ref),
      );
      return refs
        .slice(0, limit)
        .map((ref) => ({ ref, accountId: "local", text: ref % 3 === 0 ? "---" : TEXT }));
    },
    putSentences: async (_fingerprint: string, list: readonly ChunkSentences[]) => {
      for (const { ref, vectors } of list) if (!gone.includes(ref)) given.set(ref, vectors.length);
    },
  };
}

describe("embedSentences", () => {
  it("embedSentences returns the sentence vectors of each text, none for a text without sentences", async () => {
    const vectors = await embedSentences(hashedEmbedder(), [TEXT, "", "Short."]);
    expect(vectors.map(({ length }) => length)).toEqual([2, 0, 1]);
    const [first] = await hashedEmbedder().embed(["The heron waits by the river."]);
    expect(vectors[0]?.[0]).toEqual(first);
  });
});

describe("giveSentences", () => {
  const signal = new AbortController().signal;

  it("giveSentences stores sentence vectors for every chunk, also for one without sentences", async () => {
    const store = memory(600);
    expect(await giveSentences(store, hashedEmbedder(), signal)).toBe(600);
    expect(store.given.size).toBe(600);
    expect([store.given.get(1), store.given.get(3)]).toEqual([2, 0]);
  });

  it("giveSentences ends if chunks are deleted meanwhile", async () => {
    const store = memory(300, [5, 299, 300]);
    await giveSentences(store, hashedEmbedder(), signal);
    expect(store.given.size).toBe(297);
    expect(store.asked).toEqual([0, 256, 300]);
  });

  it("giveSentences stops at the signal between two calls of the model, and keeps completed writes", async () => {
    const stop = new AbortController();
    const store = memory(100);
    const real = hashedEmbedder();
    let calls = 0;
    const embedder = {
      ...real,
      embed: (texts: readonly string[]) => {
        if (++calls === 40) stop.abort(new Error("enough"));
        return real.embed(texts);
      },
    };
    await expect(giveSentences(store, embedder, stop.signal)).rejects.toThrow("enough");
    expect(calls).toBe(40);
    expect(store.given.size).toBe(64);
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
  const withBadChunk = (bad: number) => {
    const store = memory(20);
    const look = store.chunksWithoutSentences;
    store.chunksWithoutSentences = async (...asked) =>
      (await look(...asked)).map(({ ref, accountId, text }) => ({
        ref,
        accountId,
        text: ref === bad ? "Cursed words." : text,
      }));
    return store;
  };

  it("giveSentences skips a chunk that the model cannot embed, and does not retry it", async () => {
    const store = withBadChunk(7);
    const left = new Set<number>();
    expect(await giveSentences(store, failingOn("Cursed"), signal, left)).toBe(19);
    expect([...left]).toEqual([7]);
    expect(store.given.has(7)).toBe(false);
    expect(await giveSentences(store, failingOn("Cursed"), signal, left)).toBe(0);
  });

  it("giveSentences gives up no chunk if the model itself fails", async () => {
    const store = memory(64);
    const state = { isDown: false };
    const put = store.putSentences;
    store.putSentences = async (...written) => {
      await put(...written);
      state.isDown = true;
    };
    const left = new Set<number>();
    await expect(giveSentences(store, failingOn("Cursed", state), signal, left)).rejects.toThrow("it fails");
    expect([store.given.size, left.size]).toEqual([32, 0]);
    state.isDown = false;
    store.putSentences = put;
    expect(await giveSentences(store, failingOn("Cursed", state), signal, left)).toBe(32);
  });
});
