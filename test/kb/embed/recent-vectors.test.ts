import { expect, it } from "vitest";
import { withRecentVectors } from "../../../src/kb/embed/recent-vectors.ts";

function counting(max?: number) {
  const asked: string[][] = [];
  const embed = withRecentVectors(async (texts) => {
    asked.push([...texts]);
    if (texts.includes("fails")) throw new Error("the model fails");
    return texts.map((text) => new Float32Array([text.length]));
  }, max);
  const lengths = async (...texts: string[]): Promise<number[]> =>
    (await embed(texts)).map((vector) => vector[0] ?? 0);
  return { asked, lengths };
}

it("asks the model once for equal texts of a call and of earlier calls, and keeps the order", async () => {
  const { asked, lengths } = counting();
  expect(await lengths("aa", "b", "aa")).toEqual([2, 1, 2]);
  expect(await lengths("ccc", "b", "")).toEqual([3, 1, 0]);
  expect(await lengths()).toEqual([]);
  expect(asked).toEqual([["aa", "b"], ["ccc", ""], []]);
});

it("forgets the least recently used texts beyond its bound", async () => {
  const { asked, lengths } = counting(2);
  await lengths("a", "b");
  await lengths("a");
  await lengths("c");
  expect(await lengths("a", "b", "c", "d")).toEqual([1, 1, 1, 1]);
  expect(asked).toEqual([["a", "b"], [], ["c"], ["b", "d"]]);
});

it("remembers nothing of a call that fails", async () => {
  const { asked, lengths } = counting();
  await expect(lengths("a", "fails")).rejects.toThrow("the model fails");
  expect(await lengths("a")).toEqual([1]);
  expect(asked).toEqual([["a", "fails"], ["a"]]);
});
