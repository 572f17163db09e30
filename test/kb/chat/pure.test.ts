import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonObjectOf } from "../../../src/kb/chat/attempts.ts";
import { layoutText } from "../../../src/kb/chat/layout-text.ts";
import { citationsOf, type Passage } from "../../../src/kb/chat/passage.ts";
import { makePrompt, tokensOf, type PromptParts } from "../../../src/kb/chat/prompt.ts";
import { bestSentence, bodyStart, sentencesOf, shareIn } from "../../../src/kb/chat/sentences.ts";
import { queryWords } from "../../../src/kb/lexical/word-match.ts";
import { fillVariables } from "../../../src/kb/chat/variables.ts";
import type { OcrLine } from "../../../src/kb/ingest/extract/ocr-layout.ts";
import { costOf } from "../../../src/kb/models/price.ts";
import { passageOf } from "./passage.ts";

describe("variables", () => {
  it.each<[string, string, Record<string, string | number | boolean>, string, string[]]>([
    ["fills in variables with and without spaces", "{{a}} {{ b }}", { a: "x", b: 2 }, "x 2", []],
    [
      "keeps missing variables, and lists each once",
      "{{a}}{{a}} {{b}}",
      { b: true },
      "{{a}}{{a}} true",
      ["a"],
    ],
    ["does not fill in variables within a value", "{{a}}", { a: "{{b}}", b: "no" }, "{{b}}", []],
    [
      "treats a name like that of a method as missing",
      "{{constructor}}",
      {},
      "{{constructor}}",
      ["constructor"],
    ],
    ["finds no variables in JSON or code", "{a} {{}} {{\n}}", { a: "x" }, "{a} {{}} {{\n}}", []],
  ])("%s", (_name, text, variables, filled, missing) => {
    expect(fillVariables(text, variables, 1000)).toEqual({ text: filled, missing });
  });

  it("finds variables in linear time, whatever the text", () => {
    // A pattern that backtracks over the spaces takes minutes here.
    const text = `{{${" ".repeat(150)}`.repeat(1300);
    const startMs = performance.now();
    expect(fillVariables(text, {}, 200_000)).toEqual({ text, missing: [] });
    expect(fillVariables("{{ }}", {}, 10)).toEqual({ text: "{{ }}", missing: [] });
    expect(performance.now() - startMs).toBeLessThan(1000);
  });

  it.each<[string, string, string, number, string | undefined]>([
    ["returns a filled-in text at the limit", "{{a}}{{a}}!", "xxxxx", 11, "xxxxxxxxxx!"],
    ["returns no filled-in text above the limit by one", "{{a}}{{a}}!!", "xxxxx", 11, undefined],
    [
      "returns no filled-in text far above the limit, and does not build it",
      "{{a}}".repeat(40_000),
      "x".repeat(20_000),
      200_000,
      undefined,
    ],
  ])("%s", (_name, text, a, charsMax, filled) => {
    expect(fillVariables(text, { a }, charsMax)?.text).toBe(filled);
  });
});

