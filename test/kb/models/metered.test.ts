import { beforeEach, describe, expect, it } from "vitest";
import type { Budget } from "../../../src/kb/models/budget.ts";
import type { ChatModel, ModelAnswer, ModelRequest } from "../../../src/kb/models/chat-model.ts";
import { meteredModel } from "../../../src/kb/models/metered.ts";
import { ModelFailure } from "../../../src/kb/models/model-failure.ts";
import { NO_USAGE } from "../../../src/kb/models/price.ts";

/** Prices that keep tokens in and out apart: 1 for an input token, 1000 for one of output. */
const PRICES = { inputPrice: 1_000_000, outputPrice: 1_000_000_000 };
const OUTPUT_MAX = 8192 * 1000;

/** What was reserved, and what it was settled at. */
let calls: (string | number)[];
let outcome: () => ModelAnswer;
let asked: number;
let closed: number;
beforeEach(() => {
  calls = [];
  [asked, closed] = [0, 0];
  outcome = () => answer({});
});

const answer = (change: Partial<ModelAnswer>): ModelAnswer => ({
  id: "1",
  text: "",
  model: "m",
  finish: "completed",
  problem: "",
  usage: NO_USAGE,
  ...change,
});
const request = (change: Partial<ModelRequest> = {}): ModelRequest => ({
  model: "priced",
  messages: [{ role: "user", text: "12345678" }],
  temperature: undefined,
  asJson: false,
  ...change,
});

const chat: ChatModel = {
  answer: async () => {
    asked += 1;
    return outcome();
  },
  close: async () => {
    closed += 1;
  },
};
const budget: Pick<Budget, "reserve"> = {
  reserve: async (spender, most) => {
    calls.push(spender, most);
    return async (cost) => void calls.push("settled", cost);
  },
};
const model = meteredModel(chat, budget as Budget, (name) =>
  name === "priced" ? PRICES : name === "short" ? { ...PRICES, contextTokens: 5 } : undefined,
);
const ask = (change: Partial<ModelRequest> = {}) =>
  model.answer(request(change), { signal: new AbortController().signal });

describe("the reservation of a call", () => {
  it("the reservation of a call is what the longest answer to as many tokens as bytes may cost", async () => {
    await ask({
      messages: [
        { role: "system", text: "é" },
        { role: "user", text: "123" },
      ],
    });
    expect(calls.slice(0, 2)).toEqual(["chat", 5 + OUTPUT_MAX]);
  });

  it("the reservation of a call counts 6000 tokens for an image, and no more than the model's window", async () => {
    const image = { mediaType: "image/png", bytes: new Uint8Array(1) } as const;
    const messages = [{ role: "user", text: "12", images: [image, image] }] as const;
    await ask({ messages });
    await ask({ messages, model: "short" });
    expect(calls.filter((each) => typeof each === "number" && each >= OUTPUT_MAX)).toEqual([
      12_002 + OUTPUT_MAX,
      5 + OUTPUT_MAX,
    ]);
  });

  it("the reservation of a call is not made for a model without a price", async () => {
    await ask({ model: "free" });
    expect([calls, asked]).toEqual([[], 1]);
  });

  it("the reservation of a call is refused before the model is called", async () => {
    const spent = new Error("spent");
    const refusing = meteredModel(
      chat,
      { ...budget, reserve: () => Promise.reject(spent) } as unknown as Budget,
      () => PRICES,
    );
    await expect(refusing.answer(request(), { signal: new AbortController().signal })).rejects.toBe(spent);
    expect(asked).toBe(0);
  });
});

describe("a call is settled", () => {
  it.each([
    [
      "at the usage that the endpoint reports",
      { usage: { ...NO_USAGE, inputTokens: 3, outputTokens: 2 } },
      2003,
    ],
    ["at reported output alone", { usage: { ...NO_USAGE, outputTokens: 1 } }, 1000],
    ["at a token for four characters if nothing is reported", { text: "12345" }, 2 + 2000],
  ])("charges an answer %s", async (_name, change, cost) => {
    outcome = () => answer(change);
    expect(await ask()).toEqual(answer(change));
    expect(calls.slice(2)).toEqual(["settled", cost]);
  });

  const failure = (facts: Partial<ConstructorParameters<typeof ModelFailure>[1]>): ModelFailure =>
    new ModelFailure("no", { code: "model_failed", subject: "m", kind: "unreachable", ...facts });
  it.each<[string, Error, number]>([
    ["at nothing if the endpoint refused it", failure({ kind: "refused" }), 0],
    ["at its reservation if the endpoint did not answer", failure({}), 8 + OUTPUT_MAX],
    ["at its reservation if an answer is of no use", failure({ kind: "unusable" }), 8 + OUTPUT_MAX],
    [
      "at the usage of an answer of no use, if that is known",
      failure({ kind: "unusable", usage: { ...NO_USAGE, inputTokens: 7 } }),
      7,
    ],
    ["at its reservation if it was aborted", new Error("aborted"), 8 + OUTPUT_MAX],
  ])("charges a failed call %s", async (_name, error, cost) => {
    outcome = () => {
      throw error;
    };
    await expect(ask()).rejects.toBe(error);
    expect(calls.slice(2)).toEqual(["settled", cost]);
  });
});

it("closes the model", async () => {
  await model.close();
  expect(closed).toBe(1);
});
