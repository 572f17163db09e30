import { expect, it } from "vitest";
import { codeWords } from "../../src/lib/system-error.ts";

it.each([
  ["EACCES", "permission denied (EACCES)"],
  ["ENOTSUP", "ENOTSUP"],
])("the code %s reads: %s", (code, words) => {
  expect(codeWords(code)).toBe(words);
});
