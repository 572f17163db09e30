import { expect, it } from "vitest";
import { similarTo } from "../../src/lib/similar.ts";

const KEYS = ["path", "ownerId", "collection", "include", "exclude", "maxFileBytes"];

it.each([
  ["colection", "collection"],
  ["exlude", "exclude"],
  ["owner_id", "ownerId"],
  ["MaxFileByte", "maxFileBytes"],
  ["paths", "path"],
  ["tier", undefined],
  ["", undefined],
])("%j probably means %j", (word, meant) => {
  expect(similarTo(word, KEYS)).toBe(meant);
});
