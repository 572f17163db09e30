import { expect, it } from "vitest";
import { ask, type Question } from "../../../src/kb/chat/attempts.ts";
import { type ChatModel, type ModelAnswer } from "../../../src/kb/models/chat-model.ts";
import { NO_USAGE } from "../../../src/kb/models/price.ts";
import { unusableAnswer } from "../../../src/kb/models/model-failure.ts";
import { openModelHealth } from "../../../src/kb/models/model-health.ts";

const MODEL = "seeing";
const question = {
  agent: { id: "default", knowledge: [], temperature: 0 },
  systemPrompt: "",
  text: "Hello?",
  images: [],
  passages: [],
  turns: [],
  asJson: false,
} as unknown as Question; // what else an agent has is not looked at here

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
  ["a whole answer clears the doubts before it", "completed", false],
  ["a stream that broke off does not clear the doubts before it", "error", true],
] as const)("%s", async (_name, finish, isFailing) => {
  expect(await failingAfter(["none", "none", finish, "none"])).toBe(isFailing);
});
