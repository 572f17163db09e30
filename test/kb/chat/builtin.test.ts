import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerBuiltin, type BuiltinAnswer } from "../../../src/kb/chat/builtin.ts";
import type { ChatImage } from "../../../src/kb/chat/images.ts";
import type { Passage } from "../../../src/kb/chat/passage.ts";
import { createBody } from "../service/running.ts";
import type { Running } from "../service/running.ts";
import { ask, eventsOf, openAsking, remember } from "./asking.ts";
import { passageOf } from "./passage.ts";

let running: Running;
let resourceId: string;
beforeAll(async () => {
  const navy = {
    id: "navy",
    systemPrompt: "",
    knowledge: [{ tier: "fastest" as const, owner: "navy" }],
  };
  running = await openAsking(undefined, { agents: [navy] });
  resourceId = await remember(running, "The harbour is old. The new crane lifts forty tons.");
});
afterAll(() => running.close());

describe("without a model", () => {
  it("an answer without a model quotes matching passages with their positions, and says that no model made it", async () => {
    const { status, json } = await ask(running, { user: "What does the crane lift?" });
    expect(status).toBe(200);
    const { data, usage } = json.response;
    expect(data).toMatchObject({ model: "builtin/ocr", finish_reason: "completed", fallback: false });
    expect(data.content).toMatch(
      /^No language model answered this\. Passages of the knowledge base are quoted as they stand\.\n/,
    );
    expect(data.content).toContain("“The new crane lifts forty tons.” [1] (Harbour)");
    expect(data.annotations).toMatchObject([
      { type: "citation", number: 1, resource_id: resourceId, span: { start: 20, end: 51 } },
    ]);
    expect(Object.values(usage)).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  });

  it("an answer without a model says if nothing matches", async () => {
    const { json } = await ask(running, { user: "zebras" });
    expect(json.response.data.content).toBe(
      "No language model answered this.\n\nThe knowledge base holds nothing that fits the question.",
    );
  });

  const passage = (number: number, score: number, text: string): Passage =>
    passageOf(number, text, { score, title: "Harbour" });
  const answered = (
    passages: readonly Passage[],
    question = "What does the crane lift?",
  ): Promise<BuiltinAnswer> =>
    answerBuiltin(
      { pagesMax: 0, readImage: () => Promise.reject(new Error("no image")) },
      {
        question,
        images: [],
        passages,
        hasKnowledge: true,
        asJson: false,
        signal: new AbortController().signal,
      },
    );

  it("quotes no passage with a minimal score, whatever words it shares", async () => {
    const { text, citations } = await answered([passage(1, 0.004, "The crane may lift its head.")]);
    expect(citations).toEqual([]);
    expect(text).toContain("The knowledge base holds nothing that fits the question.");
  });

  it("quotes the sentence that answers, not the front matter or the introduction before it", async () => {
    const { citations } = await answered([
      passage(
        1,
        0.6,
        "---\ntopic: what cranes lift\n---\n# The crane\n\nThis page is about the crane of the harbour.\n\nIt was built in 1962. The crane lifts forty tons.",
      ),
    ]);
    expect(citations[0]?.span.text).toBe("The crane lifts forty tons.");
  });

  it.each<[string, string, number, string, number]>([
    ["part of the question", "Which zebra opens the crane?", 0.4, "The crane is old.", 0],
    ["all of the question", "What does the crane lift?", 0.2, "The crane lifts forty tons.", 1],
    ["other words of the same meaning, surely", "What does the crane lift?", 0.7, "It raises forty tons.", 1],
    ["other words, not surely", "What does the crane lift?", 0.5, "It raises forty tons.", 0],
  ])(
    "the builtin agent quotes what fits of a passage with %s",
    async (_name, question, score, text, count) => {
      const { citations } = await answered([passage(1, score, text)], question);
      expect(citations).toHaveLength(count);
    },
  );

  it("quotes each sentence once, with consecutive numbers", async () => {
    const { text, citations } = await answered([
      passage(1, 0.9, "The crane lifts forty tons."),
      passage(2, 0.8, "The crane  lifts\nforty tons."),
      passage(3, 0.2, "Waves."),
      passage(4, 0.2, "A crane lifts boats."),
    ]);
    expect(citations.map(({ number, resource_id }) => [number, resource_id])).toEqual([
      [1, "r1"],
      [2, "r4"],
    ]);
    expect(text.match(/forty tons/g)).toHaveLength(1);
    expect(text).toContain("“A crane lifts boats.” [2]");
  });

  const LINE = "The crane lifts forty tons.";
  const box = { left: 0, top: 0, right: 300, bottom: 20 };
  const line = {
    text: LINE,
    confidence: 95,
    box,
    words: [{ text: LINE, confidence: 95, box }],
    startsParagraph: true,
  };
  const scan = {
    url: "https://kb.example/scan.tiff",
    read: <T>(work: (path: string) => Promise<T>) => work("/uploads/scan"),
    file: { accountId: "local", name: "scan.tiff", mediaType: "image/tiff", sizeBytes: 2048 },
    facts: { widthPx: 600, heightPx: 800, pages: 2 },
  } as unknown as ChatImage; // all that is used of it

  it.each([
    ["was read whole", [], `pixels, 2 KB, 2 pages). Its text:\n\n${LINE}`],
    [
      "was read in part",
      [{ page: 2, why: "bound" }],
      `pixels, 2 KB, 2 pages). Page 2 was not read: it has 2 pages, and text was recognised on the first 1 of them, as many as one document may take. Its text:\n\n${LINE}`,
    ],
  ] as const)("describes a scan that %s", async (_name, unread, words) => {
    const { text } = await answerBuiltin(
      { pagesMax: 20, readImage: async () => ({ pages: [{ page: 1, lines: [line] }], unread }) },
      {
        question: "What does the crane lift?",
        images: [scan],
        passages: [],
        hasKnowledge: false,
        asJson: false,
        signal: new AbortController().signal,
      },
    );
    expect(text).toContain(words);
    expect(text).toContain(`Lines of the images that fit the question:\n\n${LINE}`);
  });

  it("streams an answer without a model in pieces, and returns JSON on request", async () => {
    const streamed = eventsOf((await ask(running, { user: "crane lifts", stream: true })).text);
    expect(streamed.map(({ event }) => event)).toEqual(["delta", "delta", "completed"]);
    const { json } = await ask(running, { user: "What does the crane lift?", response_type: "json" });
    expect(JSON.parse(json.response.data.content)).toMatchObject({
      note: expect.stringContaining("No language model"),
      passages: [{ title: "Harbour", text: "The new crane lifts forty tons." }],
    });
  });
});

describe("what an agent reads", () => {
  it("a question loads no embedding model if no document needs one", async () => {
    let opened = 0;
    const openEmbedder = () => {
      opened += 1;
      return Promise.reject(new Error("nobody needs it"));
    };
    const places = (["fastest", "moderate", "high_accuracy"] as const).map((tier) => ({ tier }));
    const asked = await openAsking(undefined, { defaultKnowledge: () => places }, { openEmbedder });
    try {
      await asked.send("POST", "/api/rag/resource", { body: createBody() });
      const { json } = await ask(asked, { user: "What pulls the sea?" });
      expect(json.response.data.content).toContain("The moon pulls the sea.");
      expect(opened).toBe(0);
    } finally {
      await asked.close();
    }
  });

  it("an agent reads only the documents of its owner", async () => {
    await running.send("POST", "/api/rag/resource", {
      body: createBody({ content: "The submarine dives deep.", owner_id: "navy" }),
    });
    expect((await ask(running, { user: "submarine dives" })).json.response.data.annotations).toEqual([]);
    const { json } = await ask(running, { agent_id: "navy", user: "submarine dives" });
    expect(json.response.data.annotations).toMatchObject([{ span: { text: "The submarine dives deep." } }]);
  });
});
