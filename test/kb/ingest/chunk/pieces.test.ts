import { expect, it } from "vitest";
import { isLowerCase } from "../../../../src/kb/ingest/chunk/pieces.ts";
import { chunkRecursive } from "../../../../src/kb/ingest/chunk/recursive.ts";
import { settings } from "./laws.ts";

it("exactly the letters from a to z are lower case", () => {
  const units = Array.from({ length: 0x10000 }, (_, code) => code);
  expect(String.fromCharCode(...units.filter(isLowerCase))).toBe("abcdefghijklmnopqrstuvwxyz");
});

it.each(Array.from(",;:、，"))(
  "a sentence that is too long is cut after %s rather than after another word",
  (mark) => {
    const text = `aaaa bbbb cccc dddd${mark} eeee ffff gggg hhhh iiii`;
    const [first] = chunkRecursive(text, settings(30, 0));
    expect(text.slice(first?.start, first?.end)).toBe(`aaaa bbbb cccc dddd${mark}`);
  },
);
