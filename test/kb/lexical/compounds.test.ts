import { describe, expect, it } from "vitest";
import { partTerms, splitsOf } from "../../../src/kb/lexical/compounds.ts";
import { type Language, LANGUAGES } from "../../../src/kb/lexical/languages.ts";

function named(name: string): Language {
  const found = LANGUAGES.find((language) => language.name === name);
  if (found === undefined) throw new Error(`${name} has no stems`);
  return found;
}

/** The splits of a word with their parts as one text each, without the marks of the language. */
function readings(word: string, name: string): string[] {
  const language = named(name);
  const read = (part: string): string[] =>
    partTerms(part, language).map((term) => term.replace(language.mark, ""));
  return splitsOf(word, language).flatMap(({ head, tail }) =>
    read(head).flatMap((first) => read(tail).map((second) => `${first} ${second}`)),
  );
}

describe("splitsOf", () => {
  it.each([
    ["two words", "Gartenbeete", "German", "gart beet"],
    ["a linking s", "Kündigungsfrist", "German", "kundig frist"],
    ["a linking en", "hondentoestemming", "Dutch", "hond toestemm"],
    ["a linking s in Swedish", "avtalsuppsägning", "Swedish", "avtal uppsagning"],
    ["a linking e in Danish", "hundetilladelse", "Danish", "hund tillad"],
  ])("splitsOf has the parts that were meant: %s", (_name, word, language, meant) => {
    expect(readings(word, language)).toContain(meant);
  });

  it.each([
    ["in a language without compounds", "portachiavi", "Italian"],
    ["of a word too short for two parts", "Hausu", "German"],
    ["of a word with digits", "Gartenbeet2", "German"],
    ["of data", "garten".repeat(7), "German"],
  ])("splitsOf has no split %s", (_name, word, language) => {
    expect(readings(word, language)).toEqual([]);
  });

  it("splitsOf takes no word that is in every text for a part", () => {
    expect(readings("Beetnicht", "German")).not.toContain("beet nicht");
  });
});
