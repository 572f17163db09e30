import { describe, expect, it } from "vitest";
import { chunkRecursive } from "../../../../src/kb/ingest/chunk/recursive.ts";
import { chunkText } from "../../../../src/kb/ingest/chunk/span.ts";
import { expectLawful, settings } from "./laws.ts";

/** The chunks as text. */
function chunksOf(text: string, size: number, overlap = 0): string[] {
  return chunkRecursive(text, settings(size, overlap)).map(({ start, end }) => text.slice(start, end));
}

/** A sentence of exactly `units` units. */
function sentence(units: number): string {
  return `${"Word ".repeat(units).slice(0, units - 2)}s.`;
}

/** A block of `lines` lines of 20 units each, the ends of line counted. */
function lines(count: number, prefix = ""): string {
  return Array.from({ length: count }, (_, line) => `${prefix}line ${line} `.padEnd(19, "x")).join("\n");
}

describe("texts that make no chunk, or one", () => {
  it.each([
    ["an empty text", "", []],
    ["white space alone", " \n\t\r\n\u00a0\u3000\ufeff", []],
    ["one letter", "a", ["a"]],
    ["a text of the chunk size", "x".repeat(100), ["x".repeat(100)]],
    ["white space around the text", "\n\n  Hello.\n", ["Hello."]],
  ])("makes at most one chunk of %s", (_name, text, expected) => {
    expect(chunksOf(text, 100)).toEqual(expected);
  });
});

describe("where a text is cut", () => {
  it.each([1, 2, 3, 4, 5])(
    "a text is cut at a heading of level %i rather than at one of the next, before or after it",
    (level) => {
      const [high, low] = ["#".repeat(level), "#".repeat(level + 1)];
      const section = (marks: string, name: string): string => `${marks} ${name}\n\n${sentence(36)}`;
      const [first, second, third] = [section("#", "A"), section(high, "B"), section(low, "C")];
      expect(chunksOf(`${first}\n\n${second}\n\n${third}`, 110)).toEqual([first, `${second}\n\n${third}`]);
      expect(chunksOf(`${first}\n\n${third}\n\n${second}`, 110)).toEqual([`${first}\n\n${third}`, second]);
    },
  );

  it.each<[name: string, text: string, size: number, chunks: readonly string[]]>([
    [
      "at headings first",
      `# A\n\n${sentence(60)}\n\n# B\n\n${sentence(60)}`,
      100,
      [`# A\n\n${sentence(60)}`, `# B\n\n${sentence(60)}`],
    ],
    [
      "at the higher heading of two",
      `# A\n\n${sentence(40)}\n\n## B\n\n${sentence(40)}\n\n# C\n\n${sentence(30)}`,
      110,
      [`# A\n\n${sentence(40)}\n\n## B\n\n${sentence(40)}`, `# C\n\n${sentence(30)}`],
    ],
    [
      "at a heading rather than where the chunk is full",
      `# A\n\n${sentence(60)}\n\n# B\n\n${sentence(30)}\n\n${sentence(55)}`,
      110,
      [`# A\n\n${sentence(60)}`, `# B\n\n${sentence(30)}\n\n${sentence(55)}`],
    ],
    ...["===", "---"].map((line): [string, string, number, readonly string[]] => [
      `at a heading that is underlined with ${line}`,
      `${sentence(20)}\n\n${sentence(30)}\n\nTides\n${line}\n\n${sentence(20)}\n\n${sentence(40)}`,
      100,
      [`${sentence(20)}\n\n${sentence(30)}`, `Tides\n${line}\n\n${sentence(20)}\n\n${sentence(40)}`],
    ]),
    ["at blank lines", `${sentence(60)}\n\n${sentence(60)}`, 100, [sentence(60), sentence(60)]],
    ["at a line that ends a sentence", `${sentence(60)}\n${sentence(60)}`, 100, [sentence(60), sentence(60)]],
    [
      "between long lines, each a paragraph, rather than where the chunk is full",
      `${sentence(170)}\n${sentence(80)} ${sentence(80)}\n${sentence(60)}`,
      260,
      [sentence(170), `${sentence(80)} ${sentence(80)}\n${sentence(60)}`],
    ],
    ["at a sentence", `${sentence(60)} ${sentence(60)}`, 100, [sentence(60), sentence(60)]],
    [
      "at a sentence rather than a line that runs on",
      "The first sentence is here. And the\nnext one runs on.",
      40,
      ["The first sentence is here.", "And the\nnext one runs on."],
    ],
    [
      "not at an abbreviation",
      "We met Dr. Smith at noon. He was late, e.g. by ten minutes.",
      40,
      ["We met Dr. Smith at noon.", "He was late, e.g. by ten minutes."],
    ],
    [
      "at a comma",
      "one two three four five, six seven eight nine",
      40,
      ["one two three four five,", "six seven eight nine"],
    ],
    ["at a word", "alpha beta gamma delta", 12, ["alpha beta", "gamma delta"]],
    ["inside a word that is too long", "abcdefghij", 4, ["abcd", "efgh", "ij"]],
    [
      "at Chinese stops",
      "今天天气很好。我们去公园散步吧！你想来吗？",
      12,
      ["今天天气很好。", "我们去公园散步吧！", "你想来吗？"],
    ],
    [
      "between Chinese characters, but not before a comma",
      "一二三四五六七八，九十",
      8,
      ["一二三四五六七", "八，九十"],
    ],
    ["around whole emoji", "👩‍👩‍👧👍🏽👩‍👩‍👧", 12, ["👩‍👩‍👧👍🏽", "👩‍👩‍👧"]],
    ["around surrogate pairs even in the smallest chunks", "😀😀", 1, ["😀", "😀"]],
    [
      "at Windows line ends, leaving them out",
      "One two.\r\n\r\nThree four.\r\n",
      12,
      ["One two.", "Three four."],
    ],
  ])("cuts a text %s", (_name, text, size, expected) => {
    expect(chunksOf(text, size)).toEqual(expected);
  });
});

