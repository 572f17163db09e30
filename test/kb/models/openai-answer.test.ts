import { describe, expect, it } from "vitest";
import { EndpointRefusal } from "../../../src/kb/models/endpoint.ts";
import {
  finishOf,
  readChunk,
  readCompletion,
  textOf,
  usageOf,
} from "../../../src/kb/models/openai-answer.ts";
import { NO_USAGE } from "../../../src/kb/models/price.ts";

/** What a function throws. */
function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe("a completion", () => {
  it.each([
    [
      "with everything",
      { id: "1", model: "m", usage: {}, choices: [{ message: { content: "Hi" }, finish_reason: "stop" }] },
    ],
    [
      "with nulls",
      { id: null, model: null, usage: null, choices: [{ message: { content: null }, finish_reason: null }] },
    ],
    ["with what it must have", { choices: [{ message: {} }] }],
  ])("a completion is read %s", (_name, body) => {
    expect(readCompletion(JSON.stringify(body))).toEqual(body);
  });

  it.each<[string, string, RegExp]>([
    ["no JSON", "<html>", /^its endpoint answered with something other than JSON$/],
    ["no choice", '{"choices": []}', /^its endpoint answered without a choice$/],
    ["no choices", "{}", /does not have the form of a chat completion \(see choices\)$/],
    ["a number", "1", /does not have the form of a chat completion$/],
    ["a wrong message", '{"choices": [{"message": 1}]}', /\(see choices\.0\.message\)$/],
    ["an error in words", '{"error": "down"}', /^its endpoint answered with an error: down$/],
    ["an error with a code", '{"error": {"code": "oom"}}', /^its endpoint answered with an error: oom$/],
    ["an error without words", '{"error": {}}', /: no reason given$/],
    ["an empty error", '{"error": ""}', /: no reason given$/],
    ["an empty message", '{"error": {"code": "oom", "message": ""}}', /with an error: oom$/],
    ["an error with null", '{"error": {"code": null, "message": null}}', /: no reason given$/],
    ["a number that is no status", '{"error": {"code": 399, "message": "odd"}}', /with an error: odd$/],
    ["a number above all statuses", '{"error": {"code": 600, "message": "odd"}}', /with an error: odd$/],
  ])("a completion is refused: %s", (_name, body, message) => {
    const error = thrownBy(() => readCompletion(body));
    expect(error).toMatchObject({ message: expect.stringMatching(message) });
    expect(error).not.toBeInstanceOf(EndpointRefusal);
  });

  it.each([400, "429", 503, 599])("a completion that holds the status %s is refused with it", (code) => {
    const error = thrownBy(() => readCompletion(JSON.stringify({ error: { code, message: "busy" } })));
    expect(error).toBeInstanceOf(EndpointRefusal);
    expect(error).toMatchObject({ status: Number(code), message: "busy" });
  });
});

it("a chunk of a stream may have a choice, usage alone, or an error", () => {
  const chunk = { choices: [{ delta: { content: "a" }, finish_reason: null }] };
  expect(readChunk(chunk)).toEqual(chunk);
  expect(readChunk({ choices: [{}] })).toEqual({ choices: [{}] });
  expect(readChunk({ usage: { prompt_tokens: 3 } })).toEqual({ usage: { prompt_tokens: 3 } });
  expect(() => readChunk({ error: "gone" })).toThrow("its endpoint answered with an error: gone");
  expect(() => readChunk({ usage: { prompt_tokens: -1 } })).toThrow("see usage.prompt_tokens");
});

it.each([
  ["a string", { content: "a b" }, "a b"],
  [
    "parts, of which the text parts count",
    { content: [{ text: "a" }, {}, { text: null }, { text: "b" }] },
    "ab",
  ],
  ["a refusal", { refusal: "I cannot." }, "I cannot."],
  ["an empty text beside a refusal", { content: "", refusal: "No." }, ""],
  ["nothing", { content: null, refusal: null }, ""],
])("the text of a message is read from %s", (_name, message, text) => {
  expect(textOf(message)).toBe(text);
});

it("usage counts what the endpoint names, and 0 for the rest", () => {
  expect(usageOf(undefined)).toEqual(NO_USAGE);
  expect(usageOf(null)).toEqual(NO_USAGE);
  expect(usageOf({})).toEqual(NO_USAGE);
  const body = {
    prompt_tokens: 1,
    completion_tokens: 2,
    prompt_tokens_details: { cached_tokens: 3 },
    completion_tokens_details: { reasoning_tokens: 4 },
    cache_read_input_tokens: 5,
    cache_creation_input_tokens: 6,
  };
  const counted = {
    inputTokens: 1,
    outputTokens: 2,
    cacheReadTokens: 3,
    reasoningTokens: 4,
    cacheCreationTokens: 6,
  };
  expect(usageOf(body)).toEqual(counted);
  expect(usageOf({ ...body, prompt_tokens_details: null })).toEqual({ ...counted, cacheReadTokens: 5 });
});

it.each([
  [undefined, "error"],
  [null, "error"],
  ["", "error"],
  ["stop", "completed"],
  ["end_turn", "completed"],
  ["length", "truncated"],
  ["content_filter", "content_filter"],
])("a finish reason of %s means %s", (reason, finish) => {
  expect(finishOf(reason)).toBe(finish);
});
