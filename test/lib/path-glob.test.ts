import * as fc from "fast-check";
import { expect, it } from "vitest";
import { hasWildcard, pathGlob } from "../../src/lib/path-glob.ts";
import { compileGlob } from "../../src/sync/rules/globs.ts";

it.each([
  ["handbook/*.md", "handbook/dome.md", true],
  ["handbook/*.md", "handbook/old/dome.md", false],
  ["handbook/**", "handbook/old/dome.md", true],
  ["hand*/**", "handbook", false],
  ["**", "a/b.md", true],
  ["**/dome.md", "dome.md", true],
  ["d?me.md", "a/b/dome.md", true],
  ["/d?me.md", "a/dome.md", false],
  ["/d?me.md", "dome.md", true],
  ["hand*/", "handbook/old/dome.md", true],
  ["hand*/", "handbook.md", false],
  ["notes [*].md", "notes [draft].md", true],
  ["*a*b*c", "xaxbxbxc", true],
  ["*a*b*c", "xaxcxb", false],
  ["?", "🌙", true],
])("the glob %s matches %s: %s", (glob, path, expected) => {
  expect(pathGlob(glob)(path)).toBe(expected);
});

it("matches what the globs of the configuration match", () => {
  const part = fc.string({ unit: fc.constantFrom("a", "b", "*", "?"), minLength: 1, maxLength: 5 });
  const glob = fc.array(fc.oneof(part, fc.constant("**")), { minLength: 1, maxLength: 4 });
  const name = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 4 });
  const path = fc.array(name, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(glob, path, (parts, names) => {
      const text = parts.join("/");
      const last = parts.at(-1) ?? "";
      fc.pre(last !== "**" && hasWildcard(last) && !/\*\*[^/]|[^/]\*\*/.test(text));
      expect(pathGlob(text)(names.join("/"))).toBe(compileGlob(text).matchesFile(names.join("/")));
    }),
    { numRuns: 2000 },
  );
});

it("takes no time with a glob that a regular expression would try for hours", () => {
  const startMs = performance.now();
  expect(pathGlob(`${"*a".repeat(90)}b`)("a".repeat(4000))).toBe(false);
  expect(performance.now() - startMs).toBeLessThan(1000);
});
