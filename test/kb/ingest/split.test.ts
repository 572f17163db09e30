import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openLanguageService } from "../../../src/kb/ingest/language-service.ts";
import { openModel } from "../../../src/kb/ingest/model.ts";
import { INLINE_CHARS_MAX, openSplitter, UNITS_MAX } from "../../../src/kb/ingest/split.ts";
import type { Splitter, SplitterParts } from "../../../src/kb/ingest/split.ts";
import { openModelHealth } from "../../../src/kb/models/model-health.ts";
import { openTextModel } from "../../../src/kb/ingest/agentic/text-model.ts";
import { openOpenAiModel } from "../../../src/kb/models/openai.ts";
import type { ChatModel } from "../../../src/kb/models/chat-model.ts";
import type { Embedder } from "../../../src/kb/embed/embedder.ts";
import type { Settings, Strategy } from "../../../src/wire/primitives.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { startLanguageModelServer } from "../../fakes/language-model-server.ts";
import type { LanguageModelServer, Script } from "../../fakes/language-model-server.ts";
import { expectLawful } from "./chunk/laws.ts";
import { WAIT } from "../../wait.ts";

const SEA = "The tide rises and the sea covers the harbour wall at noon. ";
const BREAD = "Knead the dough with flour and yeast until the bread is soft. ";
/** Two matters without a joint that the structure shows. */
const TWO_MATTERS = SEA.repeat(7) + BREAD.repeat(7);
const CHAPTERS = [
  "Chapter one. ",
  SEA.repeat(3),
  "Chapter two. ",
  BREAD.repeat(9),
  "Chapter three. ",
  SEA.repeat(2),
].join("");

function settings(strategy: Strategy, chunkSize = 600, chunkOverlap = 0): Settings {
  return { strategy, chunkSize, chunkOverlap };
}

