import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openTextModel } from "../../../../src/kb/ingest/agentic/text-model.ts";
import type { TextModel } from "../../../../src/kb/ingest/agentic/text-model.ts";
import type { ChatModel } from "../../../../src/kb/models/chat-model.ts";
import { openOpenAiModel } from "../../../../src/kb/models/openai.ts";
import { codeOf } from "../../../../src/lib/failure.ts";
import { startLanguageModelServer } from "../../../fakes/language-model-server.ts";
import type { LanguageModelServer, Script } from "../../../fakes/language-model-server.ts";

const QUESTION = [
  { role: "system", text: "Divide." },
  { role: "user", text: "What?" },
] as const;
/** Nobody leaves. */
const STAYS = new AbortController().signal;

describe("a language model behind an OpenAI-compatible server", () => {
  let server: LanguageModelServer;
  let chat: ChatModel;
  let model: TextModel;
  beforeEach(async () => {
    server = await startLanguageModelServer();
    const { baseUrl, apiKey } = server;
    // Documents have a timeout of their own.
    chat = openOpenAiModel({ baseUrl, apiKey: () => apiKey, timeoutMs: 1 });
    model = openTextModel(chat, "divider-1");
  });
  afterEach(async () => {
    await chat.close();
    await server.close();
  });

  it("the text model asks and returns the answer", async () => {
    server.next({ says: "Here." });
    expect(await model.complete(QUESTION, STAYS)).toBe("Here.");
    expect(server.asked).toEqual([
      {
        model: "divider-1",
        messages: [
          { role: "system", content: "Divide." },
          { role: "user", content: "What?" },
        ],
      },
    ]);
  });

  it("the text model retries a busy service", async () => {
    server.next({ status: 429, retryAfter: "0" }, { status: 503 }, { says: "now" });
    expect(await model.complete(QUESTION, STAYS)).toBe("now");
  });

  it.each<[name: string, scripts: readonly Script[], code: string, requests: number]>([
    [
      "gives up on a busy service",
      [{ status: 503 }, { status: 503 }, { status: 503 }],
      "language_model_unreachable",
      3,
    ],
    [
      "does not wait long for a service that asks to",
      [{ status: 429, retryAfter: "3600" }],
      "language_model_unreachable",
      1,
    ],
    [
      "does not insist on what is refused",
      [{ status: 404, error: "no such model" }],
      "language_model_refused",
      1,
    ],
    ["takes no answer that was cut off", [{ says: "a", finish: "length" }], "language_model_answer", 1],
    ["takes no filtered answer", [{ says: "a", finish: "content_filter" }], "language_model_answer", 1],
    ["takes no page in place of an answer", [{ body: "<html>" }], "language_model_answer", 1],
    ["takes no other JSON", [{ body: "{}" }], "language_model_answer", 1],
  ])("%s", async (_name, scripts, code, requests) => {
    server.next(...scripts);
    await expect(model.complete(QUESTION, STAYS)).rejects.toMatchObject({ code });
    expect(server.asked).toHaveLength(requests);
  });

  it("the text model retries a hanging service, and then fails", async () => {
    const hasty = openTextModel(chat, "divider-1", { attemptMs: 300, totalMs: 2_000 });
    server.next({ hangs: true }, { hangs: true }, { hangs: true });
    await expect(hasty.complete(QUESTION, STAYS)).rejects.toMatchObject({
      code: "language_model_unreachable",
    });
    expect(server.asked.length).toBeGreaterThan(1);
  });

  it("the text model redacts a key that a refusal echoes, also in causes", async () => {
    server.next({ status: 401, error: `Incorrect API key provided: ${server.apiKey}` });
    const failure: unknown = await model.complete(QUESTION, STAYS).catch((error: unknown) => error);
    const words: string[] = [];
    for (let error = failure; error instanceof Error; error = error.cause) words.push(String(error.stack));
    expect(codeOf(failure)).toBe("language_model_refused");
    expect(words.join()).toContain("Incorrect API key provided: (the key)");
    expect(words.join()).not.toContain(server.apiKey);
  });

  it("the text model follows no redirects", async () => {
    server.next({ status: 307, location: `${server.baseUrl}/chat/completions` });
    await expect(model.complete(QUESTION, STAYS)).rejects.toMatchObject({ code: "language_model_refused" });
    expect(server.asked).toHaveLength(1);
  });

  it("the text model limits the size of a response", async () => {
    server.next({ body: `{"choices": "${"a".repeat(9 * 1024 * 1024)}"}` });
    await expect(model.complete(QUESTION, STAYS)).rejects.toMatchObject({
      code: "language_model_answer",
      message: expect.stringContaining("more than any model writes"),
    });
    expect(server.asked).toHaveLength(1);
  });

  it("the text model aborts a request by its signal", async () => {
    server.next({ hangs: true });
    const stop = new AbortController();
    const answer = model.complete(QUESTION, stop.signal);
    stop.abort(new Error("closing"));
    await expect(answer).rejects.toThrow("closing");
  });
});