describe("citations", () => {
  it("cites a passage with the description of its folder, if it has one", () => {
    const passages = [
      passageOf(1, "The moon.", { folderDescription: "The coast." }),
      passageOf(2, "The sea."),
    ];
    const [one, two] = citationsOf("The moon [1]. The sea [2].", passages);
    expect(one).toMatchObject({ number: 1, folderDescription: "The coast." });
    expect(two).not.toHaveProperty("folderDescription");
  });

  const passage = (number: number, text: string, start = 0): Passage => passageOf(number, text, { start });
  const PASSAGES = [
    passage(1, "The harbour is old. The new crane lifts forty tons.", 100),
    passage(2, "Twice a day the water rises."),
  ];
  it.each<[string, string, [number, string, number][]]>([
    [
      "a citation after a sentence",
      "The crane lifts forty tons [1].",
      [[1, "The new crane lifts forty tons.", 120]],
    ],
    [
      "a citation after the full stop",
      "The crane lifts forty tons. [1]",
      [[1, "The new crane lifts forty tons.", 120]],
    ],
    [
      "several citations at once",
      "The crane lifts, and water rises [1, 2].",
      [
        [1, "The new crane lifts forty tons.", 120],
        [2, "Twice a day the water rises.", 0],
      ],
    ],
    ["a citation that does not exist", "So it is [7].", []],
    [
      "no citation, but words of a passage",
      "The new crane lifts forty tons.",
      [[1, "The new crane lifts forty tons.", 120]],
    ],
    ["no citation, and other words", "I cannot tell from what I was given here.", []],
    ["no citation, and two words of a passage", "Harbour crane.", []],
    [
      "no citation, and most words of a passage, by weight",
      "The harbour crane lifts small boats.",
      [[1, "The new crane lifts forty tons.", 120]],
    ],
    [
      "no citation, and half of the words of a passage",
      "The harbour crane lifts zebras, giraffes and quaggas.",
      [],
    ],
    [
      "citations before the first sentence, and spaces within one",
      "[2 , 1] The water rises.",
      [
        [1, "The harbour is old. The new crane lifts forty tons.", 100],
        [2, "Twice a day the water rises.", 0],
      ],
    ],
    [
      "a passage once that two sentences cite",
      "The crane is new [1]. The crane lifts [1].",
      [[1, "The new crane lifts forty tons.", 120]],
    ],
    [
      "two sentences of a passage in its order",
      "The crane lifts [1]. The harbour is old [1].",
      [
        [1, "The harbour is old.", 100],
        [1, "The new crane lifts forty tons.", 120],
      ],
    ],
    [
      "a citation of a passage without common words",
      "Nonsense [2].",
      [[2, "Twice a day the water rises.", 0]],
    ],
  ])("citationsOf resolves %s", (_name, answer, cited) => {
    const found = citationsOf(answer, PASSAGES);
    expect(found.map(({ number, span }) => [number, span.text, span.start])).toEqual(cited);
    for (const { span } of found) expect(span.end - span.start).toBe(span.text.length);
  });

  it("cites neither of the parts that a chunk repeats from its neighbours", () => {
    const [before, after] = ["The crane is old. ", " The crane is sold."];
    const repeated = passageOf(1, `${before}It lifts tons.${after}`, { start: 50, before, after });
    expect(citationsOf("The crane lifts [1].", [repeated])[0]?.span).toEqual({
      start: 50,
      end: 64,
      text: "It lifts tons.",
    });
  });

  it("spans of sentences match their text, whatever the passage", () => {
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
      "continues in the next line of its paragraph",
      "When was its motor replaced?",
      "It was built in 1962 and its motor was replaced\nin 2019.\nThe mat is red.",
      "",
      "It was built in 1962 and its motor was replaced\nin 2019.",
    ],
    ["ends with its line outside a paragraph", "Colour?", "Colour: red\nSize: 8", "", "Colour: red"],
    [
      "contains the words of the question",
      "Where is the cabinet?",
      DOME,
      "",
      "Unlock the shutter at the cabinet.",
    ],
    [
      "is the first one under a heading with these words",
      "How is the opening done?",
      DOME,
      "",
      "Read the panel.",
    ],
    [
      "counts the title as part of it",
      "Which shutter has the observatory?",
      DOME,
      "Observatory",
      "It has a shutter of two leaves.",
    ],
    ["shares more than function words", "What is the wifi password?", DOME, "", undefined],
    ["is a heading if no other sentence matches", "Which dome?", "# The dome", "", "# The dome"],
    ["has more than function words", "Who is it?", "It is me.", "", undefined],
    [
      "is the shorter one of two with the same words",
      "When was the crane built?",
      "The crane, of which nobody remembers by whom it was built, squeaks.\n\nThe crane was built in 1962.",
      "",
      "The crane was built in 1962.",
    ],
    [
      "contains the words itself, rather than its heading",
      "How is the shutter unlocked?",
      "# Unlock the shutter\n\nRead on.\n\nThe key unlocks the shutter.",
      "",
      "The key unlocks the shutter.",
    ],
  ])("the best sentence %s", (_name, question, text, title, found) => {
    const best = bestSentence(text, queryWords(question), title);
    expect(best?.text).toBe(found);
    expect(best && text.slice(best.start, best.end)).toBe(found);
  });
});

it("front matter and lines without a letter are no sentences", () => {
  const text = "---\ntags: [kitchen]\n---\n# Bread\n\n***\nBake it.\n---\n";
  expect(sentencesOf(text).map((each) => each.text)).toEqual(["# Bread", "Bake it."]);
  expect(bestSentence(text, queryWords("bread"), "Bread")?.text).toBe("Bake it.");
});