describe("splitting", () => {
  let server: LanguageModelServer;
  let nowMs: number;
  const opened: Splitter[] = [];
  const chats: ChatModel[] = [];
  const reported: string[] = [];
  beforeEach(async () => {
    server = await startLanguageModelServer();
    nowMs = 0;
  });
  afterEach(async () => {
    for (const splitter of opened.splice(0)) await splitter.close();
    for (const chat of chats.splice(0)) await chat.close();
    reported.splice(0);
    await server.close();
  });

  const open = (
    embedder: Embedder | undefined,
    withLanguage: boolean,
    bounds: Pick<SplitterParts, "agenticMs"> = {},
  ): Splitter => {
    const { baseUrl, apiKey } = server;
    const model = openModel(embedder === undefined ? undefined : async () => embedder, () => nowMs, {
      onReady: () => undefined,
      onProblem: () => undefined,
    });
    const chat = openOpenAiModel({ baseUrl, apiKey: () => apiKey, timeoutMs: 60_000, attempts: 1 });
    chats.push(chat);
    const splitter = openSplitter({
      model,
      language: withLanguage
        ? openLanguageService(
            openTextModel(chat, "divider-1"),
            () => nowMs,
            openModelHealth(() => undefined),
          )
        : undefined,
      busy: () => new Error("busy"),
      onOtherStrategy: (asked, used, reason) => reported.push(`${asked} ${used}: ${reason}`),
      ...bounds,
    });
    opened.push(splitter);
    return splitter;
  };
  const partsOf = (
    text: string,
    { spans }: { readonly spans: readonly { start: number; end: number }[] },
  ): string[] => spans.map(({ start, end }) => text.slice(start, end));

  it("semantic chunking cuts where the subject changes, and by structure where a chunk is full", async () => {
    const splitter = open(hashedEmbedder(), false);
    const asked = settings("semantic");
    const split = await splitter.split(TWO_MATTERS, asked);
    expect(split.strategyUsed).toBe("semantic");
    expectLawful(TWO_MATTERS, asked, split.spans);
    expect(partsOf(TWO_MATTERS, split)).toEqual([SEA.repeat(7).trim(), BREAD.repeat(7).trim()]);
    const [first = ""] = partsOf(TWO_MATTERS, await splitter.split(TWO_MATTERS, settings("recursive")));
    expect(first).toContain("Knead");
    expect(reported).toEqual([]);
  });

  it("one account cannot fill the queue of long texts", async () => {
    const splitter = open(undefined, false);
    const text = SEA.repeat(Math.ceil(INLINE_CHARS_MAX / SEA.length) + 1);
    const split = (account: string) =>
      splitter.split(text, settings("recursive"), { lane: "backlog", tenant: [account, "owner"] });
    const outcomes = Promise.allSettled(Array.from({ length: 80 }, () => split("busy")));
    expect((await split("other")).spans.length).toBeGreaterThan(0);
    const refused = (await outcomes).filter(({ status }) => status === "rejected");
    // One is split, 64 wait.
    expect(refused).toHaveLength(80 - 65);
  });

  it("a long text waits for one long text of another account at most", async () => {
    const splitter = open(undefined, false);
    const text = SEA.repeat(Math.ceil(INLINE_CHARS_MAX / SEA.length) + 1);
    const ended: string[] = [];
    const split = async (account: string): Promise<void> => {
      await splitter.split(text, settings("recursive"), { lane: "backlog", tenant: [account, "owner"] });
      ended.push(account);
    };
    const busy = Array.from({ length: 20 }, () => split("busy"));
    await Promise.all([...busy, split("other"), split("another")]);
    expect(ended.slice(0, 3)).toEqual(["busy", "other", "another"]);
  });

  it.each<Strategy>(["semantic", "agentic"])(
    "%s chunking of an account does not wait for the documents of another",
    async (strategy) => {
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const real = hashedEmbedder();
      let held = 0;
      const embedder: Embedder = {
        ...real,
        embed: async (texts) => {
          if (texts.some((text) => text.includes("Held"))) {
            held += 1;
            await released;
          }
          return real.embed(texts);
        },
      };
      const splitter = open(embedder, strategy === "agentic");
      if (strategy === "agentic") server.next({ hangs: true }, { hangs: true });
      const split = (text: string, account: string) =>
        splitter.split(text, settings(strategy), { lane: "backlog", tenant: [account, "owner"] });
      const busy = Array.from({ length: 4 }, () => split(`Held. ${TWO_MATTERS}`, "busy"));
      await vi.waitFor(() => expect(strategy === "agentic" ? server.asked.length : held).toBe(2), WAIT);
      expect((await split(CHAPTERS, "other")).strategyUsed).toBe(strategy);
      release();
      await splitter.close();
      await Promise.allSettled(busy);
    },
  );

  it("agentic chunking cuts at the boundaries of the language model, and keeps the text verbatim", async () => {
    const splitter = open(hashedEmbedder(), true);
    const asked = settings("agentic", 500, 50);
    const split = await splitter.split(CHAPTERS, asked);
    expect(split.strategyUsed).toBe("agentic");
    expectLawful(CHAPTERS, asked, split.spans);
    const own = split.spans.map(({ end }, at) => CHAPTERS.slice(split.spans[at - 1]?.end ?? 0, end).trim());
    expect(own.join(" ")).toBe(CHAPTERS.trim());
    // The second chapter is longer than a chunk: it is divided without the model.
    expect(own.filter((part) => part.startsWith("Chapter"))).toHaveLength(3);
    expect(own).toHaveLength(4);
    expect(server.asked).toHaveLength(1);
    expect(await splitter.split(CHAPTERS, asked)).toEqual(split);
  });

  it("agentic chunking sends the flaw of an unusable answer to the model, and uses the next one", async () => {
    server.next({ says: "I would rather not." }, { says: '{"split_after": [99]}' });
    const split = await open(hashedEmbedder(), true).split(CHAPTERS, settings("agentic"));
    expect(split.strategyUsed).toBe("agentic");
    const turns = server.asked.map(({ messages }) => messages.slice(2).map(({ content }) => content));
    expect(turns[1]).toEqual(["I would rather not.", expect.stringContaining("no JSON")]);
    expect(turns[2]).toEqual(['{"split_after": [99]}', expect.stringContaining("expected numbers from 0")]);
  });

  const CUT_OFF: Script = { says: "{", finish: "length" };
  const nonsense: Script = { says: '{"split_after": [5, 2]}' };
  it.each<
    [
      name: string,
      embedder: boolean,
      language: boolean,
      scripts: readonly Script[],
      used: Strategy,
      reported: RegExp,
      asked: number,
    ]
  >([
    ["nonsense three times", true, true, [nonsense, nonsense, nonsense], "semantic", /ascending/, 3],
    ["answers cut off", true, true, [CUT_OFF, CUT_OFF, CUT_OFF], "semantic", /ended by length/, 3],
    ["a model that does not answer", true, true, [{ status: 503 }], "semantic", /does not answer/, 1],
    [
      "a wrong name of a model",
      true,
      true,
      [{ status: 404, error: "no such model" }],
      "semantic",
      /no such model/,
      1,
    ],
    ["no language model", true, false, [], "semantic", /no language model is configured/, 0],
    ["no model at all", false, false, [], "recursive", /no language model is configured/, 0],
  ])(
    "agentic with %s says what it did instead",
    async (_name, embedder, language, scripts, used, reason, asked) => {
      server.next(...scripts);
      const splitter = open(embedder ? hashedEmbedder() : undefined, language);
      const split = await splitter.split(CHAPTERS, settings("agentic"));
      expect(split.strategyUsed).toBe(used);
      expect(split.spans).toEqual((await splitter.split(CHAPTERS, settings(used))).spans);
      expect(reported.at(-1)).toMatch(new RegExp(`agentic ${used}: .*${reason.source}`));
      expect(server.asked).toHaveLength(asked);
    },
  );

  it("agentic chunking times out per document, and reports the strategy used instead", async () => {
    server.next({ hangs: true });
    const splitter = open(hashedEmbedder(), true, { agenticMs: 100 });
    expect((await splitter.split(CHAPTERS, settings("agentic"))).strategyUsed).toBe("semantic");
    expect(reported).toEqual([expect.stringMatching(/^agentic semantic: .*takes longer/)]);
    // It may answer shorter documents.
    const patient = open(hashedEmbedder(), true);
    expect((await patient.split(CHAPTERS, settings("agentic"))).strategyUsed).toBe("agentic");
  });

  it("a failing language model has a cooldown", async () => {
    const splitter = open(hashedEmbedder(), true);
    server.next({ status: 503 });
    await splitter.split(CHAPTERS, settings("agentic"));
    await splitter.split(CHAPTERS, settings("agentic"));
    expect(server.asked).toHaveLength(1);
    nowMs += 31_000;
    expect((await splitter.split(CHAPTERS, settings("agentic"))).strategyUsed).toBe("agentic");
  });

  it("agentic chunking sends a long text in windows, and divides all of it", async () => {
    const text = Array.from(
      { length: 60 },
      (_, at) => `Chapter ${at}. ${at % 2 === 0 ? SEA.repeat(8) : BREAD.repeat(8)}`,
    ).join("");
    const asked = settings("agentic");
    const split = await open(hashedEmbedder(), true).split(text, asked);
    expect(split.strategyUsed).toBe("agentic");
    expectLawful(text, asked, split.spans);
    expect(partsOf(text, split).filter((part) => part.startsWith("Chapter"))).toHaveLength(60);
    expect(server.asked.length).toBeGreaterThan(2);
    expect(server.asked.length).toBeLessThan(12);
  });

  it.each<[name: string, embedder: Embedder | undefined, reason: RegExp]>([
    ["no embedding model", undefined, /no embedding model/],
    ["one that fails", { ...hashedEmbedder(), embed: () => Promise.reject(new Error("broken")) }, /failed/],
  ])("semantic chunking with %s falls back to structure, and reports it", async (_name, embedder, reason) => {
    const splitter = open(embedder, false);
    const split = await splitter.split(TWO_MATTERS, settings("semantic"));
    expect(split).toEqual({
      ...(await splitter.split(TWO_MATTERS, settings("recursive"))),
      strategyUsed: "recursive",
    });
    expect(reported).toEqual([expect.stringMatching(reason)]);
  });

  it("semantic chunking embeds a bounded number of units, and uses the worker for a long text", async () => {
    let embedded = 0;
    const real = hashedEmbedder();
    const counting: Embedder = {
      ...real,
      embed: async (texts) => {
        embedded += texts.length;
        const vector = new Float32Array(real.dimensions).fill(1 / Math.sqrt(real.dimensions));
        return texts.map(() => vector);
      },
    };
    const splitter = open(counting, false);
    const long = SEA.repeat(Math.ceil((2 * INLINE_CHARS_MAX) / SEA.length));
    const asked = settings("semantic", 1000, 100);
    const split = await splitter.split(long, asked);
    expect(split.strategyUsed).toBe("semantic");
    expectLawful(long, asked, split.spans);
    expect(embedded).toBeGreaterThan(100);
    embedded = 0;
    const huge = SEA.repeat(40_000);
    expect((await splitter.split(huge, settings("semantic", 4000, 0))).strategyUsed).toBe("semantic");
    expect(embedded).toBeLessThanOrEqual(UNITS_MAX);
    expect((await splitter.split(huge, settings("semantic", 500, 0))).strategyUsed).toBe("recursive");
    expect(reported).toEqual([expect.stringMatching(/too long/)]);
  });
});
