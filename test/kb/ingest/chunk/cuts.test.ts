import { describe, expect, it } from "vitest";
import { chunkRecursive } from "../../../../src/kb/ingest/chunk/recursive.ts";
import { chunkSemantic } from "../../../../src/kb/ingest/chunk/semantic.ts";
import type { Span } from "../../../../src/kb/ingest/chunk/span.ts";
import { settings } from "./laws.ts";

const DOCUMENTS = 40;
const SIZES = [
  [60, 10],
  [90, 0],
  [160, 50],
  [350, 90],
] as const;

/** Numbers below `limit` that look random and are the same on every run. */
function drawer(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >> 8) % limit;
  };
}

const WORDS =
  "harbour Tide e.g. rises, slowly; 3.14 `mark` the quay (once) — and Dr. Moon's pull 東京の海。 falls: again née |".split(
    " ",
  );

/** A document of all kinds of blocks that the chunkers know, in any order and with the joints that people type. */
function documentOf(seed: number): string {
  const draw = drawer(seed + 1);
  const pick = (options: readonly string[]): string => options[draw(options.length)] ?? "";
  const words = (most: number): string => Array.from({ length: 1 + draw(most) }, () => pick(WORDS)).join(" ");
  const sentence = (): string => `${words(12)}${pick([".", "!", "?", ".", '."', ":", ""])}`;
  const some = (most: number, each: (at: number) => string, joint: string): string =>
    Array.from({ length: 1 + draw(most) }, (_, at) => each(at)).join(joint);
  const indent = (): string => pick(["", "", "  ", "    ", "\t"]);
  const blocks: readonly (() => string)[] = [
    () => `${"#".repeat(1 + draw(7))} ${words(5)}`,
    () => `${words(4)}\n${pick(["===", "---", "--", "-"])}`,
    () => some(4, sentence, pick([" ", "\n"])),
    () => some(3, () => `${sentence()} ${sentence()} ${sentence()} ${sentence()}`, "\n"),
    () => some(5, (at) => `${indent()}${pick(["-", "*", `${at + 1}.`])} ${sentence()}`, "\n"),
    () => some(3, () => `- ${sentence()}\n  ${sentence()}\n\n  ${sentence()}`, "\n"),
    () => `| ${words(2)} | b |\n|---|:-:|\n${some(5, () => `| ${words(3)} | ${words(2)} |`, "\n")}`,
    () => some(4, () => `${words(2)} | ${words(2)}`, "\n"),
    () => {
      const fence = pick(["```", "~~~~", "```js"]);
      const end = pick([`\n${fence.replace("js", "")}`, `\n${fence.replace("js", "")}`, ""]);
      return `${fence}\n${some(7, () => indent() + words(5), pick(["\n", "\n\n"]))}${end}`;
    },
    () => some(4, () => `> ${sentence()}`, pick(["\n", "\n>\n"])),
    () => pick(["---", "***", "_ _ _"]),
    () => some(5, () => `    ${words(5)}`, "\n"),
    () => `[\n${some(4, () => `  {"a": "${words(3)}"}`, ",\n")}\n]`,
    () => "long".repeat(1 + draw(40)),
    () => "海は広いな。大きいな。月がのぼるし、日がしずむ。".repeat(1 + draw(3)),
  ];
  const frontMatter = draw(5) === 0 ? "---\ntitle: Tides\ntags: [a, b]\n---\n" : "";
  const body = Array.from({ length: 5 + draw(9) }, () => {
    const block = (blocks[draw(blocks.length)] ?? sentence)();
    return block + pick(["\n\n", "\n\n", "\n\n", "\n", "\n\n\n", "\r\n\r\n"]);
  });
  return frontMatter + body.join("");
}

/** Where a document is cut, and what each chunk repeats: one line a chunk. */
function recorded(text: string, spans: readonly Span[]): string {
  const lines = spans.map(({ start, end, headings, before = "", after = "" }) => {
    const frame = before === "" && after === "" ? "" : ` in ${JSON.stringify([before, after])}`;
    return `${start}-${end}${headings.length === 0 ? "" : ` under ${JSON.stringify(headings)}`}${frame}`;
  });
  return `${text.length}: ${lines.join("\n  ")}`;
}

/** Unit vectors that change direction every few units of a text, as topics do. */
function meaningOf(seed: number): { readonly vectors: Float32Array; readonly dimensions: number } {
  const draw = drawer(seed + 7);
  let topic = 0;
  const vectors = Array.from({ length: 400 }, () => {
    if (draw(3) === 0) topic = draw(4);
    return Array.from({ length: 4 }, (_, at) => (at === topic ? 1 : 0));
  });
  return { vectors: Float32Array.from(vectors.flat()), dimensions: 4 };
}

// Cuts change only on purpose: chunks that move are embedded again, in every store, and earlier measurements of recall no longer hold.
describe("sample documents are cut where they were cut before", () => {
  it.each(SIZES)(
    "sample documents are cut where they were before, into chunks of %i with an overlap of %i",
    async (size, overlap) => {
      const asked = settings(size, overlap);
      const found = Array.from({ length: DOCUMENTS }, (_, seed) => {
        const text = documentOf(seed);
        return `document ${seed} of ${recorded(text, chunkRecursive(text, asked))}`;
      });
      await expect(`${found.join("\n")}\n`).toMatchFileSnapshot(`cuts/recursive-${size}.txt`);
    },
  );

  it("sample documents are cut by meaning where they were cut before", async () => {
    const found = Array.from({ length: DOCUMENTS }, (_, seed) => {
      const text = documentOf(seed);
      return `document ${seed} of ${recorded(text, chunkSemantic(text, settings(160, 50), 100, meaningOf(seed)))}`;
    });
    await expect(`${found.join("\n")}\n`).toMatchFileSnapshot("cuts/semantic-160.txt");
  });
});
