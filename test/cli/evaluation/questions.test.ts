import { describe, expect, it } from "vitest";
import { expectedFiles, parseQuestions, type Question } from "../../../src/cli/evaluation/questions.ts";
import { questionId } from "../../../src/lib/compare-results.ts";
import { codeOf, messageOf } from "../../../src/lib/failure.ts";

const FILE = "/work/q.yaml";

/** The message of `questions_invalid` for a file. */
function problemOf(yaml: string): string {
  try {
    parseQuestions(yaml, FILE);
    return "no problem";
  } catch (error) {
    return codeOf(error) === "questions_invalid" ? messageOf(error) : `another failure: ${messageOf(error)}`;
  }
}

it("reads questions with their lines, one path or several, and a source relative to the file", () => {
  const yaml = [
    "# comment",
    "- question: ' who? '",
    "  expect: a.md",
    "",
    "- question: what?",
    "  expect: [b.md, 'c/**']",
    "  answer: forty tons",
    "  source: ../docs",
  ].join("\n");
  expect(parseQuestions(yaml, FILE)).toEqual([
    { question: "who?", expect: ["a.md"], answer: undefined, source: undefined, line: 2 },
    { question: "what?", expect: ["b.md", "c/**"], answer: "forty tons", source: "/docs", line: 5 },
  ]);
});

describe("names line and key of a problem:", () => {
  const cases: readonly [what: string, yaml: string, message: RegExp][] = [
    ["an empty file", "", /^\/work\/q\.yaml:1: expected array, got null$/],
    ["no list", "question: who?", /^\/work\/q\.yaml:1: expected array, got /],
    ["an empty list", "[]", /^\/work\/q\.yaml:1: expected array to have >=1 items, got \[\]$/],
    [
      "a missing key",
      "- question: who?\n  expect: a.md\n- question: what?",
      /:3: expect: missing, expected a path or a list of paths$/,
    ],
    ["an unknown key", "- question: who?\n  expect: a.md\n  anwser: x", /:3: anwser: unknown key$/],
    ["a number", "- question: who?\n  expect: a.md\n  answer: 9.6", /:3: answer: expected string, got 9\.6$/],
    [
      "an empty value",
      "- question: who?\n  expect: a.md\n  answer:",
      /:3: answer: expected string, got null$/,
    ],
    ["a blank question", "- question: ' '\n  expect: a.md", /:1: question: expected string to have >=1 /],
    ["an empty list of paths", "- question: who?\n  expect: []", /:2: expect: .*, got \[\]$/],
    [
      "a number for a path",
      "- question: who?\n  expect: 7",
      /:2: expect: expected a path or a list of paths, got 7$/,
    ],
    [
      "a bad path in a list",
      "- question: who?\n  expect:\n    - a.md\n    - 7",
      /:4: expect\[1\]: expected string, got 7$/,
    ],
    [
      "a key that stands twice",
      "- question: who?\n  question: b\n  expect: a",
      /:2: Map keys must be unique$/,
    ],
    ["no YAML", "- question: who?\n  expect: [a.md", /:2: Flow sequence/],
    ["two documents", "- question: a\n  expect: a\n---\n- b", /: Source contains multiple documents/],
    ["aliases, which can expand to gigabytes", "- &a question: who?\n  expect: b\n- *a", /alias/i],
  ];
  it.each(cases)("refuses questions: %s", (_what, yaml, message) => {
    expect(problemOf(yaml)).toMatch(message);
  });

  it("all of them, up to ten", () => {
    const twelve = "- question: who?\n".repeat(12);
    const lines = problemOf(twelve).split("\n");
    expect(lines.length).toBe(11);
    expect(lines[9]).toMatch(/:10: expect: missing/);
    expect(lines[10]).toBe("and 2 more");
  });

  it("a file with too many questions is refused", () => {
    expect(problemOf("- {question: a, expect: b}\n".repeat(2001))).toMatch(
      /expected array to have <=2000 items/,
    );
  });
});

describe("expected files", () => {
  const cases: readonly [expect: string, path: string, isExpected: boolean][] = [
    ["a.md", "a.md", true],
    ["./a.md", "a.md", true],
    ["a.md", "b/a.md", false],
    ["b", "b/a.md", false],
    ["b/**", "b/c/a.md", true],
    ["b/*.md", "b/c/a.md", false],
    ["notes/[draft].md", "notes/[draft].md", true],
    ["u\u0308ber.md", "über.md", true],
  ];
  it.each(cases)("%s and the file %s: %s", (expected, path, isExpected) => {
    expect(expectedFiles({ expect: ["other.md", expected] })(path)).toBe(isExpected);
  });
});

it("a question keeps its id when it moves to another line, and not when anything else of it changes", () => {
  const question: Question = {
    question: "who?",
    expect: ["a.md"],
    answer: undefined,
    source: undefined,
    line: 1,
  };
  const id = questionId(question);
  const moved: Question = { ...question, line: 9 };
  expect(questionId(moved)).toBe(id);
  const others = [{ question: "what?" }, { expect: ["b.md"] }, { answer: "x" }, { source: "/docs" }];
  for (const change of others) expect(questionId({ ...question, ...change })).not.toBe(id);
});
