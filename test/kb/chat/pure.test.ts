import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonObjectOf } from "../../../src/kb/chat/attempts.ts";
import { layoutText } from "../../../src/kb/chat/layout-text.ts";
import { citationsOf, type Passage } from "../../../src/kb/chat/passage.ts";
import { makePrompt, tokensOf, type PromptParts } from "../../../src/kb/chat/prompt.ts";
import { bestSentence, sentencesOf, termsOf } from "../../../src/kb/chat/sentences.ts";
import { fillVariables } from "../../../src/kb/chat/turn.ts";
import type { OcrLine } from "../../../src/kb/ingest/extract/ocr-layout.ts";
import { costOf } from "../../../src/kb/models/price.ts";

describe("variables", () => {
  it.each<[string, string, Record<string, string | number | boolean>, string, string[]]>([
    ["are filled in, with spaces and without", "{{a}} {{ b }}", { a: "x", b: 2 }, "x 2", []],
    ["that are missing stay, named once", "{{a}}{{a}} {{b}}", { b: true }, "{{a}}{{a}} true", ["a"]],
    ["in a value are text", "{{a}}", { a: "{{b}}", b: "no" }, "{{b}}", []],
    ["called like a method are missing", "{{constructor}}", {}, "{{constructor}}", ["constructor"]],
    ["in JSON or code are none", "{a} {{}} {{\n}}", { a: "x" }, "{a} {{}} {{\n}}", []],
  ])("%s", (_name, text, variables, filled, missing) => {
    expect(fillVariables(text, variables, 1000)).toEqual({ text: filled, missing });
  });

  it("are found in time that grows with the text alone, whatever it holds", () => {
    // What backtracks over the spaces takes minutes here.
    const text = `{{${" ".repeat(150)}`.repeat(1300);
    const beganMs = performance.now();
    expect(fillVariables(text, {}, 200_000)).toEqual({ text, missing: [] });
    expect(fillVariables("{{ }}", {}, 10)).toEqual({ text: "{{ }}", missing: [] });
    expect(performance.now() - beganMs).toBeLessThan(1000);
  });

  it.each<[string, string, string, number, string | undefined]>([
    ["as long as may be", "{{a}}{{a}}!", "xxxxx", 11, "xxxxxxxxxx!"],
    ["longer by one", "{{a}}{{a}}!!", "xxxxx", 11, undefined],
    ["far longer, which is never made", "{{a}}".repeat(40_000), "x".repeat(20_000), 200_000, undefined],
  ])("make a text %s", (_name, text, a, charsMax, filled) => {
    expect(fillVariables(text, { a }, charsMax)?.text).toBe(filled);
  });
});

describe("citations", () => {
  const passage = (number: number, text: string, start = 0): Passage => ({
    number,
    resourceId: `r${number}`,
    title: `T${number}`,
    chunkId: `c${number}`,
    score: 0.5,
    start,
    text,
  });
  const PASSAGES = [
    passage(1, "The harbour is old. The new crane lifts forty tons.", 100),
    passage(2, "Twice a day the water rises."),
  ];
  it.each<[string, string, [number, string, number][]]>([
    ["behind a sentence", "The crane lifts forty tons [1].", [[1, "The new crane lifts forty tons.", 120]]],
    [
      "behind its full stop",
      "The crane lifts forty tons. [1]",
      [[1, "The new crane lifts forty tons.", 120]],
    ],
    [
      "several at once",
      "The crane lifts, and water rises [1, 2].",
      [
        [1, "The new crane lifts forty tons.", 120],
        [2, "Twice a day the water rises.", 0],
      ],
    ],
    ["that does not exist", "So it is [7].", []],
    [
      "none, though the words are a passage's",
      "The new crane lifts forty tons.",
      [[1, "The new crane lifts forty tons.", 120]],
    ],
    ["none, and words of its own", "I cannot tell from what I was given here.", []],
    [
      "of which no word is there: all of the passage",
      "Nonsense [2].",
      [[2, "Twice a day the water rises.", 0]],
    ],
  ])("name %s", (_name, answer, cited) => {
    const found = citationsOf(answer, PASSAGES);
    expect(found.map(({ number, span }) => [number, span.text, span.start])).toEqual(cited);
    for (const { span } of found) expect(span.end - span.start).toBe(span.text.length);
  });

  it("have spans that are their text, whatever the passage", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (text) => {
        for (const { start, end, text: sentence } of sentencesOf(text)) {
          expect(text.slice(start, end)).toBe(sentence);
          expect(sentence.trim()).toBe(sentence);
        }
      }),
    );
  });
});