describe("what stays together", () => {
  const before = sentence(60);
  it.each<[name: string, block: string]>([
    ["a fenced code block", `\`\`\`js\n${lines(4)}\n\n# no heading\n\`\`\``],
    ["a code block with tildes that holds backticks", `~~~\n${lines(3)}\n\`\`\`\n~~~`],
    ["a list", lines(5, "- ")],
    ["a numbered list with nested items", `1. one\n   - ${"x".repeat(40)}\n   - two\n2. three`],
    [
      "a list with blank lines",
      `- ${"x".repeat(30)}\n\n- ${"y".repeat(30)}\n\n  Further words of it.\n\n- z`,
    ],
    ["a table", `| a | b |\n|---|---|\n${lines(4, "| ")}`],
    ["a table without outer bars", `a | b\n--- | ---\n${lines(4, "c | ")}`],
    ["a table without outer bars and spaces", `a | b\n---|---\n${lines(4, "c|")}`],
    ["a heading and its text", `## Heading\n\n${sentence(70)}`],
    ["a heading, its subheading and its text", `## Heading\n\n### Sub\n\n${sentence(60)}`],
    ["an underlined heading and its text", `Heading\n-------\n\n${sentence(70)}`],
    ["a quote", lines(4, "> ")],
    ["a paragraph of wrapped lines", `${"several words ".repeat(4)}\nrun on here.`],
  ])("keeps together %s that fits into a chunk", (_name, block) => {
    expect(block.length).toBeLessThanOrEqual(120);
    expect(chunksOf(`${before}\n\n${block}\n\n${before}`, 120)).toContain(block);
  });

  it("keeps together a line that ends in a colon and what it introduces", () => {
    const list = lines(3, "- ");
    const text = `${sentence(50)}\n\nThese are they:\n\n${list}`;
    expect(chunksOf(text, 80)).toEqual([sentence(50), `These are they:\n\n${list}`]);
  });

  it("keeps together front matter and the first heading", () => {
    const head = `---\ntitle: Notes\ntags: [a, b]\n---\n\n# Notes\n\n${sentence(40)}`;
    expect(chunksOf(`${head}\n\n## More\n\n${sentence(60)}`, 110)[0]).toBe(head);
  });

  it("joins small sections up to the chunk size", () => {
    const sections = ["a", "b", "c", "d"].map((name) => `## ${name}\n\n${sentence(30)}`);
    expect(chunksOf(sections.join("\n\n"), 80)).toEqual([
      sections.slice(0, 2).join("\n\n"),
      sections.slice(2).join("\n\n"),
    ]);
  });
});

