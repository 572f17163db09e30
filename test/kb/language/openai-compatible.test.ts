import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openLanguageModel } from "../../../src/kb/language/openai-compatible.ts";
import type { LanguageModelOptions } from "../../../src/kb/language/openai-compatible.ts";
import type { LanguageModel } from "../../../src/kb/language/language-model.ts";
import { startLanguageModelServer } from "../../fakes/language-model-server.ts";
import type { LanguageModelServer, Script } from "../../fakes/language-model-server.ts";

const QUESTION = { system: "Divide.", turns: [{ role: "user", text: "What?" }] } as const;

describe("a language model behind an OpenAI-compatible server", () => {
  let server: LanguageModelServer;
  let model: LanguageModel;
  beforeEach(async () => {
    server = await startLanguageModelServer();
    model = open();
  });
  const open = (change: Partial<LanguageModelOptions> = {}): LanguageModel => {
    const { baseUrl, apiKey } = server;
    return openLanguageModel({ baseUrl, model: "divider-1", apiKey, delayMs: 1, ...change });
  };
  afterEach(async () => {
    await model.close();
    await server.close();
  });

  it("asks for the same answer each time, and gives it", async () => {
    server.next({ says: "Here." });
    expect(await model.complete(QUESTION)).toBe("Here.");
    expect(server.asked).toEqual([
      {
        model: "divider-1",
        messages: [
          { role: "system", content: "Divide." },
          { role: "user", content: "What?" },
        ],
        temperature: 0,
        seed: 1,
      },
    ]);
  });

  it("leaves out what the model does not take, from then on", async () => {
    server.next(
      { status: 400, error: "Unsupported value: 'temperature' does not support 0 with this model." },
      { status: 400, error: "Unknown parameter: 'seed'." },
      { says: "a" },
      { says: "b" },
    );
    expect(await model.complete(QUESTION)).toBe("a");
    expect(await model.complete(QUESTION)).toBe("b");
    expect(server.asked.map(({ temperature, seed }) => [temperature, seed])).toEqual([
      [0, 1],
      [undefined, 1],
      [undefined, undefined],
      [undefined, undefined],
    ]);
  });

  it("tries again where the service is busy", async () => {
    server.next({ status: 429, retryAfter: "0" }, { status: 503 }, { says: "now" });
    expect(await model.complete(QUESTION)).toBe("now");
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
    await expect(model.complete(QUESTION)).rejects.toMatchObject({ code });
    expect(server.asked).toHaveLength(requests);
  });

  it("gives up on one that hangs", async () => {
    const impatient = open({ timeoutMs: 50, attempts: 2 });
    server.next({ hangs: true }, { hangs: true });
    await expect(impatient.complete(QUESTION)).rejects.toMatchObject({ code: "language_model_unreachable" });
    await impatient.close();
  });

  it("ends a question whose signal fires", async () => {
    server.next({ hangs: true });
    const stop = new AbortController();
    const answer = model.complete(QUESTION, stop.signal);
    stop.abort(new Error("closing"));
    await expect(answer).rejects.toThrow("closing");
  });
});
