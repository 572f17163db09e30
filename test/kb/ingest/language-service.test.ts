import { beforeEach, describe, expect, it } from "vitest";
import { openLanguageService, type LanguageService } from "../../../src/kb/ingest/language-service.ts";
import { openModelHealth } from "../../../src/kb/models/model-health.ts";
import { KbsyncError } from "../../../src/lib/failure.ts";

const MODEL = { name: "divider-1", complete: async (): Promise<string> => "" };
const failing = (code: string) => async (): Promise<never> => {
  throw new KbsyncError("it went wrong", { code });
};
const works = async (): Promise<string> => "done";

describe("the language model for documents", () => {
  let nowMs: number;
  let problems: (string | undefined)[];
  let language: LanguageService;
  beforeEach(() => {
    nowMs = 1000;
    problems = [];
    language = openLanguageService(
      MODEL,
      () => nowMs,
      openModelHealth((_model, problem) => problems.push(problem?.code)),
    );
  });

  it.each(["language_model_unreachable", "language_model_refused"])(
    "rests for half a minute after %s, and fails until it works again",
    async (code) => {
      await expect(language.run(failing(code))).rejects.toMatchObject({ code });
      nowMs += 29_999;
      await expect(language.run(works)).rejects.toMatchObject({
        code: "language_model_resting",
        subject: "divider-1",
        retryable: true,
      });
      expect([language.state().state, problems]).toEqual(["failing", [code]]);
      nowMs += 1;
      expect(await language.run(works)).toBe("done");
      expect([language.state().state, problems]).toEqual(["ready", [code, undefined]]);
    },
  );

  it("the language model for documents does not rest after an unusable answer, which concerns one document", async () => {
    await expect(language.run(failing("language_model_answer"))).rejects.toMatchObject({
      code: "language_model_answer",
    });
    expect(await language.run(works)).toBe("done");
    expect([language.state().state, problems]).toEqual(["ready", []]);
  });
});
