import { describe, expect, it } from "vitest";
import { askQuestions, questionsByTier } from "../../../src/cli/evaluation/ask.ts";
import type { Question } from "../../../src/cli/evaluation/questions.ts";
import { KbsyncError } from "../../../src/lib/failure.ts";
import type { ResourceLookup } from "../../../src/sync/operator/resource-lookup.ts";
import type { SearchClient } from "../../../src/sync/operator/search.ts";
import type { SearchResult } from "../../../src/wire/search.ts";

const { signal } = new AbortController();

const FILES = [
  { source: "/quick", path: "crane.md" },
  { source: "/quick", path: "ships/ferry.md" },
  { source: "/good", path: "crane.md" },
];
const docOf = (path: string): string | undefined =>
  FILES.some((file) => `${file.source}/${file.path}` === path) ? path : undefined;

/** A ledger of three files, where the id of a file's resource is its absolute path. */
const lookup: ResourceLookup = {
  formerSources: [],
  sources: [
    { path: "/quick", ownerId: "q", collectionId: "c1", tier: "fastest" },
    { path: "/good", ownerId: "g", collectionId: "c2", tier: "high_accuracy" },
  ],
  fileOf: (docId) => FILES.find((file) => `${file.source}/${file.path}` === docId),
  docOf,
  knows: (path) => docOf(path) !== undefined,
  files: () => FILES,
  close: () => undefined,
};

function question(change: Partial<Question>): Question {
  return {
    question: "crane",
    expect: ["crane.md"],
    answer: undefined,
    source: undefined,
    line: 1,
    ...change,
  };
}

function result(docId: string, score: number, content = "text"): SearchResult {
  const payload = { resourceId: docId, collectionId: "c1", ownerId: "q", content };
  return { id: `${docId}-${score}`, version: 1, score, payload };
}

describe("a question is asked", () => {
  const cases: readonly [what: string, change: Partial<Question>, asked: readonly string[]][] = [
    ["in every tier with an expected file", {}, ["fastest", "high_accuracy"]],
    ["in the only tier with one", { expect: ["ships/ferry.md"] }, ["fastest"]],
    ["in the only tier with one that a glob matches", { expect: ["ships/*"] }, ["fastest"]],
    ["in the tier of its source", { source: "/good" }, ["high_accuracy"]],
    ["in all tiers where no file is expected", { expect: ["gone.md"] }, ["fastest: no", "high_accuracy: no"]],
    [
      "in its source where no file of it is expected",
      { expect: ["ships/*"], source: "/good" },
      ["high_accuracy: no"],
    ],
  ];
  it.each(cases)("a question is asked %s", (_what, change, asked) => {
    const byTier = questionsByTier([question(change)], lookup);
    const found = [...byTier].flatMap(([tier, list]) =>
      list.map(({ isSynced }) => (isSynced ? tier : `${tier}: no`)),
    );
    expect(found).toEqual(asked);
  });
});

it("stops reading the files where every tier has an expected one", () => {
  let files = 0;
  const listed = function* () {
    for (const file of [...FILES, ...FILES]) {
      files += 1;
      yield file;
    }
  };
  expect(questionsByTier([question({ expect: ["**"] })], { ...lookup, files: listed }).size).toBe(2);
  expect(files).toBe(4);
});

describe("asked in a tier", () => {
  let results: (query: string) => readonly SearchResult[];
  let closed: number;
  let opened: number;
  const open = (): SearchClient => {
    opened += 1;
    return {
      search: async (queries) =>
        queries.map(({ query }) => ({ success: true, text: "", results: [...results(query)] })),
      list: async () => undefined,
      close: async () => void (closed += 1),
    };
  };
  const ask = async (...questions: Question[]) => {
    opened = closed = 0;
    const asked = questions.map((each) => ({ question: each, isSynced: true }));
    const outcomes = await askQuestions({ tier: "fastest", lookup, questions: asked, open }, signal);
    return outcomes.map(({ rank, answered, came, problem, ms }) => ({
      rank,
      answered,
      came,
      problem,
      timed: ms !== null,
    }));
  };

  it("a question has the rank of the best passage of an expected file, and the first three passages", async () => {
    results = () => [
      result("/quick/crane.md", 0.2),
      result("elsewhere", 0.9),
      result("/quick/ships/ferry.md", 0.5),
      result("/quick/crane.md", 0.4, "It lifts\nforty tons."),
    ];
    const came = [
      { path: null, score: 0.9 },
      { path: "ships/ferry.md", score: 0.5 },
      { path: "crane.md", score: 0.4 },
    ];
    expect(await ask(question({ answer: "lifts forty tons" }))).toEqual([
      { rank: 3, answered: true, came, problem: null, timed: true },
    ]);
    expect({ opened, closed }).toEqual({ opened: 1, closed: 1 });
  });

  it("an answer beyond the third passage does not count", async () => {
    results = () =>
      [0.9, 0.8, 0.7].map((score) => result("other", score)).concat(result("/quick/crane.md", 0.1, "forty"));
    expect(await ask(question({ answer: "forty" }))).toMatchObject([{ rank: 4, answered: false }]);
  });

  it("a file of another source is none of a question's source", async () => {
    results = () => [result("/good/crane.md", 0.9), result("/quick/crane.md", 0.1)];
    expect(await ask(question({}), question({ source: "/quick" }))).toMatchObject([{ rank: 1 }, { rank: 2 }]);
  });

  it("a refused or unanswered question is a miss with its reason, and the next ones are asked", async () => {
    const failures = ["service_refused", "service_unreachable", "service_unreachable", "service_refused"];
    results = (query) => {
      const code = failures[Number(query)];
      if (code !== undefined) throw new KbsyncError(`it ended with ${code}`, { code });
      return [result("/quick/crane.md", 0.1)];
    };
    const outcomes = await ask(
      ...["0", "1", "2", "3", "4"].map((name) => question({ question: name, answer: "forty" })),
    );
    expect(outcomes.map(({ rank, problem, timed }) => [rank, problem, timed])).toEqual([
      ...failures.map((code) => [null, `it ended with ${code}`, false]),
      [1, null, true],
    ]);
    expect(outcomes.every(({ answered }) => answered === false)).toBe(true);
    expect({ opened, closed }).toEqual({ opened: 5, closed: 5 });
  });

  it.each([
    ["the third unanswered question in a row", "service_unreachable", 3],
    ["a refused key", "key_refused", 1],
  ])("an evaluation ends with %s", async (_what, code, asked) => {
    let count = 0;
    results = () => {
      count += 1;
      throw new KbsyncError("no", { code });
    };
    await expect(ask(...Array.from({ length: 9 }, () => question({})))).rejects.toMatchObject({ code });
    expect(count).toBe(asked);
    expect(closed).toBe(opened);
  });
});
