import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { Refusal } from "../../../src/kb/resources/refusal.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { createBody, openRunning, type Answered, type Running } from "../service/running.ts";
import { withMethods } from "../store/with-methods.ts";

let running: Running;
let parts: { collection_id: string; owner_id: string }[];
let domeId: string;
beforeAll(async () => {
  running = await openRunning();
  const create = async (path: string | undefined, content: string, details: string) => {
    const body = createBody({
      title: "Note",
      content,
      owner_id: "observatory",
      collection_details: details,
      metadata: path === undefined ? {} : { path },
    });
    return (await running.send("POST", "/api/rag/resource", { body })).json.data;
  };
  const dome = await create("handbook/dome.md", "The dome is opened never while it rains.", "fastest");
  domeId = dome._id;
  await create("handbook/ma\u00f1ana.md", "Mirrors are cleaned tomorrow.", "fastest");
  await create(undefined, "Bread needs salt and patience.", "fastest");
  const other = await create("kitchen/bread.md", "Bread needs salt.", "moderate");
  const part = (collection_id: string) => ({ collection_id, owner_id: "observatory" });
  parts = [part(dome.collectionId), part(dome.collectionId), part(other.collectionId)];
}, 60_000);
afterAll(() => running.close());

const evaluate = (fields: object, key?: string): Promise<Answered> =>
  running.send("POST", "/v1/eval", {
    body: { parts: parts.slice(0, 1), ...fields },
    ...(key !== undefined && { key }),
  });
const QUESTIONS = [
  {
    question: "may the dome be opened while it rains",
    expect: "handbook/dome.md",
    answer: "never  while it\nrains",
  },
  { question: "when are mirrors cleaned", expect: ["nowhere.md", "./handbook/man\u0303ana.md"] },
  { question: "what does bread need", expect: "kitchen/bread.md", answer: "yeast" },
];

it("returns hit rates, reciprocal rank, answers and misses per tier and setting", async () => {
  const { status, json } = await evaluate({
    questions: QUESTIONS,
    parts,
    settings: [{}, { expand: "section", max_tokens: 500 }, { filter: { path: "handbook/dome.md" } }],
  });
  expect(status).toBe(200);
  const { asked, questions, results } = json.data;
  expect({ asked, questions }).toEqual({ asked: 3, questions: 3 });
  expect(results.map(({ tier, setting }: { tier: string; setting: number }) => [tier, setting])).toEqual([
    ["fastest", 0],
    ["fastest", 1],
    ["fastest", 2],
    ["moderate", 0],
    ["moderate", 1],
    ["moderate", 2],
  ]);
  expect(results[0]).toMatchObject({ hit1: 2 / 3, hit3: 2 / 3, mrr: 2 / 3, answer: 1 / 2, fallbacks: 0 });
  expect(results[0].misses).toMatchObject([{ question: 2, rank: null, answered: false }]);
  expect(results[0].misses[0].came[0]).toMatchObject({ path: null });
  expect(results[1]).toMatchObject({ hit1: 2 / 3, answer: 1 / 2 });
  expect(results[2]).toMatchObject({ hit1: 1 / 3, answer: 1 / 2 });
  expect(results[3]).toMatchObject({ hit1: 1 / 3, mrr: 1 / 3 });
});

it("takes a folder and a document's id as what is expected", async () => {
  const [first] = QUESTIONS;
  for (const expect_ of ["handbook/", domeId]) {
    const { json } = await evaluate({ questions: [{ ...first, expect: expect_ }] });
    expect(json.data.results[0]).toMatchObject({ hit1: 1, misses: [] });
  }
  const { json } = await evaluate({ questions: [{ ...first, expect: "hand/" }] });
  expect(json.data.results[0]).toMatchObject({ hit1: 0, answer: 1 });
});

it("takes globs as what is expected", async () => {
  const [first] = QUESTIONS;
  for (const [glob, hit1] of [
    ["hand*/d?me.md", 1],
    ["**/dome.md", 1],
    ["d*.md", 1],
    ["kitchen/**", 0],
  ]) {
    const { json } = await evaluate({ questions: [{ ...first, expect: glob }] });
    expect([glob, json.data.results[0].hit1]).toEqual([glob, hit1]);
  }
});

it("compares with results of an earlier answer, question by question", async () => {
  const earlier = (await evaluate({ questions: QUESTIONS })).json.data.results;
  const outcomes = [
    { rank: 1, answered: true },
    { rank: 1, answered: null },
    { rank: null, answered: false },
  ];
  expect(earlier[0]).toMatchObject({ outcomes, comparison: null });
  const [dome, mirrors, bread] = QUESTIONS;
  const changed = [bread, { ...mirrors, expect: "gone.md" }, dome];
  const before = [
    { ...earlier[0], outcomes: [{ ...earlier[0].outcomes[0], rank: 2 }, ...earlier[0].outcomes.slice(1)] },
  ];
  const { json } = await evaluate({ questions: changed, before });
  expect(json.data.results[0].comparison).toEqual({
    questions: 2,
    before: { hit1: 0, hit3: 1 / 2, mrr: 1 / 4, answer: 1 / 2 },
    now: { hit1: 1 / 2, hit3: 1 / 2, mrr: 1 / 2, answer: 1 / 2 },
    worse: [],
    better: [{ question: 2, before: { rank: 2, answered: true }, now: { rank: 1, answered: true } }],
  });
  const other = await evaluate({ questions: changed, before: [{ ...earlier[0], tier: "moderate" }] });
  expect(other.json.data.results[0].comparison).toBeNull();
});

