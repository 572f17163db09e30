import { expect, it } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { ask, modelsOf, type Question } from "../../../src/kb/chat/attempts.ts";
import { type ChatModel, type ModelAnswer } from "../../../src/kb/models/chat-model.ts";
import { NO_USAGE } from "../../../src/kb/models/price.ts";
import { ModelFailure, unusableAnswer } from "../../../src/kb/models/model-failure.ts";
import { openModelHealth } from "../../../src/kb/models/model-health.ts";

const MODEL = "seeing";
const question = {
  agent: { id: "default", knowledge: [] },
  systemPrompt: "",
  text: "Hello?",
  images: [],
  passages: [],
  turns: [],
  asJson: false,
} as unknown as Question; // what else an agent has is not used here

/** Asks once for each end of an answer; a model that gives none is in doubt. */
async function failingAfter(ends: readonly (ModelAnswer["finish"] | "none")[]): Promise<boolean> {
  const watch = openModelHealth(() => undefined);
  for (const finish of ends) {
    const chat: Pick<ChatModel, "answer"> = {
      answer: async () => {
        if (finish === "none") throw unusableAnswer(MODEL, "it said nothing", NO_USAGE);
        return { id: "1", text: "Hi", model: MODEL, finish, usage: NO_USAGE, problem: "" };
      },
    };
    const answerers = {
      endpoint: { chat: chat as ChatModel, model: MODEL, watch }, // it is only asked
      ocr: { pagesMax: 0, readImage: () => Promise.reject(new Error("no image")) },
      contextTokensOf: () => 10_000,
    };
    await ask(answerers, question, { signal: new AbortController().signal }).catch(() => undefined);
  }
  return watch.isFailing(MODEL);
}

it.each([
  ["a complete answer clears the failures before it", "completed", false],
  ["a stream that broke off does not clear the failures before it", "error", true],
] as const)("%s", async (_name, finish, isFailing) => {
  expect(await failingAfter(["none", "none", finish, "none"])).toBe(isFailing);
});

/** Asks an agent with two models, each of which answers or throws; returns what came of it. */
async function askTwo(first: Error, second: Error | string) {
  const asked: string[] = [];
  const chat: Pick<ChatModel, "answer"> = {
    answer: async ({ model }) => {
      asked.push(model);
      const outcome = model === MODEL ? first : second;
      if (typeof outcome !== "string") throw outcome;
      return { id: "1", text: outcome, model, finish: "completed", usage: NO_USAGE, problem: "" };
    },
  };
  const answerers = {
    endpoint: { chat: chat as ChatModel, model: MODEL, watch: openModelHealth(() => undefined) }, // it is only asked
    ocr: { pagesMax: 0, readImage: () => Promise.reject(new Error("no image")) },
    contextTokensOf: () => 10_000,
  };
  const withSecond = { ...question, agent: { ...question.agent, fallbackModel: "second" } };
  const outcome = await ask(answerers, withSecond, { signal: new AbortController().signal }).catch(
    (error: unknown) => error,
  );
  return { asked, outcome };
}
const busy = new ModelFailure("the model seeing failed: busy", {
  code: "model_busy",
  subject: MODEL,
  kind: "unreachable",
});

it("the second model answers where the first failed, and the answer names the first failure", async () => {
  const { asked, outcome } = await askTwo(busy, "Hi");
  expect(asked).toEqual([MODEL, "second"]);
  expect(outcome).toMatchObject({ text: "Hi", fallback: true, firstAttemptError: busy.message });
});

it("when both models fail, the message names both failures, and the code is the second one's", async () => {
  const late = new ModelFailure("late", { code: "model_timeout", subject: "second", kind: "unreachable" });
  const { outcome } = await askTwo(busy, late);
  expect(outcome).toMatchObject({ code: "model_timeout", message: `${busy.message}; then late` });
});

it.each(["text_too_large", "closed"])(
  "what is no failure of a model is thrown as it is: %s",
  async (code) => {
    const error = new KbsyncError("no", { code });
    expect(await askTwo(error, "Hi")).toEqual({ asked: [MODEL], outcome: error });
    expect(await askTwo(busy, error)).toEqual({ asked: [MODEL, "second"], outcome: error });
  },
);

it.each<
  [title: string, models: Pick<Question["agent"], "model" | "fallbackModel">, tried: readonly string[]]
