import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Embedder } from "../../../src/kb/embed/embedder.ts";

/** What the port promises, for every implementation. `absent`: why it cannot be run here; the suite is skipped then. */
export function embedderContract(name: string, open: () => Promise<Embedder>, absent?: string): void {
  const title = absent === undefined ? name : `${name} (skipped: ${absent})`;
  describe.skipIf(absent !== undefined)(`embedder contract: ${title}`, () => {
    let embedder: Embedder;
    beforeAll(async () => {
      embedder = await open();
    });
    afterAll(() => embedder.close());

    it("gives one unit vector of `dimensions` values a text", async () => {
      const vectors = await embedder.embed(TEXTS);
      expect(vectors).toHaveLength(TEXTS.length);
      for (const vector of vectors) {
        expect(vector).toBeInstanceOf(Float32Array);
        expect(vector).toHaveLength(embedder.dimensions);
        expect(cosine(vector, vector)).toBeCloseTo(1, 4);
      }
    });

    it("gives an empty list for an empty list", async () => {
      expect(await embedder.embed([])).toEqual([]);
    });

    it("gives the same vector for a text whatever stands beside it, in the order of the texts", async () => {
      const together = await embedder.embed(TEXTS);
      const backwards = await embedder.embed(TEXTS.toReversed());
      for (const [i, text] of TEXTS.entries()) {
        const [alone] = await embedder.embed([text]);
        expect(farthest(together[i], alone)).toBeLessThan(1e-3);
        expect(farthest(backwards[TEXTS.length - 1 - i], alone)).toBeLessThan(1e-3);
      }
    });

    it("answers calls side by side as if they were alone", async () => {
      const alone = await embedder.embed(TEXTS.slice(0, 3));
      const [first, second] = await Promise.all([embedder.embed(TEXTS), embedder.embed(TEXTS.slice(0, 3))]);
      for (let i = 0; i < 3; i++) {
        expect(farthest(first[i], alone[i])).toBeLessThan(1e-3);
        expect(farthest(second[i], alone[i])).toBeLessThan(1e-3);
      }
    });

    it("cuts a text at `tokensMax` tokens", async () => {
      expect(embedder.tokensMax).toBeGreaterThan(0);
      const full = "word ".repeat(embedder.tokensMax);
      const [cut, more] = await embedder.embed([full, `${full}and then something else altogether`]);
      expect(farthest(cut, more)).toBeLessThan(1e-3);
      const [tail] = await embedder.embed([`and then something else altogether ${full}`]);
      expect(farthest(cut, tail)).toBeGreaterThan(1e-3);
    });

    it("has a fingerprint", () => {
      expect(embedder.fingerprint).toMatch(/^\S+$/);
    });

    it("stops for a signal and goes on working", async () => {
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

    it("refuses calls after its end, and ends twice without harm", async () => {
      const other = await open();
      const call = other.embed(["under way"]);
      const closing = other.close();
      await expect(call).rejects.toMatchObject({ code: "closed" });
      await closing;
      await other.close();
      await expect(other.embed(["x"])).rejects.toMatchObject({ code: "closed" });
    });
  });
}

/** Texts of all lengths and kinds; one of them twice. */
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

/** Cosine of two vectors; NaN where one is missing. */
export function cosine(a: Float32Array | undefined, b: Float32Array | undefined): number {
  if (a === undefined || b === undefined) return Number.NaN;
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (const [i, value] of a.entries()) sum += value * (b[i] ?? Number.NaN);
  return sum;
}

/** Largest difference of two values at the same place. */
function farthest(a: Float32Array | undefined, b: Float32Array | undefined): number {
  if (a === undefined || b === undefined) return Number.NaN;
  return Math.max(...a.map((value, i) => Math.abs(value - (b[i] ?? Number.NaN))));
}