it.each([
  ["no questions", { questions: [] }, 400, "questions"],
  ["a question without what is expected", { questions: [{ question: "why" }] }, 400, "questions[0].expect"],
  ["too many questions", { questions: Array.from({ length: 201 }, () => QUESTIONS[0]) }, 400, "questions"],
  ["a long glob", { questions: [{ question: "why", expect: "*".repeat(201) }] }, 400, "questions[0].expect"],
  [
    "many globs",
    { questions: [{ question: "why", expect: Array.from({ length: 11 }, (_, at) => `*${at}`) }] },
    400,
    "questions[0].expect",
  ],
  ["an earlier result of no tier", { questions: QUESTIONS, before: [{}] }, 400, "before[0].tier"],
  [
    "a foreign collection",
    { questions: QUESTIONS, parts: [{ collection_id: "f".repeat(24), owner_id: "o" }] },
    404,
    "parts",
  ],
  [
    "a bad filter",
    { questions: QUESTIONS, settings: [{ filter: { a: { like: 1 } } }] },
    400,
    "settings[0].filter.a.like",
  ],
])("refuses %s", async (_name, fields, status, field) => {
  const answered = await evaluate(fields);
  expect(answered.status).toBe(status);
  expect(answered.json.error.field).toBe(field);
});

it("makes questions from headings that one document alone has, which find their documents", async () => {
  const create = async (path: string | undefined, content: string, owner_id = "ferry") => {
    const metadata = path === undefined ? {} : { path };
    const body = createBody({ content, owner_id, collection_details: "fastest", metadata });
    return (await running.send("POST", "/api/rag/resource", { body })).json.data;
  };
  await create(
    "a.md",
    "---\nname: no heading\n---\n# See also\n\n## Opening hours\n\nThe ferry leaves at noon.",
  );
  const { _id, collectionId } = await create(undefined, "# See also\n\n# The old crane\n\n| a | b |");
  await create("deploy.sh", "# Restart the service\n");
  await create("b.md", "# Of another owner\n", "pier");
  const query = `collectionId=${collectionId}&ownerId=ferry`;
  const { status, json } = await running.send("GET", `/v1/eval/starter?${query}`);
  expect(status).toBe(200);
  const { questions } = json.data;
  expect(json.data).toEqual({
    questions: [
      { question: "The old crane", expect: _id },
      { question: "Opening hours", expect: "a.md", answer: "The ferry leaves at noon." },
    ].toSorted((one, other) => (one.expect < other.expect ? -1 : 1)),
    headings: 2,
    isComplete: true,
  });
  const own = [{ collection_id: collectionId, owner_id: "ferry" }];
  const evaluated = await evaluate({ questions, parts: own });
  expect(evaluated.json.data.results[0]).toMatchObject({ hit1: 1, answer: 1 });
  const one = await running.send("GET", `/v1/eval/starter?${query}&limit=1`);
  expect(one.json.data).toMatchObject({ questions: [{}], headings: 2 });
  const key = await running.issueKey("stranger", ["read"]);
  expect((await running.send("GET", `/v1/eval/starter?${query}`, { key })).status).toBe(404);
});

it("makes no questions for an account whose evaluation runs, so that others get a turn", async () => {
  const query = `collectionId=${parts[0]?.collection_id}&ownerId=observatory`;
  const make = () => running.send("GET", `/v1/eval/starter?${query}`);
  const many = Array.from({ length: 200 }, () => QUESTIONS[0]);
  const evaluating = evaluate({ questions: many, parts });
  await sleep(5);
  await vi.waitFor(async () => expect((await make()).json.error.code).toBe("overloaded"), { interval: 1 });
  expect((await evaluating).status).toBe(200);
  expect((await make()).status).toBe(200);
});

it("runs one evaluation of an account at a time", async () => {
  const many = Array.from({ length: 200 }, () => QUESTIONS[0]);
  const both = await Promise.all([
    evaluate({ questions: many, parts }),
    evaluate({ questions: many, parts }),
  ]);
  expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 503]);
  expect(both.find(({ status }) => status === 503)?.json.error.code).toBe("overloaded");
  expect((await evaluate({ questions: QUESTIONS })).status).toBe(200);
});

