import { array, assert, constantFrom, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { analyze } from "../../../src/kb/lexical/analyzer.ts";
import { LANGUAGES } from "../../../src/kb/lexical/languages.ts";
import { nearTerms } from "../../../src/kb/lexical/near-terms.ts";
import { inLanguages, matchOf, queryWords } from "../../../src/kb/lexical/word-match.ts";

const GERMAN =
  "Die Verwaltung bewahrt die Schlüssel der Wohnungen in einem Schrank auf, und der Plan ist im Flur.";
const RUSSIAN = "Ключи от квартир хранятся в шкафу, а план висит в коридоре.";
const GREEK = "Τα κλειδιά των διαμερισμάτων βρίσκονται στο ντουλάπι του γραφείου.";
const ENGLISH = "The keys of the flats are in a cupboard, and the plan hangs in the corridor.";

const languageOf = (text: string): string | undefined =>
  LANGUAGES.find(({ mark }) => analyze(text).terms.includes(mark))?.name;

describe("the terms of a text are those of its language", () => {
  it.each<[string, string | undefined, string]>([
    ["German", "German", GERMAN],
    ["Russian", "Russian", RUSSIAN],
    ["Greek", "Greek", GREEK],
    [
      "Dutch",
      "Dutch",
      "De sleutels van de woningen liggen in een kast, en het plan hangt naast de deur van het kantoor.",
    ],
    [
      "Italian",
      "Italian",
      "Le chiavi della casa sono nel cassetto, e il piano è nel corridoio che porta alla scala.",
    ],
    ["English", undefined, ENGLISH],
    [
      "French, which has no stems of its own",
      undefined,
      "Les clés de la maison sont dans le tiroir, et le plan est dans le couloir.",
    ],
    [
      "German words in English",
      undefined,
      `The sign says: ${GERMAN.slice(0, 40)} and that is to be read by all of the people who are in it.`,
    ],
    ["too short to tell", undefined, "Schlüssel der Wohnungen"],
    ["symbols in Greek letters", undefined, "5 μm α β γ δ ε 7 λ = 2 π r"],
    [
      "addresses",
      undefined,
      "postgres https://github.com/a mysql https://github.com/b redis https://github.com/c",
    ],
    ["nothing", undefined, ""],
  ])("if it is surely in one: %s", (_name, language, text) => {
    expect(languageOf(text)).toBe(language);
  });

  it("with its mark, except numbers and words in another script", () => {
    expect(analyze(GERMAN).terms).toContain("wohnung\u0001de");
    expect(analyze(`${RUSSIAN} Docker running 2024`).terms).toEqual(
      expect.arrayContaining(["квартир\u0001ru", "docker", "run", "2024"]),
    );
    expect(analyze(`${RUSSIAN} Café größe2`).terms).toEqual(
      expect.arrayContaining(["cafe", "große2", "groesse2"]),
    );
    expect(analyze(`${GERMAN} 2024`).terms).toContain("2024");
  });

  it("except words that are too long to be words", () => {
    // A stemmer would take half a second for it.
    const data = "ё".repeat(20_000);
    expect(analyze(`${RUSSIAN} ${data}`).terms).toContain("е".repeat(64));
  });

  it("with as many words as in English, whatever the language", () => {
    const words = constantFrom(
      ..."die der und Schlüssel straße ключи от шкафу κλειδιά HTTPServer été 東京 x2 e\u0301 - .".split(" "),
    );
    assert(
      property(array(words, { maxLength: 60 }), (parts) => {
        const text = parts.join(" ");
        expect(analyze(text).words).toBe(analyze(text, true).words);
      }),
    );
  });
});

describe("a query in other languages", () => {
  const named = (name: string) => LANGUAGES.filter((language) => language.name === name);
  const german = (query: string) => inLanguages(queryWords(query), query, named("German"));

  it("a query stays as it is where there are no other languages", () => {
    const words = queryWords("keys");
    expect(inLanguages(words, "keys", [])).toBe(words);
  });

  it("a query in other languages has a term for each word beside the English one, and weighs as much with either", () => {
    const words = german("Schlüssel Wohnungen");
    expect(words.terms).toEqual([
      "schlussel",
      "schluessel",
      "wohnungen",
      "schlussel\u0001de",
      "schluessel\u0001de",
      "wohnung\u0001de",
    ]);
    expect(words.otherOf).toEqual([undefined, undefined, undefined, 0, 0, 2]);
    expect(words.total).toBe(queryWords("Schlüssel Wohnungen").total);
    const matched = (terms: readonly string[]): number =>
      matchOf(
        words.weights,
        words.terms.map((term) => Number(terms.includes(term))),
        20,
      ).matched;
    expect(matched(["wohnungen"])).toBe(matched(["wohnung\u0001de"]));
  });

  it("finds a word by all its forms", () => {
    const forms = ["Wohnung", "Wohnungen", "wohnungs"].map((word) => german(word).terms.at(-1));
    expect(new Set(forms)).toEqual(new Set(["wohnung\u0001de"]));
  });

  it("seeks frequent words only if it has no others", () => {
    expect(german("die Wohnung").terms).toEqual(["die", "wohnung", "wohnung\u0001de"]);
    expect(german("wie oder was").terms).toContain("wie\u0001de");
  });

  it("a query in other languages stays within a bound", () => {
    const query = Array.from(
      { length: 3000 },
      (_, at) => `wort${String.fromCodePoint(97 + (at % 26))}x${at}`,
    ).join(" ");
    expect(inLanguages(queryWords(query), query, LANGUAGES).terms.length).toBeLessThan(1100);
  });

  it("a query in other languages has near terms of the same language", () => {
    expect(nearTerms("wohnng\u0001de")).toContain("wohnung\u0001de");
    expect(nearTerms("\u0001de")).toEqual([]);
  });
});
