import * as fc from "fast-check";

const word = fc.oneof(
  fc.constantFrom(
    "the",
    "Ledger",
    "e.g.",
    "Dr.",
    "a,",
    "run",
    "`code`",
    "https://example.org/a/b?c=d",
    "3.14",
    "見る。",
    "文字",
    "né\u0301e",
    "👩‍👩‍👧",
    "#tag",
    "|",
    "¿qué?",
  ),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }),
);
const sentence = fc
  .tuple(fc.array(word, { minLength: 1, maxLength: 14 }), fc.constantFrom(".", "!", "?", "", "。", ":", '."'))
  .map(([words, stop]) => words.join(" ") + stop);
const paragraph = fc
  .tuple(fc.array(sentence, { minLength: 1, maxLength: 6 }), fc.constantFrom(" ", "\n"))
  .map(([sentences, joint]) => sentences.join(joint));
const heading = fc
  .tuple(fc.integer({ min: 1, max: 7 }), sentence)
  .map(([level, title]) => `${"#".repeat(level)} ${title}`);
const underlined = fc
  .tuple(sentence, fc.constantFrom("===", "---"))
  .map(([title, line]) => `${title}\n${line}`);
const list = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.constantFrom("-", "*", "1.", "12)"), sentence), {
    minLength: 1,
    maxLength: 8,
  })
  .map((items) => items.map(([depth, mark, text]) => `${"  ".repeat(depth)}${mark} ${text}`).join("\n"));
const table = fc
  .array(fc.array(word, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 6 })
  .map((rows) =>
    rows
      .map((cells) => `| ${cells.join(" | ")} |`)
      .toSpliced(1, 0, "|---|---|")
      .join("\n"),
  );
const code = fc
  .tuple(fc.constantFrom("```", "~~~~", "```js"), fc.array(sentence, { maxLength: 8 }), fc.boolean())
  .map(([fence, body, closed]) => [fence, ...body, ...(closed ? [fence.replace(/\w+/, "")] : [])].join("\n"));
const quote = paragraph.map((text) => text.replaceAll(/^/gm, "> "));
const odd = fc.constantFrom(
  "---",
  "***",
  "> ",
  "    ",
  "\t- x",
  "|",
  "```",
  "===",
  "-",
  "# ",
  "\u2028",
  "\ufeff",
  "x".repeat(300),
);

/** Markdown-like texts of many blocks, with broken and unusual ones among them. */
export const markdownish: fc.Arbitrary<string> = fc
  .tuple(
    fc.array(
      fc.tuple(
        fc.oneof(paragraph, heading, underlined, list, table, code, quote, odd),
        fc.constantFrom("\n\n", "\n", "\n\n\n", "\n \n"),
      ),
      { maxLength: 24, size: "max" },
    ),
    fc.constantFrom("", "---\ntitle: x\n---\n", "\ufeff", "---\n"),
    fc.boolean(),
  )
  .map(([blocks, front, carriage]) => {
    const text = front + blocks.map(([block, gap]) => block + gap).join("");
    return carriage ? text.replaceAll("\n", "\r\n") : text;
  });

/** Any UTF-16 text: lone surrogates, pairs, marks and white space of every kind close together. */
export const anyText: fc.Arbitrary<string> = fc
  .array(
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc.constantFrom(
          "a",
          "b",
          " ",
          "\n",
          "\r\n",
          "\t",
          ".",
          "。",
          "漢",
          "#",
          "-",
          "|",
          ">",
          "`",
        ),
      },
      {
        weight: 2,
        arbitrary: fc.constantFrom(
          "😀",
          "👍🏽",
          "e\u0301",
          "\ud83d",
          "\ude00",
          "\u200d",
          "\ufe0f",
          "\u00a0",
          "\u3000",
          "\ufeff",
          "\u2029",
          "\0",
          "\r",
        ),
      },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) },
    ),
    { maxLength: 400, size: "max" },
  )
  .map((parts) => parts.join(""));

/** Sizes and overlaps, small ones above all, where every rule is under strain. */
export const sizes: fc.Arbitrary<{ size: number; overlap: number }> = fc
  .tuple(
    fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 200 }), fc.constantFrom(1000, 4000)),
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.boolean(),
  )
  .map(([size, share, shares]) => ({
    size,
    overlap: shares ? Math.min(size - 1, Math.floor(size * share)) : 0,
  }));
