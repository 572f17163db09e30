import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Embedder } from "../../../src/kb/embed/embedder.ts";

/** Contract suite of the port, for every implementation. `absent` says why the suite is skipped. */
export function embedderContract(name: string, open: () => Promise<Embedder>, absent?: string): void {
  const title = absent === undefined ? name : `${name} (skipped: ${absent})`;
  describe.skipIf(absent !== undefined)(`embedder contract: ${title}`, () => {
    let embedder: Embedder;
    beforeAll(async () => {
      embedder = await open();
    });
    afterAll(() => embedder.close());

    it("an embedder returns one unit vector of `dimensions` values per text", async () => {
      const vectors = await embedder.embed(TEXTS);
      expect(vectors).toHaveLength(TEXTS.length);
      for (const vector of vectors) {
        expect(vector).toBeInstanceOf(Float32Array);
        expect(vector).toHaveLength(embedder.dimensions);
        expect(cosine(vector, vector)).toBeCloseTo(1, 4);
      }
    });

    it("an embedder returns an empty list for an empty list", async () => {
      expect(await embedder.embed([])).toEqual([]);
    });

    it("an embedder returns the same vector for a text in any batch, in the order of the texts", async () => {
      const together = await embedder.embed(TEXTS);
      const backwards = await embedder.embed(TEXTS.toReversed());
      for (const [i, text] of TEXTS.entries()) {
        const [alone] = await embedder.embed([text]);
        expect(farthest(together[i], alone)).toBeLessThan(1e-3);
        expect(farthest(backwards[TEXTS.length - 1 - i], alone)).toBeLessThan(1e-3);
      }
    });

    it("an embedder answers concurrent calls like single ones", async () => {
      const alone = await embedder.embed(TEXTS.slice(0, 3));
      const [first, second] = await Promise.all([embedder.embed(TEXTS), embedder.embed(TEXTS.slice(0, 3))]);
      for (let i = 0; i < 3; i++) {
        expect(farthest(first[i], alone[i])).toBeLessThan(1e-3);
        expect(farthest(second[i], alone[i])).toBeLessThan(1e-3);
      }
    });

    it("an embedder truncates a text at `tokensMax` tokens", async () => {
      expect(embedder.tokensMax).toBeGreaterThan(0);
      const full = "word ".repeat(embedder.tokensMax);
      const [cut, more] = await embedder.embed([full, `${full}and then something else altogether`]);
      expect(farthest(cut, more)).toBeLessThan(1e-3);
      const [tail] = await embedder.embed([`and then something else altogether ${full}`]);
      expect(farthest(cut, tail)).toBeGreaterThan(1e-3);
    });

    it("an embedder has a fingerprint without spaces", () => {
      expect(embedder.fingerprint).toMatch(/^\S+$/);
    });

    it("an embedder aborts a call by its signal and answers later ones", async () => {
      const reason = new Error("enough");
      await expect(embedder.embed(["x"], AbortSignal.abort(reason))).rejects.toBe(reason);
      const stop = new AbortController();
      const call = embedder.embed(
        Array.from({ length: 50 }, (_, i) => `${i} ${"word ".repeat(200)}`),
        stop.signal,
      );
      stop.abort(reason);
      await expect(call).rejects.toBe(reason);
      expect(await embedder.embed(["still here"])).toHaveLength(1);
    });

    it("a closed embedder rejects all calls, and closes again without an error", async () => {
      const other = await open();
      const call = other.embed(["in flight"]);
      const closing = other.close();
      await expect(call).rejects.toMatchObject({ code: "closed" });
      await closing;
      await other.close();
      await expect(other.embed(["x"])).rejects.toMatchObject({ code: "closed" });
    });
  });
}

/** Texts of various lengths and kinds; one is repeated. */
const TEXTS = [
  "How do I reset my password?",
  "",
  "The committee met on Tuesday to discuss the budget. ".repeat(30),
  "naïve café 日本語 😀",
  "x",
  "const total = items.reduce((sum, item) => sum + item.price, 0);",
  "How do I reset my password?",
  "0123456789".repeat(100),
];

/** Cosine of two vectors; NaN if one is missing. */
export function cosine(a: Float32Array | undefined, b: Float32Array | undefined): number {
  if (a === undefined || b === undefined) return Number.NaN;
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (const [i, value] of a.entries()) sum += value * (b[i] ?? Number.NaN);
  return sum;
}

/** Largest difference between two values at the same index. */
function farthest(a: Float32Array | undefined, b: Float32Array | undefined): number {
  if (a === undefined || b === undefined) return Number.NaN;
  return Math.max(...a.map((value, i) => Math.abs(value - (b[i] ?? Number.NaN))));
}
