import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { readChatAnswer } from "../../../src/cli/commands/chat-events.ts";
import { endText } from "../../../src/cli/commands/question.ts";
import type { ChatResponse } from "../../../src/wire/chat.ts";

const CITATION = {
  type: "citation" as const,
  number: 1,
  resource_id: "r1",
  title: "Harbour",
  chunk_id: "c",
  score: 0.613,
  span: { start: 0, end: 9, text: "Forty\ntons" },
  lines: { first: 7, last: 8 },
};

function response(change: Partial<ChatResponse["data"]> = {}): ChatResponse {
  const data = {
    id: "i",
    content: "Forty. [1]",
    model: "m",
    role: "assistant" as const,
    finish_reason: "completed" as const,
    tools_data: {},
    images: [],
    annotations: [],
    fallback: false,
    firstAttemptError: "",
    message_id: "i",
    ...change,
  };
  const usage = {
    total_tokens: 0,
    input_tokens: 0,
    output_tokens: 0,
    cached_tokens: 0,
    cache_read_input_tokens: 0,
    cache_creation_input_tokens: 0,
    reasoning_tokens: 0,
    cost: 0,
  };
  return { data, usage };
}

describe("below an answer stand", () => {
  const fileOf = (id: string) => (id === "r1" ? { source: "/docs", path: "harbour.md" } : undefined);
  it.each<[string, ChatResponse, string]>([
    ["nothing but a line's end", response(), "\n"],
    [
      "its sources by file",
      response({ annotations: [CITATION] }),
      "\n\nSources\n  [1] 0.61  harbour.md:7  “Forty tons”\n",
    ],
    [
      "its sources by title, where the file is not ours",
      response({ annotations: [{ ...CITATION, resource_id: "r2" }] }),
      "\n\nSources\n  [1] 0.61  Harbour  “Forty tons”\n",
    ],
    [
      "what a person should know",
      response({
        annotations: [{ type: "missing_variable", name: "place" }],
        fallback: true,
        firstAttemptError: "the model a failed",
      }),
      "\n\nNotes\n  the variable place has no value\n  answered by m, after: the model a failed\n",
    ],
  ])("prints below an answer %s", (_name, answer, words) => {
    expect(endText(answer, { fileOf })).toBe(words);
  });
});

describe("an answer is read", () => {
  const read = async (type: string, text: string) => {
    const shown: string[] = [];
    // As undici gives it; cut at odd places, as sockets do.
    const pieces = Readable.from(
      Buffer.from(text)
        .toString("latin1")
        .match(/[\s\S]{1,7}/g)
        ?.map((each) => Buffer.from(each, "latin1")) ?? [],
    );
    const answer = await readChatAnswer(
      { headers: { "content-type": type }, body: pieces as never },
      (piece) => shown.push(piece),
    );
    return { shown, answer };
  };
  const whole = JSON.stringify({ success: true, response: response() });
  const event = (name: string, data: string) => `event: ${name}\ndata: ${data}\n\n`;

  it("an answer is read in pieces, with comments between them", async () => {
    const text = `${event("delta", '{"content":"Für"}')}: still at it\n\n${event("delta", '{"content":"ty."}')}${event("completed", whole)}`;
    const { shown, answer } = await read("text/event-stream; charset=utf-8", text);
    expect(shown).toEqual(["Für", "ty."]);
    expect(answer.data.content).toBe("Forty. [1]");
  });

  it("an answer is read as a whole from a service that knows no streams", async () => {
    expect((await read("application/json", whole)).shown).toEqual(["Forty. [1]"]);
  });

  it("an answer that is no JSON fails in words", async () => {
    await expect(read("text/html", "<html>")).rejects.toThrow(/in an unknown form/);
  });

  it.each([
    [
      "an error",
      event("error", '{"success":false,"message":"It broke.","error":{"code":"internal"}}'),
      /It broke\./,
    ],
    ["a stream that ends early", event("delta", '{"content":"a"}'), /broke off/],
    ["another thing", event("completed", '{"a":1}'), /in an unknown form/],
  ])("%s is a failure in words", async (_name, text, words) => {
    await expect(read("text/event-stream", text)).rejects.toThrow(words);
  });
});
