import { describe, expect, it } from "vitest";
import { htmlToMarkdown } from "../../../src/formats/markup/html-markdown.ts";
import { tableToMarkdown } from "../../../src/formats/markup/table.ts";
import { MarkupTooDeep } from "../../../src/formats/markup/tree.ts";

const whole = (html: string, url?: string): string =>
  htmlToMarkdown(html, { whole: true, ...(url !== undefined && { url }) }).markdown;

describe("Markdown of HTML", () => {
  it.each<[string, string, string]>([
    ["headings and paragraphs", "<h1>A</h1><p>b\n  c<h2>D</h2>e", "# A\n\nb c\n\n## D\n\ne"],
    ["emphasis with spaces at its edges", "a<b> b </b>c <i>d</i> <s>e</s>", "a **b** c *d* ~~e~~"],
    ["line breaks", "a<br>b<br><br>c", "a\nb\nc"],
    ["references", "&lt;a&gt; &amp; &eacute;&#x41;&nbsp;b", "<a> & éA b"],
    [
      "lists in lists",
      "<ul><li>a<ol start=3><li>b<li>c</ol><li><p>d<p>e</ul>",
      "- a\n  3. b\n  4. c\n- d\n\n  e",
    ],
    ["a list right in a list", "<ul><li>a</li><ul><li>b</li></ul></ul>", "- a\n  - b"],
    ["terms", "<dl><dt>a<dd>b</dl>", "**a**\n\nb"],
    ["quotes", "<blockquote><p>a<p>b</blockquote>", "> a\n>\n> b"],
    ["code", "<pre><code class='hljs language-js'>let a;\n  b()\n</code></pre>", "```js\nlet a;\n  b()\n```"],
    ["code with fences in it", "<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"],
    ["code in a line", "<code>a_b</code> and <kbd>`</kbd>", "`a_b` and `` ` ``"],
    ["a table", "<table><tr><th>A<th>B<tr><td>1<td>2|3</table>", "| A | B |\n| --- | --- |\n| 1 | 2\\|3 |"],
    [
      "wide cells",
      "<table><tr><td colspan=2>A<td>B<tr><td>1<td>2<td>3</table>",
      "| A |  | B |\n| --- | --- | --- |\n| 1 | 2 | 3 |",
    ],
    ["a table for layout", "<table><tr><td><table><tr><td>a<td>b</table><td>c</table>", "a\n\nb\n\nc"],
    [
      "lines that would be something else",
      "<p># a<p>- b<p>1. c<p>> d<p>2020 e",
      "\\# a\n\n\\- b\n\n1\\. c\n\n\\> d\n\n2020 e",
    ],
    ["signs within a line", "a_b*c [d] <span>e</span>", "a_b*c [d] e"],
    ["what nobody reads", "a<script>x</script><style>y</style><svg><text>z</text></svg><!-- c -->b", "ab"],
    [
      "pictures by what they show",
      "<img src=a.png alt='A tide'> <img src=b.png> <img src='data:x' alt=B>",
      "![A tide](a.png) B",
    ],
    ["nothing", "  <div> </div>\n", ""],
  ])("converts to Markdown: %s", (_name, html, markdown) => {
    expect(whole(html)).toBe(markdown);
  });

  it("links become absolute, and links without a target become text", () => {
    const html =
      '<a href="b c.html">one</a> <a href="#x">two</a> <a href="javascript:x()">three</a> <a href="mailto:a@b.c">four</a> <a href=/p(1)>five</a>';
    expect(whole(html, "https://example.org/d/a.html")).toBe(
      "[one](https://example.org/d/b%20c.html) two three [four](mailto:a@b.c) [five](https://example.org/p%281%29)",
    );
    expect(whole(html)).toContain("[one](b%20c.html) two three");
    expect(whole(`<base href="/other/">${html}`, "https://example.org/d/")).toContain(
      "https://example.org/other/b%20c.html",
    );
  });
});

