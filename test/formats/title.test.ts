import { describe, expect, it } from "vitest";
import { markdownHeadings } from "../../src/formats/markup/headings.ts";
import type { TextFormat } from "../../src/formats/markup/text-formats.ts";
import { nameText } from "../../src/formats/title.ts";

describe("nameText", () => {
  const headings: [what: string, format: TextFormat, text: string, title: string | undefined][] = [
    ["ATX", "markdown", "# Hello\n\ntext", "Hello"],
    ["ATX of a lower level, later", "markdown", "intro\n\n### Third ###\n", "Third"],
    ["Windows' line ends", "markdown", "# Hello\r\ntext", "Hello"],
    ["setext", "markdown", "Hello\nworld\n=====\n", "Hello world"],
    ["setext of level two", "markdown", "Hello\n---\n", "Hello"],
    ["a rule is no setext heading", "markdown", "text\n\n---\n\n# Real", "Real"],
    ["a rule belongs to none", "markdown", "***\nHello\n---\n", "Hello"],
    ["a rule after a list is none", "markdown", "- item\n---\n# Real", "Real"],
    ["not in a fence", "markdown", "```sh\n# comment\n```\n# Real", "Real"],
    ["not in a longer fence", "markdown", "~~~~\n~~~\n# comment\n~~~~\n# Real", "Real"],
    ["not in an open fence", "markdown", "```\n# comment\n", undefined],
    ["not in a comment", "markdown", "<!-- hidden\n# No\n-->\n# Real", "Real"],
    ["not in indented code", "markdown", "    # code\n\n# Real", "Real"],
    ["a hashtag is none", "markdown", "#tag\n\n# Real", "Real"],
    ["an empty one is passed over", "markdown", "#\n# Real", "Real"],
    ["a fence ends at a longer run", "markdown", "```\n# comment\n`````\n# Real", "Real"],
    ["a fence does not end at other signs", "markdown", "```\n~~~\n# comment\n```\n# Real", "Real"],
    ["a rule after a fence belongs to none", "markdown", "text\n```\n```\n---\n# Real", "Real"],
    ["after a comment of one line", "markdown", "<!-- hidden -->\n# Real", "Real"],
    ["a rule after a comment belongs to none", "markdown", "text\n<!-- hidden -->\n---\n# Real", "Real"],
    ["a rule after a quote belongs to none", "markdown", "> quote\n---\n# Real", "Real"],
    ["a rule after a numbered item belongs to none", "markdown", "12. item\n---\n# Real", "Real"],
    ["a rule after a table belongs to none", "markdown", "| cell |\n---\n# Real", "Real"],
    ["a rule after indented code belongs to none", "markdown", "    code\n---\n# Real", "Real"],
    ["an indented line goes on with a paragraph", "markdown", "Hello\n    world\n===\n", "Hello world"],
    ["an empty line ends a paragraph", "markdown", "text\n\nHello\n===\n", "Hello"],
    ["an empty heading ends a paragraph", "markdown", "text\n#\nHello\n===\n", "Hello"],
    ["after a line that is too long for one", "markdown", `${"x".repeat(9000)}\n# Real\n`, "Real"],
    ["up to the end of the text", "markdown", "intro\n# Real\r\n", "Real"],
    ["HTML in Markdown", "markdown", '<h1 align="center">The <b>Thing</b></h1>', "The Thing"],
    [
      "markup is stripped",
      "markdown",
      "# `code` **bold** _it_ [link](http://x) ![pic](y.png) \\* ~~gone~~",
      "code bold it link pic * gone",
    ],
    [
      "names with underscores stay",
      "markdown",
      "# snake_case_name and 2 * 3 * 4",
      "snake_case_name and 2 * 3 * 4",
    ],
    ["an id is stripped", "markdown", "## Install {#install}", "Install"],
    ["none", "markdown", "just text", undefined],
    ["none in nothing", "markdown", "", undefined],
    ["AsciiDoc", "asciidoc", "// c\n= The Title\n:toc:\n", "The Title"],
    ["Org title", "org", "#+TITLE: The Title\n* First", "The Title"],
    ["Org heading", "org", "text\n* First\n", "First"],
    ["reStructuredText", "rst", "=====\nTitle\n=====\n\ntext", "Title"],
    ["reStructuredText, underlined", "rst", ".. note::\n\nTitle\n-----\n", "Title"],
    ["reStructuredText, underlined by as many signs", "rst", "text\n\nTitle\n=====\n", "Title"],
    ["reStructuredText, underlined by too few signs", "rst", "Title\n====\n\nReal\n====\n", "Real"],
    ["reStructuredText, a comment is none", "rst", ".. comment\n=============\n\nReal\n====\n", "Real"],
    ["reStructuredText, indented text is none", "rst", " quote\n=======\n\nReal\n====\n", "Real"],
    ["reStructuredText, none before a line of signs", "rst", "\n====\n", undefined],
    ["an AsciiDoc title far below", "asciidoc", `${"text\n".repeat(20_000)}= Late\n`, undefined],
    ["HTML title", "html", "<html><head><title>\n A &amp; B &#8212; C&nbsp;</title>", "A & B — C"],
    ["HTML heading", "html", "<body><h1 class=x>Head</h1>", "Head"],
    ["plain text has none", "plain", "# Hello", undefined],
  ];
  it.each(headings)("finds the title in a heading: %s", (_, format, text, title) => {
    expect(nameText(text, format).title).toBe(title);
  });

  const fronts: [what: string, text: string, expected: object][] = [
    ["title and description", "---\ntitle: T\ndescription: D\n---\n# H", { title: "T", description: "D" }],
    ["summary", "---\ntitle: T\nsummary: S\n---\n", { title: "T", description: "S" }],
    [
      "quotes, folding and numbers",
      '---\ntitle: "a: b"\ndescription: >\n  one\n  two\n---\n',
      { title: "a: b", description: "one two\n" },
    ],
    ["a description alone", "---\ndescription: D\n---\n", { description: "D" }],
    ["an empty description", "---\ntitle: T\ndescription: ' '\n---\n", { title: "T" }],
    ["no fields", "---\n42\n---\n# H", { title: "H" }],
    ["a large number", "---\ntitle: 12345678901234567890\n---\n", { title: "12345678901234567000" }],
    ["closed at the end of the text", "---\ntitle: T\n---", { title: "T" }],
    ["closed too far below", `---\ntitle: T\n${"a: b\n".repeat(20_000)}---\n`, {}],
    ["a heading right after it", "---\ntags: a\n---\nHello\n===\n", { title: "Hello" }],
    ["a number", "---\ntitle: 2024\n---\n", { title: "2024" }],
    ["closed by dots", "---\ntitle: T\n...\n# H", { title: "T" }],
    ["Windows' line ends", "---\r\ntitle: T\r\n---\r\n# H", { title: "T" }],
    ["no title in it", "---\ntags: [a]\n---\n# H", { title: "H" }],
    ["a title that is no text", "---\ntitle: [a, b]\n---\n# H", { title: "H" }],
    ["an empty title", "---\ntitle: ''\n---\n# H", { title: "H" }],
    ["broken YAML", "---\ntitle: [\n---\n# H", { title: "H" }],
    ["a comment in it is no heading", "---\n# comment\ntags: a\n---\n# H", { title: "H" }],
    ["not closed", "---\ntitle: T\n\n# H", { title: "H" }],
    ["a rule at the start", "---\n\n# H", { title: "H" }],
    ["too many dashes", "----\n\ntitle: T\n\n----\n# H", { title: "H" }],
    ["aliases", `---\na: &a [x, x]\nb: &b [*a, *a]\ntitle: T\n---\n# H`, { title: "H" }],
  ];
  it.each(fronts)("finds title and description in front matter: %s", (_, text, expected) => {
    const { fields: _fields, ...naming } = nameText(text, "markdown");
    expect(naming).toEqual(expected);
  });

  it("searches neither a long text nor a long line to its end", () => {
    expect(nameText(`${"text\n".repeat(20_000)}# Late`, "markdown").title).toBeUndefined();
    for (const line of [
      "#".repeat(1e6),
      `# ${" ".repeat(1e6)}x`,
      `# ${"[".repeat(1e6)}`,
      `# ${"*a".repeat(5e5)}`,
      "=".repeat(1e6),
    ]) {
      expect(nameText(line, "markdown").title?.length ?? 0).toBeLessThanOrEqual(4000);
    }
  });
});

it("markdownHeadings lists all headings with the text below them, up to the given length", () => {
  const text = "# One\r\n\nbelow one\n```\n# code\n```\nTwo\n---\nbelow two\n#\n### Three";
  const all = [...markdownHeadings(text, 0, Infinity)];
  expect(all.map(({ heading, end }) => [heading, text.slice(end).trim().split("\n")[0]])).toEqual([
    ["One", "below one"],
    ["Two", "below two"],
    ["Three", ""],
  ]);
  expect([...markdownHeadings(text, 3, 20)]).toEqual([]);
});
