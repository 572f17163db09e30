import { describe, expect, it } from "vitest";
import { CONVERTER_VERSION, EXTRACTOR_VERSION } from "../../../../src/sync/plan/versions.ts";
import { composeRecipe } from "../../../../src/sync/scan/read/recipe.ts";
import { openRules, type Rules } from "../../../../src/sync/scan/rules/rules.ts";
import { sourceAt } from "../tree.ts";

const rules = (description?: string): Rules =>
  openRules(
    sourceAt("/nowhere", {
      collection: "moderate",
      ownerId: "me",
      rules: [{ match: "**", ...(description !== undefined && { description }) }],
    }),
  );

describe("a recipe", () => {
  it("takes collection, owner and settings from the source, and the kind from the document", () => {
    const { source } = rules();
    expect(composeRecipe("d/a.md", "file", {}, rules())).toEqual({
      title: "d/a.md",
      description: "d/a.md",
      settings: source.settings,
      tier: "moderate",
      ownerId: "me",
      kind: "file",
      extractorVersion: EXTRACTOR_VERSION,
    });
    expect(composeRecipe("a", "content", {}, rules(), CONVERTER_VERSION).extractorVersion).toBe(
      CONVERTER_VERSION,
    );
  });

  it.each<[what: string, description: string, rules: Rules]>([
    ["the document's own description", "What it is", rules()],
    ["the title in a template", "D/Its title", rules("D/{title}")],
    ["the path and the name in a template", "a.md in d/a.md", rules("{name} in {path}")],
    ["the path for an empty template", "d/a.md", rules(" ")],
    ["unknown words in braces unchanged", "{other}", rules("{other}")],
    ["a description on several lines", "two\nlines", rules(" two\nlines ")],
  ])("puts into a recipe the title on one line, and %s", (_what, description, given) => {
    const naming = { title: " Its\n title", description: "What it is" };
    expect(composeRecipe("d/a.md", "content", naming, given)).toMatchObject({
      title: "Its title",
      description,
    });
  });

  it("uses the path for a document without title and description", () => {
    expect(composeRecipe("d/a.md", "content", { title: " ", description: " " }, rules())).toMatchObject({
      title: "d/a.md",
      description: "d/a.md",
    });
    expect(composeRecipe("a.md", "content", {}, rules("{title}"))).toMatchObject({ description: "a.md" });
  });

  it("cuts a long title, never through a character or after a blank", () => {
    const cut = (title: string): string => composeRecipe("a", "content", { title }, rules()).title;
    const longest = cut("x".repeat(5000)).length;
    expect(cut("x".repeat(longest))).toHaveLength(longest);
    expect(cut(`${"x".repeat(longest - 1)}😀`)).toBe("x".repeat(longest - 1));
    expect(cut(`${"x".repeat(longest - 2)}😀y`)).toBe(`${"x".repeat(longest - 2)}😀`);
    expect(cut(`${"x".repeat(longest - 1)} yy`)).toBe("x".repeat(longest - 1));
    expect(cut("a\uD800b")).toBe("a\uFFFDb");
  });
});