describe("the readable part", () => {
  const TEXT = `<p>${"Some words of the text, and more. ".repeat(20)}</p>`;
  const AROUND = "<nav><a href=/>Menu</a></nav><aside>Aside</aside><footer>Imprint</footer>";
  const words = ({ markdown }: { markdown: string }): string => markdown;

  it.each([
    ["main", `<body>${AROUND}<main><h1>H</h1>${TEXT}</main>`],
    ["role main", `<body>${AROUND}<div role=main><h1>H</h1>${TEXT}</div>`],
    [
      "the one article",
      `<body><div class="site-header">Logo</div>${AROUND}<article><h1>H</h1>${TEXT}</article>`,
    ],
    [
      "a body without either",
      `<body><header>Logo</header>${AROUND}<div><h1>H</h1>${TEXT}</div><div class="cookie-banner">Cookies</div>`,
    ],
    [
      "a body with a menu that does not say so",
      `<body><div>${"<a href=/a>Menu</a> ".repeat(9)}</div><h1>H</h1>${TEXT}`,
    ],
  ])("the readable part of %s", (_name, html) => {
    const markdown = words(htmlToMarkdown(html));
    expect(markdown).toMatch(/^# H\n\nSome words/);
    expect(markdown).not.toMatch(/Menu|Aside|Imprint|Cookies/);
  });

  it("the readable part includes an index page's titles, an article's header, and headings of any class", () => {
    const titles = Array.from(
      { length: 9 },
      (_, at) => `<li><a href=/${at}>The long title of article ${at}</a>`,
    );
    expect(words(htmlToMarkdown(`<ul>${titles.join("")}</ul>`))).toContain("article 8");
    const html = `<main><header><h1 class="menu">H</h1></header>${TEXT}</main>`;
    expect(words(htmlToMarkdown(html))).toMatch(/^# H/);
  });

  it("the readable part of a page that is all menu is the whole page", () => {
    expect(words(htmlToMarkdown("<nav>Only this</nav>"))).toBe("Only this");
  });

  it.each([
    ["<title> A \n b</title><h1>C</h1>", "A b"],
    ["<meta property=og:title content='Shared'><h1>C</h1>", "Shared"],
    ["<h1>C <em>d</em></h1>", "C d"],
    ["<p>x</p>", undefined],
  ])("the readable part has the title of %s", (html, title) => {
    expect(htmlToMarkdown(html).title).toBe(title);
  });
});

describe("hostile pages", () => {
  it("a page nested beyond the limit is refused", () => {
    expect(() => htmlToMarkdown("<div>".repeat(200_000))).toThrow(MarkupTooDeep);
  });

  it.each([
    ["thousands of elements that nothing closes", `${"<font>".repeat(5000)}text`],
    ["quotes in quotes", `${"<blockquote>".repeat(5000)}text`],
    ["lists in lists", `${"<ul><li>".repeat(4000)}text`],
    ["half a million signs of less", "<".repeat(500_000)],
    ["wide cells", `<table>${"<tr><td colspan=100000>text<td>b</tr>".repeat(1000)}</table>`],
  ])("converts in linear time: %s", (_name, html) => {
    const startedMs = performance.now();
    const { markdown } = htmlToMarkdown(html);
    expect(markdown.length).toBeLessThan(20 * html.length);
    expect(performance.now() - startedMs).toBeLessThan(5000);
  });
});

describe("a table", () => {
  it("a table omits empty rows and columns, and is cut at the largest width", () => {
    expect(tableToMarkdown([["", ""], ["a", "", "b\nc"], ["", "", ""], ["d"]])).toBe(
      "| a | b c |\n| --- | --- |\n| d |  |",
    );
    expect(tableToMarkdown([])).toBe("");
    expect(tableToMarkdown([Array.from({ length: 1000 }, () => "x")]).split("|")).toHaveLength(2 * 257 + 1);
  });
});
