import { expect, it } from "vitest";
import { parseQuestions } from "../../../src/cli/evaluation/questions.ts";
import { makeStarter } from "../../../src/cli/evaluation/starter.ts";
import { isMarkdownAtService } from "../../../src/lib/markup/text-formats.ts";
import { headingsOf, STARTER_MAX } from "../../../src/lib/markup/starter-questions.ts";

const FILE = "/work/q.yaml";

it("lists headings with the beginning of the sentence below them", () => {
  const sentence =
    "The crane was built in 1931 and lifts forty tons of coal from a ship in one hour and a half.";
  const markdown = [
    "---",
    "title: Front matter is no heading",
    "---",
    "# The `old` crane",
    "",
    sentence,
    "## Opening hours",
    "",
    "| a | table |",
    "## Who may use it",
    "",
    "Only the harbour master.",
    "```sh",
    "# no heading",
    "```",
  ].join("\n");
  expect([...headingsOf(markdown)]).toEqual([
    {
      text: "The old crane",
      answer: "The crane was built in 1931 and lifts forty tons of coal from a ship in one hour",
    },
    { text: "Opening hours", answer: undefined },
    { text: "Who may use it", answer: "Only the harbour master." },
  ]);
});

it("asks for headings that one file alone has, once each, in the order of the paths", () => {
  const heading = (text: string) => ({ text, answer: undefined });
  const files = [
    {
      path: "b.md",
      source: undefined,
      headings: ["See also", "The old crane", "the  old crane"].map(heading),
    },
    { path: "a.md", source: undefined, headings: ["see also", "Overview", "Opening hours"].map(heading) },
  ];
  const starter = makeStarter(files);
  expect(starter).toMatchObject({ questions: 2, headings: 2 });
  expect(parseQuestions(starter.text, FILE).map(({ question, expect: [path] }) => [question, path])).toEqual([
    ["Opening hours", "a.md"],
    ["The old crane", "b.md"],
  ]);
});

it("writes what it reads again, whatever the headings contain", () => {
  const text = `"Yes": no # 'it' {is}`;
  const headings = [{ text, answer: "- [x] 9.6 | never: *while* it rains" }];
  const { text: yaml } = makeStarter([{ path: "a: b/#1.md", source: "../docs", headings }]);
  expect(parseQuestions(yaml, FILE)).toMatchObject([
    { question: text, expect: ["a: b/#1.md"], answer: headings[0]?.answer, source: "/docs" },
  ]);
});

it("names the folder of the file of questions itself as a source", () => {
  const headings = [{ text: "Opening hours", answer: undefined }];
  const { text } = makeStarter([{ path: "a.md", source: "", headings }]);
  expect(parseQuestions(text, FILE)).toMatchObject([{ source: "/work" }]);
});

it("spreads a bounded number of questions evenly over all headings", () => {
  const files = Array.from({ length: 50 }, (_, file) => ({
    path: `${String(file).padStart(2, "0")}.md`,
    source: undefined,
    headings: Array.from({ length: 10 }, (_each, at) => ({
      text: `Heading ${file} ${at}`,
      answer: undefined,
    })),
  }));
  const starter = makeStarter(files);
  expect(starter).toMatchObject({ questions: STARTER_MAX, headings: 500 });
  const paths = new Set(parseQuestions(starter.text, FILE).map(({ expect: [path] }) => path));
  expect(paths.size).toBe(50);
});

it.each([
  ["a.md", true],
  ["report.docx", true],
  ["page.html", true],
  ["compose.yaml", false],
  ["scan.pdf", false],
])("takes headings from %s: %s", (path, isTaken) => {
  expect(isMarkdownAtService(path)).toBe(isTaken);
});

it("passes over a heading of many lines, whose markup would take minutes", () => {
  const startMs = performance.now();
  const paragraph = `a${"[".repeat(98)}\n`.repeat(2600);
  const found = [...headingsOf(`${paragraph}===\n\n# The old crane\n`)];
  expect(found.map(({ text }) => text)).toEqual(["The old crane"]);
  expect(performance.now() - startMs).toBeLessThan(5000);
});