describe("blocks longer than a chunk are cut at their own parts", () => {
  it("cuts long code at lines, first at blank ones", () => {
    const code = `\`\`\`\n${lines(3)}\n\n${lines(3)}\n\`\`\``;
    expect(chunksOf(code, 100)).toEqual([`\`\`\`\n${lines(3)}`, `${lines(3)}\n\`\`\``]);
  });

  it("cuts long lists at the outermost items", () => {
    const item = (name: string): string => `- ${name.padEnd(20, "x")}\n  - ${name.padEnd(20, "y")}`;
    expect(chunksOf(["a", "b", "c", "d"].map(item).join("\n"), 100)).toEqual([
      `${item("a")}\n${item("b")}`,
      `${item("c")}\n${item("d")}`,
    ]);
  });

  it("cuts long tables at rows, and keeps the head with the first row", () => {
    const head = "| name | use |\n|---|---|";
    const chunks = chunksOf(`${head}\n${lines(10, "| ")}`, 100);
    expect(chunks[0]).toMatch(/^\| name .*\n\|---\|---\|\n\| line 0/);
    for (const chunk of chunks.slice(1)) expect(chunk).toMatch(/^\| line \d+ x+/);
  });

  it("never ends a chunk with a heading", () => {
    const text = Array.from(
      { length: 30 },
      (_, at) => `${"#".repeat((at % 6) + 1)} H${at}\n\n${sentence(20 + ((at * 37) % 140))}`,
    ).join("\n\n");
    for (const overlap of [0, 20]) {
      for (const chunk of chunksOf(text, 100, overlap)) expect(chunk).not.toMatch(/(^|\n)#+ H\d+$/);
    }
  });
});

describe("a part of a block repeats what it cannot be read without", () => {
  const shown = (text: string, size = 120, overlap = 20): string[] =>
    chunkRecursive(text, settings(size, overlap)).map((span) => chunkText(text, span));

  it.each([
    ["with outer bars", "| name | use |\n|---|---|", "| "],
    ["without", "name | use\n--- | ---", "c | "],
    ["without, and without spaces below its head", "name | use\n---|:--", "c|"],
  ])("every chunk of a split table repeats its head: %s", (_name, head, row) => {
    const chunks = shown(`${head}\n${lines(20, row)}`);
    expect(chunks.length).toBeGreaterThan(4);
    for (const chunk of chunks) {
      expect(chunk.startsWith(`${head}\n${row}line `)).toBe(true);
      for (const line of chunk.split("\n").slice(2)) expect(line).toContain(`${row}line `);
    }
  });

  it("every part of a table row longer than a chunk repeats the head", () => {
    const long = `| ${"several words in one cell ".repeat(20)} | x |`;
    for (const chunk of shown(`| a | b |\n|---|---|\n${long}`))
      expect(chunk).toMatch(/^\| a \| b \|\n\|---\|---\|\n/);
  });

  it("chunks do not repeat a table head of more than half a chunk", () => {
    const head = `| ${"name ".repeat(20)} |\n|---|`;
    expect(shown(`${head}\n${lines(20, "| ")}`).at(-1)).toMatch(/^\| line/);
  });

  it.each(["```", "~~~~"])(
    "every chunk of split code repeats its fence and language, and closes it: %s",
    (fence) => {
      const chunks = shown(`${sentence(60)}\n\n${fence}ts\n${lines(20)}\n${fence}\n\n${sentence(60)}`);
      const code = chunks.filter((chunk) => chunk.includes("line "));
      expect(code.length).toBeGreaterThan(3);
      for (const chunk of code) {
        expect(chunk).toMatch(new RegExp(`(?:^|\n)${fence}ts\nline \\d`));
        expect(chunk).toMatch(new RegExp(`\n${fence}(?:\n|$)`));
      }
    },
  );

  it("split code in a list item keeps its indentation", () => {
    const code = lines(12, "  ");
    const [, second] = shown(`- item\n\n  \`\`\`js\n${code}\n  \`\`\``);
    expect(second).toMatch(/^ {2}```js\n {2}line/);
    expect(second).toMatch(/\n {2}```$/);
  });

  it("split front matter repeats no fence", () => {
    for (const chunk of shown(`---\n${lines(20)}\n---\n\n${sentence(60)}`).slice(1))
      expect(chunk).not.toMatch(/^---/);
  });
});

describe("what chunks share", () => {
  const textsOf = (text: string): string[] => chunksOf(text, 100, 40);

  it("an overlap starts at a sentence, or is empty", () => {
    const short = "A short one. ".repeat(30).trim();
    for (const chunk of textsOf(short)) expect(chunk).toMatch(/^A short one\./);
    const long = `${sentence(55)} ${sentence(55)} ${sentence(55)}`;
    expect(textsOf(long)).toEqual([sentence(55), sentence(55), sentence(55)]);
  });

  it.each([
    ["a heading", `${sentence(60)} Tail.\n\n# Next\n\n${sentence(50)}`, "# Next"],
    ["an underlined heading", `${sentence(60)} Tail.\n\nNext\n----\n\n${sentence(50)}`, "Next\n----"],
    ["the begin of code", `${sentence(60)} Tail.\n\n\`\`\`\n${lines(3)}\n\`\`\``, "```\nline 0"],
    ["the end of code", `\`\`\`\n${lines(3)}\n\`\`\`\n\n${sentence(60)}`, "Word"],
    ["the end of a table", `| a |\n|---|\n${lines(3, "| ")}\n\n${sentence(60)}`, "Word"],
  ])("an overlap does not extend over %s", (_name, text, begin) => {
    expect(textsOf(text).at(-1)?.startsWith(begin)).toBe(true);
  });
});

describe("records in JSON", () => {
  it("keeps JSON records whole if they fit into a chunk", () => {
    const records = Array.from({ length: 20 }, (_, at) => ({ name: `Person ${at}`, phone: `555-${at}` }));
    for (const chunk of chunksOf(JSON.stringify(records, null, 2), 200, 20).slice(0, -1)) {
      expect(chunk).toMatch(/^\s*(?:\[\s*)?\{\s*"name"/);
      expect(chunk).toMatch(/\},$/);
    }
  });
});

describe("the heading path", () => {
  const pathsOf = (text: string, size = 40): (readonly string[])[] =>
    chunkRecursive(text, settings(size, 0)).map(({ headings }) => headings);

  it("the heading path has the headings above a chunk, outermost first, without the one it starts with", () => {
    const text = `# Guide\n\n${sentence(35)}\n\n## Install ##\n\n${sentence(20)}\n\n${sentence(35)}\n\n# Use\n\n${sentence(30)}`;
    expect(pathsOf(text)).toEqual([[], ["Guide"], ["Guide"], ["Guide", "Install"], []]);
  });

  it("the heading path handles skipped levels", () => {
    const text = `### Deep\n\n${sentence(35)}\n\n# Top\n\n${sentence(35)}\n\n#### Far\n\n${sentence(35)}\n\n${sentence(35)}`;
    expect(pathsOf(text, 36).at(-1)).toEqual(["Top", "Far"]);
  });

  it.each([
    [
      "underlined headings",
      `Title\n=====\n\n${sentence(30)}\n\nPart\n---\n\n${sentence(30)}\n\n${sentence(35)}`,
      ["Title", "Part"],
    ],
    [
      "a hash inside a code fence",
      `# Title\n\n\`\`\`sh\n# no heading\n${lines(2)}\n\`\`\`\n\n${sentence(35)}`,
      ["Title"],
    ],
    [
      "a hash inside an indented code block",
      `# Title\n\n    # no heading\n\n${sentence(35)}\n\n${sentence(35)}`,
      ["Title"],
    ],
    [
      "a fence that is never closed",
      `# Title\n\n\`\`\`\n# no heading\n${sentence(35)}\n${sentence(35)}`,
      ["Title"],
    ],
    [
      "a hash without a space, or seven of them",
      `# Title\n\n#tag\n\n####### seven\n\n${sentence(35)}\n\n${sentence(35)}`,
      ["Title"],
    ],
    ["marks that belong to the name", `# About C#\n\n${sentence(35)}\n\n${sentence(35)}`, ["About C#"]],
    [
      "what looks like a heading within a comment",
      `# Title\n\n<!-- how this was made\ncd listings\n# paste it here\nNotes\n---\n-->\n\n${sentence(35)}\n\n${sentence(35)}`,
      ["Title"],
    ],
    [
      "a heading behind a comment",
      `# Title\n\n<!-- one line -->\n## Part\n\n${sentence(35)}\n\n${sentence(35)}`,
      ["Title", "Part"],
    ],
    [
      "a heading behind a comment that never ends",
      `# Title\n\n<!-- not closed\n\n## Part\n\n${sentence(35)}\n\n${sentence(35)}`,
      ["Title", "Part"],
    ],
    ["a ruled line after a list", `# Title\n\n- item\n---\n\n${sentence(35)}\n\n${sentence(35)}`, ["Title"]],
  ])("recognises the headings of a text with %s", (_name, text, expected) => {
    expect(pathsOf(text).at(-1)).toEqual(expected);
  });

  it("the heading path limits the length of a title", () => {
    const paths = pathsOf(`# ${"long ".repeat(1000)}\n\n${sentence(35)}`, 100);
    expect(paths.at(-1)?.[0]?.length).toBeLessThanOrEqual(200);
  });
});

describe("the overlap", () => {
  it.each<[name: string, text: string, size: number, overlap: number, chunks: readonly string[]]>([
    [
      "begins with a sentence where one fits",
      "One is here. Two is here. Three is here. Four is here.",
      41,
      16,
      ["One is here. Two is here. Three is here.", "Three is here. Four is here."],
    ],
    [
      "begins with a word otherwise",
      "alpha beta gamma delta epsilon zeta",
      23,
      8,
      ["alpha beta gamma delta", "delta epsilon zeta"],
    ],
    [
      "is exact inside a long word",
      "abcdefghijklmnopqrst",
      10,
      4,
      ["abcdef", "cdefghijkl", "ijklmnopqr", "opqrst"],
    ],
    ["leaves emoji whole", "😀".repeat(12), 10, 3, ["😀😀😀", "😀😀😀😀", "😀😀😀😀", "😀😀😀😀"]],
    ["makes way for a word that needs the room", "aaaa bbbb cccccccccc", 10, 4, ["aaaa bbbb", "cccccccccc"]],
  ])("the overlap of chunks %s", (_name, text, size, overlap, expected) => {
    expect(chunksOf(text, size, overlap)).toEqual(expected);
  });
});

describe("hard texts", () => {
  it.each<[name: string, text: string, chunks: number]>([
    ["4 MB without a blank", "x".repeat(4_000_000), 4445],
    ["100,000 headings", "# a\n".repeat(100_000), 400],
    ["a million line ends around two words", `a${"\n".repeat(1_000_000)}b`, 2],
    ["quotation marks 100,000 deep", `${">".repeat(100_000)} x`, 112],
    [
      "a list that nests 500 deep",
      Array.from({ length: 500 }, (_, depth) => `${" ".repeat(depth)}- x`).join("\n"),
      184,
    ],
    ["100,000 fences of which none closes", "```js\n".repeat(100_000), 676],
    ["100,000 comments of which none ends", "<!--\n".repeat(100_000), 556],
    ["100,000 comments of a line", "<!-- -->\n".repeat(100_000), 1000],
  ])("splits a hard text: %s", (_name, text, chunks) => {
    const spans = chunkRecursive(text, settings(1000, 100));
    expectLawful(text, settings(1000, 100), spans);
    expect(spans.length).toBe(chunks);
  });
});