describe("the sentence that says most to a question", () => {
  const DOME =
    "# The dome\n\nIt has a shutter of two leaves.\n\n## Opening\n\n1. Read the panel.\n2. Unlock the shutter at the cabinet.\n";
  it.each<[string, string, string, string, string | undefined]>([
    [
      "goes on in the next line of its paragraph",
      "When was its motor replaced?",
      "It was built in 1962 and its motor was replaced\nin 2019.\nThe mat is red.",
      "",
      "It was built in 1962 and its motor was replaced\nin 2019.",
    ],
    ["ends with a line that stands alone", "Colour?", "Colour: red\nSize: 8", "", "Colour: red"],
    ["is one with its words", "Where is the cabinet?", DOME, "", "Unlock the shutter at the cabinet."],
    ["is the first under a heading with them", "How is the opening done?", DOME, "", "Read the panel."],
    [
      "counts the title as said",
      "Which shutter has the observatory?",
      DOME,
      "Observatory",
      "It has a shutter of two leaves.",
    ],
    ["is not one that shares words of every text", "What is the wifi password?", DOME, "", undefined],
    ["is a heading where there is nothing else", "Which dome?", "# The dome", "", "# The dome"],
    ["is found by such words where there are no others", "Who is it?", "It is me.", "", "It is me."],
  ])("%s", (_name, question, text, title, found) => {
    const best = bestSentence(text, termsOf(question), title);
    expect(best?.text).toBe(found);
    expect(best && text.slice(best.start, best.end)).toBe(found);
  });
});

describe("the JSON of an answer", () => {
  it.each<[string, string, string | undefined]>([
    ["stands alone", ' {"a": 1}\n', '{"a": 1}'],
    ["stands between fences", '```json\n{"a": 1}\n```', '{"a": 1}'],
    ["stands between fences without a word", '\n```\n{"a": "```"}\n```\n', '{"a": "```"}'],
    ["is no list", "[1]", undefined],
    ["is no null", "null", undefined],
    ["is not text", "forty", undefined],
    ["is not two objects", "{}{}", undefined],
    ["is not between fences that do not close", "```json\n{}", undefined],
    ["is not a megabyte of fences", "```" + "\n".repeat(500_000) + "{", undefined],
  ])("%s", (_name, text, json) => {
    const beganMs = performance.now();
    expect(jsonObjectOf(text)).toBe(json);
    expect(performance.now() - beganMs).toBeLessThan(1000);
  });
});

describe("the prompt", () => {
  const parts = (more: Partial<PromptParts>): PromptParts => ({
    systemPrompt: "Be brief.",
    passages: [],
    turns: [],
    question: "Why?",
    images: [],
    asJson: false,
    contextTokens: 4096,
    ...more,
  });
  const passage = {
    number: 1,
    resourceId: "r",
    title: "T",
    chunkId: "c",
    score: 1,
    start: 0,
    text: "word ".repeat(200),
  };

  it("never takes more than the window less the answer's share, roles in turn, the newest turns kept", () => {
    fc.assert(
      fc.property(
        fc.record({
          contextTokens: fc.integer({ min: 1024, max: 20_000 }),
          turns: fc.array(
            fc.record({ user: fc.string({ maxLength: 3000 }), answer: fc.string({ maxLength: 3000 }) }),
            { maxLength: 8 },
          ),
          passages: fc.integer({ min: 0, max: 12 }),
          question: fc.string({ maxLength: 4000 }),
        }),
        ({ contextTokens, turns, passages, question }) => {
          const prompt = makePrompt(
            parts({
              contextTokens,
              turns,
              question,
              passages: Array.from({ length: passages }, () => passage),
            }),
          );
          if (prompt === undefined) return;
          const { messages } = prompt;
          const spent = messages.reduce((sum, { text }) => sum + tokensOf(text), 0);
          expect(spent).toBeLessThanOrEqual(contextTokens * 0.75 + 32);
          expect(messages.map(({ role }) => role).slice(1)).toEqual(
            messages.slice(1).map((_message, at) => (at % 2 === 0 ? "user" : "assistant")),
          );
          const kept = turns.slice(prompt.turnsLeftOut).map(({ answer }) => answer);
          expect(messages.filter(({ role }) => role === "assistant").map(({ text }) => text)).toEqual(kept);
          expect(prompt.passages.length + prompt.passagesLeftOut).toBe(passages);
        },
      ),
    );
  });

  it("is none where the question alone is too long", () => {
    expect(makePrompt(parts({ question: "x".repeat(20_000) }))).toBeUndefined();
  });
});