it.each([
  ["of two hundred lines", 200, true],
  ["of more than two hundred lines", 201, false],
])("front matter %s", (_name, lines, isFrontMatter) => {
  const head = `---\n${"a: 1\n".repeat(lines)}---\n`;
  expect(bodyStart(`${head}Bread`)).toBe(isFrontMatter ? head.length : 0);
});

it.each([
  ["nothing is asked", "", "Bake bread.", 0],
  ["only function words are asked", "who is it", "It is bread.", 0],
  ["one of two words", "zebra giraffe", "A zebra eats.", 0.5],
  ["all words", "zebra giraffe", "The giraffe eats, the zebra too.", 1],
  ["none", "zebra giraffe quagga", "Bake bread.", 0],
])("the share of a query's words in a text: %s", (_name, query, text, share) => {
  expect(shareIn(queryWords(query), text)).toBe(share);
});

describe("sentences of Markdown", () => {
  const WRAPPED = "The harbour was built in the year of the great flood, when the town moved to the hill,";
  it.each<[string, string, readonly string[]]>([
    [
      "go on in the next line of a wrapped paragraph, whatever it begins with",
      `${WRAPPED} by\n[Ada](a.md) and her sons.\nIt is old.`,
      [`${WRAPPED} by\n[Ada](a.md) and her sons.`, "It is old."],
    ],
    [
      "end before a list, a table, a heading, code and a blank line",
      `${WRAPPED}\n- one\n\n${WRAPPED}\n# Two\n\n${WRAPPED}\n\nThree`,
      [WRAPPED, "one", WRAPPED, "# Two", WRAPPED, "Three"],
    ],
    [
      "are lines in code, without its fences",
      `Run:\n\n\`\`\`sh\nlock the gate with the key of the harbour master and the seal of the town\nOpen\n\`\`\`\nDone.`,
      ["Run:", "lock the gate with the key of the harbour master and the seal of the town", "Open", "Done."],
    ],
    [
      "are found after code that began before the text",
      `end\n\`\`\`\n${WRAPPED}\n\`\`\`sh\nrun\n\`\`\`\n${WRAPPED} by\nAda.`,
      ["end", WRAPPED, "run", `${WRAPPED} by\nAda.`],
    ],
    [
      "are not in comments",
      "It lifts.\n\n<!-- manual\ncd crane\n# lift it\n-->\n\nIt turns.\n<!-- one line --> It stops.",
      ["It lifts.", "It turns.", "It stops."],
    ],
    [
      "are found behind a comment that does not end",
      "It lifts.\n\n<!-- it\n\nIt turns.",
      ["It lifts.", "<!-- it", "It turns."],
    ],
    [
      "are no tags and no addresses of links",
      '<Listing number="1" caption="The crane lifts">\n\nIt lifts.\n\n[crane]: https://harbour.example/crane lift\n</Listing>',
      ["It lifts."],
    ],
  ])("sentences %s", (_name, text, found) => {
    expect(sentencesOf(text).map((each) => each.text)).toEqual(found);
  });
});

it("the first of two equally good sentences is the best, and the first of two headings", () => {
  expect(bestSentence("Red bread.\n\nBlue bread.", queryWords("bread"), "")?.text).toBe("Red bread.");
  expect(bestSentence("# Red bread\n\n# Blue bread", queryWords("bread"), "")?.text).toBe("# Red bread");
  expect(bestSentence("Red bread.\n\nBlue bread.", queryWords("blue bread"), "")).toMatchObject({
    text: "Blue bread.",
    share: 1,
  });
});

it("the title alone makes a sentence match only if it has all words of the question", () => {
  expect(bestSentence("Bake it.", queryWords("bread"), "Bread")?.text).toBe("Bake it.");
  expect(bestSentence("Bake it.", queryWords("who invented bread"), "Bread")).toBeUndefined();
});

