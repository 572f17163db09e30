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
