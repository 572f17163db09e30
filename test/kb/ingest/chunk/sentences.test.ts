import { describe, expect, it } from "vitest";
import { endsSentence, newStops, nextSentenceEnd } from "../../../../src/kb/ingest/chunk/sentences.ts";

/** The sentences of a text, with the white space between them left out. */
function sentencesOf(text: string, from = 0, to = text.length): string[] {
  const stops = newStops(text);
  const found: string[] = [];
  for (let at = from; at < to;) {
    const end = nextSentenceEnd(text, stops, at, to);
    found.push(text.slice(at, end).trim());
    at = end;
  }
  return found;
}

describe("sentences", () => {
  it.each<[string, readonly string[]]>([
    ["stops before white space", ["One.", "Two!", "Three?", "Four"]],
    [
      "quotes and brackets behind the stop",
      ['"One."', "(Two!)", "[Three?]", "_Four._", "**Five.**", "`Six.`"],
    ],
    ["closing marks in a row", ['He said ("yes!").', "»Nein.« sagte er.", "Three."]],
    ["stops within words", ["Version 3.14 of a.b.c is out.", "See example.org/a?b!c today."]],
    ["dots in a row", ["Well...", "Perhaps!?", "Yes."]],
    ["initials", ["J. R. Smith wrote it.", "He lives in B. Town"]],
    ["letters with dots", ["Take fruit, e.g. apples.", "That is, i.e. all."]],
    [
      "abbreviations",
      [
        "We met Dr. Smith, Mrs. Jones vs. Prof. Brown et al. on St. James.",
        "See fig. 3, cf. vol. 2 resp. no. 7.",
      ],
    ],
    ["abbreviations in capitals", ["NO. 3 is FIGS. 4 and Approx. 5."]],
    ["words that only end like an abbreviation", ["It was fatal.", "He is a demodr.", "Longnos.", "Next."]],
    ["words as long as the longest abbreviation", ["It is approx. so.", "It is sapprox.", "Yes."]],
    ["a digit before the stop", ["In 1999.", "Then 5.", "More."]],
  ])("sentences end at %s", (_name, expected) => {
    expect(sentencesOf(expected.join(" "))).toEqual(expected);
    expect(sentencesOf(expected.join("\n\n"))).toEqual(expected);
    // A stop of another script elsewhere in the text makes the search go unit by unit; it finds the same.
    expect(sentencesOf(`一。 ${expected.join(" ")}`)).toEqual(["一。", ...expected]);
  });

  it.each(Array.from("。！？．｡։۔؟।॥።"))(
    "sentences end at the stop %s without white space behind it",
    (stop) => {
      expect(sentencesOf(`一${stop}二${stop}」三`)).toEqual([`一${stop}`, `二${stop}」`, "三"]);
      expect(endsSentence(stop.charCodeAt(0))).toBe(true);
    },
  );

  it.each(Array.from("、，：；・…–—"))("sentences do not end at %s", (mark) => {
    expect(sentencesOf(`一${mark}二`)).toEqual([`一${mark}二`]);
  });

  it("sentences end at the end of the range, and are found from any offset", () => {
    expect(sentencesOf("One. Two. Three.", 1, 12)).toEqual(["ne.", "Two.", "Th"]);
    expect(sentencesOf("One. Two", 0, 4)).toEqual(["One."]);
    expect(sentencesOf('One." Two', 0, 5)).toEqual(['One."']);
    expect(sentencesOf("Mr. Two", 1)).toEqual(["r. Two"]);
    expect(sentencesOf("xDr. Two", 1)).toEqual(["Dr. Two"]);
  });
});

it("only stops and closing quotes at the end of a line end a sentence", () => {
  const accepted = Array.from({ length: 0x10000 }, (_, code) => code).filter(endsSentence);
  expect(String.fromCharCode(...accepted)).toBe('!".?։؟۔।॥።”。！．？｡');
});
