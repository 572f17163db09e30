import { describe, expect, it } from "vitest";
import { embedSentences, giveSentences } from "../../../src/kb/ingest/sentence-vectors.ts";
import type { RowSentences } from "../../../src/kb/store/sentences.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";

const TEXT = "The heron waits by the river. The otter swims under the ice.";

/** What the work asks of a store, over a map; `gone` are deleted before they are written. */
function memory(chunks: number, gone: readonly number[] = []) {
  const given = new Map<number, number>();
  const asked: number[] = [];
  return {
    given,
    asked,
    chunksWithoutSentences: async (_fingerprint: string, after: number, limit: number) => {
      asked.push(after);
      const rows = Array.from({ length: chunks }, (_, at) => at + 1).filter(
        (row) => row > after && !given.has(row),
      );
      return rows.slice(0, limit).map((row) => ({ row, text: row % 3 === 0 ? "---" : TEXT }));
    },
    putSentences: async (_fingerprint: string, list: readonly RowSentences[]) => {
      for (const { row, vectors } of list) if (!gone.includes(row)) given.set(row, vectors.length);
    },
  };
}

describe("embedSentences", () => {
  it("gives each text the vectors of its sentences, none where it has none", async () => {
    const vectors = await embedSentences(hashedEmbedder(), [TEXT, "", "Short."]);
    expect(vectors.map(({ length }) => length)).toEqual([2, 0, 1]);
    const [first] = await hashedEmbedder().embed(["The heron waits by the river."]);
    expect(vectors[0]?.[0]).toEqual(first);
  });
});

describe("giveSentences", () => {
  const signal = new AbortController().signal;

  it("gives every chunk its sentences, also one that has none", async () => {
    const store = memory(600);
    expect(await giveSentences(store, hashedEmbedder(), signal)).toBe(600);
    expect(store.given.size).toBe(600);
    expect([store.given.get(1), store.given.get(3)]).toEqual([2, 0]);
  });

  it("ends although chunks were deleted under its hands", async () => {
    const store = memory(300, [5, 299, 300]);
    await giveSentences(store, hashedEmbedder(), signal);
    expect(store.given.size).toBe(297);
    expect(store.asked).toEqual([0, 256, 300]);
  });

  it("stops for the signal between two calls of the model, and keeps what it wrote", async () => {
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
});