describe("text with positions", () => {
  const line = (text: string, left: number, top: number, startsParagraph = false): OcrLine => {
    let at = left;
    const words = text.split(" ").flatMap((word) => {
      if (word === "") {
        at += 60;
        return [];
      }
      const box = { left: at, top, right: at + word.length * 10, bottom: top + 20 };
      at = box.right + 8;
      return { text: word, confidence: 0.9, box };
    });
    const box = { left, top, right: at - 8, bottom: top + 20 };
    return { text: words.map((word) => word.text).join(" "), confidence: 0.9, box, words, startsParagraph };
  };

  it("of a table read column by column is its rows", () => {
    const lines = [
      line("Prices", 0, 0, true),
      line("Item", 0, 60, true),
      line("Rope", 0, 100),
      line("Paint", 0, 140),
      line("Tons", 300, 60, true),
      line("12.50", 300, 101),
      line("8", 300, 139),
      line("All without tax.", 0, 220, true),
    ];
    expect(layoutText({ lines })).toBe("Prices\n\nItem | Tons\nRope | 12.50\nPaint | 8\n\nAll without tax.");
  });

  it("of a form keeps what belongs to which label", () => {
    const lines = [
      line("Name:   Ada Byron", 0, 0, true),
      line("Born:   1815", 0, 40),
      line("Signed in London", 0, 120, true),
    ];
    expect(layoutText({ lines })).toBe("Name: | Ada Byron\nBorn: | 1815\n\nSigned in London");
  });

  it("of two columns of prose is read column by column", () => {
    const column = (left: number, word: string) =>
      [0, 40, 80].map((top) => line(`${word} ${word} ${word} ${word} ${word} ${word}`, left, top, top === 0));
    expect(layoutText({ lines: [...column(0, "one"), ...column(500, "two")] })).toMatch(/^[one\s]+[two\s]+$/);
  });

  it("holds every word once, whatever stands where", () => {
    const anyLine = fc.record({
      text: fc.array(fc.stringMatching(/^[a-z0-9]{1,8}$/), { minLength: 1, maxLength: 6 }),
      left: fc.integer({ min: 0, max: 1000 }),
      top: fc.integer({ min: 0, max: 1000 }),
      starts: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(anyLine, { maxLength: 20 }), (given) => {
        const lines = given.map(({ text, left, top, starts }) => line(text.join(" "), left, top, starts));
        const words = (text: string) => (text.match(/[a-z0-9]+/g) ?? []).toSorted();
        expect(words(layoutText({ lines }))).toEqual(words(lines.map(({ text }) => text).join(" ")));
      }),
    );
  });
});

describe("the cost of an answer", () => {
  const usage = {
    inputTokens: 1000,
    outputTokens: 100,
    cacheReadTokens: 400,
    cacheCreationTokens: 0,
    reasoningTokens: 0,
  };
  it.each([
    ["is 0 for a model of which nothing is known", undefined, 0],
    ["counts cached input at its price", { inputPrice: 10, cachedInputPrice: 1, outputPrice: 20 }, 0.0084],
    ["counts it as other input where it has none", { inputPrice: 10, outputPrice: 20 }, 0.012],
  ])("%s", (_name, facts, cost) => {
    expect(costOf(usage, facts)).toBeCloseTo(cost, 10);
  });
});