it("lets more accounts evaluate at a time than it searches for, and delays none until another ends", async () => {
  const many = Array.from({ length: 100 }, () => QUESTIONS[0]);
  const accounts = Array.from({ length: 8 }, (_, at) => `account-${at}`);
  const answers = await Promise.all(
    accounts.map(async (account) => {
      const key = await running.issueKey(account, ["read", "write"]);
      const { json } = await running.send("GET", "/api/rag/collections", { key });
      const [{ _id: collectionId }] = json.data.collections;
      const part = { collection_id: collectionId, owner_id: "observatory" };
      const answered = await evaluate({ questions: many, parts: [part] }, key);
      return [answered.status, answered.json.data?.asked];
    }),
  );
  expect(answers).toEqual(accounts.map(() => [200, 100]));
});

it("embeds a question once for all settings and tiers, and once more when that failed", async () => {
  const real = hashedEmbedder();
  const asked: string[] = [];
  let failures = 1;
  const queries = {
    ...real,
    embed: async (texts: readonly string[]) => {
      asked.push(...texts);
      if (failures-- > 0) throw new Error("busy");
      return real.embed(texts);
    },
  };
  const embedding = await openRunning({ openEmbedder: async () => ({ ...real, queries }) });
  try {
    const create = async (details: string) => {
      const body = createBody({ content: "The dome.", owner_id: "o", collection_details: details });
      const { collectionId } = (await embedding.send("POST", "/api/rag/resource", { body })).json.data;
      return { collection_id: collectionId, owner_id: "o" };
    };
    const { json } = await embedding.send("POST", "/v1/eval", {
      body: {
        questions: ["first", "second"].map((question) => ({ question, expect: "a.md" })),
        parts: [await create("moderate"), await create("high_accuracy")],
        settings: [{}, { collapse: true }],
      },
    });
    expect(asked).toEqual(["first", "first", "second"]);
    expect(json.data.results.map(({ fallbacks }: { fallbacks: number }) => fallbacks)).toEqual([1, 0, 0, 0]);
  } finally {
    await embedding.close();
  }
});

it("counts each search against the rate of the key, and answers what was asked when the time ends", async () => {
  const limited = await openRunning({ rate: { perMinute: 1, burst: 4 } });
  try {
    const body = createBody({ content: "The dome.", owner_id: "o", collection_details: "fastest" });
    const { collectionId } = (await limited.send("POST", "/api/rag/resource", { body })).json.data;
    const { json } = await limited.send("POST", "/v1/eval", {
      body: {
        questions: Array.from({ length: 9 }, () => ({ question: "dome", expect: "a.md" })),
        parts: [{ collection_id: collectionId, owner_id: "o" }],
        timeout_seconds: 2,
      },
    });
    expect(json.data).toMatchObject({ asked: 2, questions: 9 });
    expect(json.data.results[0].misses).toHaveLength(2);
  } finally {
    await limited.close();
  }
});

/** Answers an evaluation of nine questions. `before` is called before each read of the index, with how many there were. */
async function evaluateWhile(
  before: (reads: number, running: Running) => void,
): Promise<{ readonly answered: Answered; readonly reads: number }> {
  let reads = 0;
  const broken = await openRunning({
    wrapStore: (store) =>
      withMethods(store, {
        index: {
          evidence: async (query) => {
            before((reads += 1), broken);
            return store.index.evidence(query);
          },
        },
      }),
  });
  try {
    const created = createBody({ content: "The dome.", owner_id: "o", collection_details: "fastest" });
    const { collectionId } = (await broken.send("POST", "/api/rag/resource", { body: created })).json.data;
    const body = {
      questions: Array.from({ length: 9 }, () => ({ question: "dome", expect: "a.md" })),
      parts: [{ collection_id: collectionId, owner_id: "o" }],
    };
    return { answered: await broken.send("POST", "/v1/eval", { body }), reads };
  } finally {
    await broken.close();
  }
}

it("answers what was asked before a search fails that may succeed later", async () => {
  const { answered } = await evaluateWhile((reads) => {
    if (reads > 3) throw new Refusal("store_busy", "Later.", { retryAfterSeconds: 1 });
  });
  expect(answered.status).toBe(200);
  const { asked, results } = answered.json.data;
  expect(asked).toBeGreaterThan(0);
  expect(asked).toBeLessThan(4);
  expect(results[0].misses).toHaveLength(asked);
});

it.each([
  ["the first search fails", "store_busy", 1, 1],
  ["a search fails for good", "internal", undefined, 3],
] as const)("passes on the failure when %s", async (_name, code, retryAfterSeconds, from) => {
  const { answered } = await evaluateWhile((reads) => {
    if (reads >= from)
      throw new Refusal(code, "No.", retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
  });
  expect(answered.json.error.code).toBe(code);
});

it("asks no further question once the service ends, and answers what was asked", async () => {
  let ended: Promise<void> | undefined;
  const { answered } = await evaluateWhile((reads, { service }) => {
    if (reads === 3) ended = service.close();
  });
  await ended;
  expect(answered.status).toBe(200);
  expect(answered.json.data.asked).toBeGreaterThan(0);
  expect(answered.json.data.asked).toBeLessThan(4);
});