describe("the JSON of an answer", () => {
  it.each<[string, string, string | undefined]>([
    ["accepts an object alone", ' {"a": 1}\n', '{"a": 1}'],
    ["accepts an object between code fences", '```json\n{"a": 1}\n```', '{"a": 1}'],
    ["accepts an object between fences without a language", '\n```\n{"a": "```"}\n```\n', '{"a": "```"}'],
    ["refuses a list", "[1]", undefined],
    ["refuses null", "null", undefined],
    ["refuses text", "forty", undefined],
    ["refuses two objects", "{}{}", undefined],
    ["refuses fences that do not close", "```json\n{}", undefined],
    ["refuses a megabyte of fences quickly", "```" + "\n".repeat(500_000) + "{", undefined],
  ])("jsonObjectOf %s", (_name, text, json) => {
    const startMs = performance.now();
    expect(jsonObjectOf(text)).toBe(json);
    expect(performance.now() - startMs).toBeLessThan(1000);
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
  const passage = passageOf(1, "word ".repeat(200), { score: 1 });

  it("the prompt leaves the answer's share of the window free, alternates roles, and includes the newest turns", () => {
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
          const remembered = turns.slice(prompt.turnsLeftOut).map(({ answer }) => answer);
          expect(messages.filter(({ role }) => role === "assistant").map(({ text }) => text)).toEqual(
            remembered,
          );
          expect(prompt.passages.length + prompt.passagesLeftOut).toBe(passages);
        },
      ),
    );
  });

  it("the prompt leaves passages out for the tokens of images, and never refuses an image", () => {
    const image = { mediaType: "image/png", bytes: new Uint8Array(1) } as const;
    const taken = [0, 1, 2, 5].map((count) => {
      const prompt = makePrompt(
        parts({ images: Array.from({ length: count }, () => image), passages: Array(9).fill(passage) }),
      );
      expect(prompt?.messages.at(-1)?.images).toHaveLength(count);
      return prompt?.passages.length;
    });
    expect(taken).toEqual([5, 3, 1, 0]);
  });

  it("tokensOf counts three tokens for ten ASCII characters, and one for each other", () => {
    expect(["", "a", "0123456789", "\u007f".repeat(20), "\u0080", "aé"].map(tokensOf)).toEqual([
      0, 1, 3, 6, 1, 2,
    ]);
  });

  it.each([
    ["a quarter of the window", 4096, 1024],
    ["256 tokens at least", 512, 256],
    ["16,384 tokens at most", 200_000, 16_384],
  ])("the prompt reserves %s for the answer", (_name, contextTokens, reserved) => {
    const free = contextTokens - reserved - 2 * 8;
    const fits = (tokens: number): boolean =>
      makePrompt(parts({ systemPrompt: "", contextTokens, question: "é".repeat(tokens) })) !== undefined;
    const rules = tokensOf(makePrompt(parts({ systemPrompt: "" }))?.messages[0]?.text ?? "");
    expect([fits(free - rules), fits(free - rules + 1)]).toEqual([true, false]);
  });

  it("the prompt gives passages six tenths of what is left, and the thread the rest", () => {
    const one = passageOf(1, "é".repeat(83), { title: "é" });
    const turn = { user: "é".repeat(42), answer: "é".repeat(42) };
    const left = (rest: number): number => {
      const empty = makePrompt(parts({ contextTokens: 10_000, question: "?" }))?.messages ?? [];
      return 10_000 - 2500 - empty.reduce((sum, { text }) => sum + tokensOf(text), 0) - 16 - rest;
    };
    // Each passage and each turn takes 100 tokens.
    const padding = left(1000);
    const prompt = makePrompt(
      parts({
        contextTokens: 10_000,
        question: `?${"é".repeat(padding)}`,
        passages: Array.from({ length: 10 }, () => one),
        turns: Array.from({ length: 10 }, () => turn),
      }),
    );
    expect(prompt).toMatchObject({ passagesLeftOut: 4, turnsLeftOut: 6 });
    expect(prompt?.messages).toHaveLength(2 + 2 * 4);
  });

  it("the prompt shows the images of turns that it leaves out before all others", () => {
    const image = (byte: number) => ({ mediaType: "image/png", bytes: new Uint8Array([byte]) }) as const;
    const turn = (byte: number, user: string) => ({ user, answer: "Yes.", images: [image(byte)] });
    const bytesOf = (turns: ReturnType<typeof turn>[]) =>
      makePrompt(parts({ turns, images: [image(9)], contextTokens: 8192 }))
        ?.messages.filter(({ role }) => role === "user")
        .map((message) => ("images" in message ? message.images.map(({ bytes }) => bytes[0]) : []));
    const long = "é".repeat(9000);
    expect(bytesOf([turn(1, "a"), turn(2, "b")])).toEqual([[1], [2], [9]]);
    expect(bytesOf([turn(1, long), turn(2, "b")])).toEqual([[1, 2], [9]]);
    expect(bytesOf([turn(1, "a"), turn(2, long)])).toEqual([[1, 2, 9]]);
  });

  it("the prompt names what has no words, and asks for JSON on request", () => {
    const prompt = makePrompt(
      parts({ systemPrompt: "", question: "", asJson: true, turns: [{ user: "", answer: "A." }] }),
    );
    expect(prompt?.messages.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^Passages .*\n\nAnswer with one JSON object and nothing else\.$/s),
      "(images)",
      "A.",
      "Describe the images.",
    ]);
  });

  it("there is no prompt if the question alone is too long", () => {
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

  it("layoutText writes a table that was read by columns as rows", () => {
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

  it("layoutText keeps the values of a form with their labels", () => {
    const lines = [
      line("Name:   Ada Byron", 0, 0, true),
      line("Born:   1815", 0, 40),
      line("Signed in London", 0, 120, true),
    ];
    expect(layoutText({ lines })).toBe("Name: | Ada Byron\nBorn: | 1815\n\nSigned in London");
  });

  it("layoutText reads two columns of prose one after another", () => {
    const column = (left: number, word: string) =>
      [0, 40, 80].map((top) => line(`${word} ${word} ${word} ${word} ${word} ${word}`, left, top, top === 0));
    expect(layoutText({ lines: [...column(0, "one"), ...column(500, "two")] })).toMatch(/^[one\s]+[two\s]+$/);
  });

  it.each([
    ["1.4 line heights apart are one cell", 28, "a b\nc d"],
    ["further apart are two cells", 29, "a | b\nc | d"],
  ])("layoutText: words %s", (_name, gap, expected) => {
    const pair = (one: string, other: string, top: number): OcrLine => {
      const box = (left: number) => ({ left, top, right: left + 10, bottom: top + 20 });
      const words = [one, other].map((text, at) => ({ text, confidence: 1, box: box(at * (10 + gap)) }));
      return {
        text: `${one} ${other}`,
        confidence: 1,
        box: { ...box(0), right: 99 },
        words,
        startsParagraph: false,
      };
    };
    expect(layoutText({ lines: [pair("a", "b", 0), pair("c", "d", 40)] })).toBe(expected);
  });

  it.each([
    ["half a line lower are in the same row", 10, "a | b\nc | d"],
    ["more than half a line lower are not", 11, "a\nc\nb\nd"],
  ])("layoutText: cells that stand %s", (_name, lower, expected) => {
    const lines = [line("a", 0, 0), line("c", 0, 60), line("b", 300, lower), line("d", 300, 60 + lower)];
    expect(layoutText({ lines })).toBe(expected);
  });

  it.each([
    ["that touch are in the same row", 10, "a | b\nc | d"],
    ["that overlap are not", 9, "a\nb\nc\nd"],
  ])("layoutText: cells %s", (_name, left, expected) => {
    const lines = [line("a", 0, 0), line("b", left, 0), line("c", 0, 60), line("d", left, 60)];
    expect(layoutText({ lines })).toBe(expected);
    const mirrored = [line("b", left, 0), line("a", 0, 0), line("d", left, 60), line("c", 0, 60)];
    expect(layoutText({ lines: mirrored }).split("\n")).toHaveLength(expected.split("\n").length);
  });

  it.each([
    ["of four words each on average are a table", "e f g h", "a b c d | e f g h\na b c d | e f g h"],
    ["of more words are prose", "e f g h i", "a b c d\na b c d\ne f g h i\ne f g h i"],
  ])("layoutText: cells %s", (_name, other, expected) => {
    const lines = [0, 60].map((top) => line("a b c d", 0, top));
    lines.push(...[0, 60].map((top) => line(other, 400, top)));
    expect(layoutText({ lines })).toBe(expected);
  });

  it("layoutText leaves a single row with a gap as it was read, and separates tables by the rows between", () => {
    const row = (top: number) => line("x   y", 0, top);
    expect(layoutText({ lines: [row(0)] })).toBe("x y");
    const lines = [row(0), row(40), line("between", 0, 80), row(120), row(160), line("behind", 0, 200)];
    expect(layoutText({ lines })).toBe("x | y\nx | y\n\nbetween\n\nx | y\nx | y\n\nbehind");
  });

  it("layoutText contains every word once, whatever the layout", () => {
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
    ["the cost is 0 for an unknown model", undefined, 0],
    ["the cost counts cached input as input", { inputPrice: 10, outputPrice: 20 }, 0.012],
  ])("%s", (_name, facts, cost) => {
    expect(costOf(usage, facts)).toBeCloseTo(cost, 10);
  });
});