>([
  ["an agent without models uses the default model", { model: undefined, fallbackModel: undefined }, [MODEL]],
  [
    "an agent without a fallback tries its own model alone",
    { model: "own", fallbackModel: undefined },
    ["own"],
  ],
  [
    "a fallback is tried after the agent's model",
    { model: "own", fallbackModel: "second" },
    ["own", "second"],
  ],
  [
    "a fallback equal to the agent's model is not tried again",
    { model: "own", fallbackModel: "own" },
    ["own"],
  ],
  [
    "a fallback equal to the default model is not tried again",
    { model: undefined, fallbackModel: MODEL },
    [MODEL],
  ],
])("%s", (_title, models, tried) => {
  const answerers = {
    endpoint: { chat: {} as ChatModel, model: MODEL, watch: openModelHealth(() => undefined) }, // nothing is asked
    ocr: { pagesMax: 0, readImage: () => Promise.reject(new Error("no image")) },
    contextTokensOf: () => 10_000,
  };
  expect(modelsOf({ ...question.agent, ...models }, answerers)).toEqual(tried);
});

/** Asks a model that answers so; returns what came of it, what the model was sent, and the pieces that were passed on. */
async function askOnce(
  more: Partial<Question>,
  answer: Partial<ModelAnswer>,
  { isStreamed = true, contextTokens = 10_000 } = {},
) {
  const sent: { readonly images: number[]; readonly asJson: boolean }[] = [];
  const pieces: string[] = [];
  const chat: Pick<ChatModel, "answer"> = {
    answer: async ({ messages, asJson }, { onText }) => {
      sent.push({ images: messages.map(({ images = [] }) => images.length), asJson });
      onText?.("piece");
      return {
        id: "1",
        text: "",
        model: "reported",
        finish: "completed",
        usage: NO_USAGE,
        problem: "",
        ...answer,
      };
    },
  };
  const answerers = {
    endpoint: { chat: chat as ChatModel, model: MODEL, watch: openModelHealth(() => undefined) }, // it is only asked
    ocr: { pagesMax: 0, readImage: () => Promise.reject(new Error("no image")) },
    contextTokensOf: () => contextTokens,
  };
  const options = {
    signal: new AbortController().signal,
    ...(isStreamed && { onText: (piece: string) => void pieces.push(piece) }),
  };
  const outcome = await ask(answerers, { ...question, ...more }, options).catch((error: unknown) => error);
  return { outcome, sent, pieces };
}

it("an answer in words is passed on piece by piece, and one in JSON at once when it is complete", async () => {
  const words = await askOnce({}, { text: "piece" });
  expect(words).toMatchObject({
    outcome: {
      text: "piece",
      model: "reported",
      requestedModel: MODEL,
      fallback: false,
      firstAttemptError: "",
    },
    pieces: ["piece"],
    sent: [{ asJson: false }],
  });
  const json = await askOnce({ asJson: true }, { text: '```json\n{"a":1}\n```' });
  expect(json).toMatchObject({ outcome: { text: '{"a":1}' }, pieces: ['{"a":1}'], sent: [{ asJson: true }] });
  expect((await askOnce({ asJson: true }, { text: "{}" }, { isStreamed: false })).outcome).toMatchObject({
    text: "{}",
  });
});

it.each([
  ["completed", "[1]", "it did not answer with one JSON object"],
  ["truncated", '{"a":', "its JSON exceeded its limit"],
  ["content_filter", "", "a filter removed the JSON object of its answer"],
  ["error", "{}", "its JSON broke off (no more)"],
] as const)("an answer without its JSON fails, and says why: %s", async (finish, text, why) => {
  const usage = { ...NO_USAGE, outputTokens: 7 };
  const { outcome, pieces } = await askOnce({ asJson: true }, { finish, text, usage, problem: "no more" });
  expect(outcome).toMatchObject({ code: "model_failed", message: expect.stringContaining(why), usage });
  expect(pieces).toEqual([]);
});

it("a question that does not fit into the window is refused with the size of the window", async () => {
  const { outcome, sent } = await askOnce({ text: "x".repeat(9000) }, {}, { contextTokens: 2048 });
  expect(outcome).toMatchObject({
    refusal: "text_too_large",
    field: "user",
    message: expect.stringContaining("window of 2048 tokens"),
  });
  expect(sent).toEqual([]);
});

it("each picture is shown with its turn, and those of the question with the question", async () => {
  const picture = (turnAt?: number) => ({
    turnAt,
    facts: { rendered: [{ mediaType: "image/png", bytes: new Uint8Array(1) }] },
  });
  const images = [
    picture(0),
    picture(1),
    picture(1),
    picture(),
    { facts: {} },
  ] as unknown as Question["images"]; // all that is read
  const turns = [1, 2].map((at) => ({ user: `Question ${at}`, answer: "Yes." }));
  const { sent } = await askOnce({ images, turns }, { text: "Hi" });
  expect(sent[0]?.images).toEqual([0, 1, 0, 2, 0, 1]);
});
