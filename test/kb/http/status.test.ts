import { expect, it } from "vitest";
import { refusalAnswer, STATUS } from "../../../src/kb/http/status.ts";
import { Refusal, type RefusalCode } from "../../../src/kb/resources/refusal.ts";

/** These tell how long to wait by themselves: the endpoint of a model, and the rate of a key. */
const TELLS_ITSELF: ReadonlySet<string> = new Set<RefusalCode>(["model_busy", "rate_limited"]);

it("every answer that asks to come later says when", () => {
  const codes = Object.keys(STATUS) as RefusalCode[]; // its keys, as it is declared
  const later = codes.filter((code) => STATUS[code] === 429 || STATUS[code] === 503);
  const waits = later
    .filter((code) => !TELLS_ITSELF.has(code))
    .map((code) => [code, refusalAnswer(new Refusal(code, "Later.")).retryAfterSeconds]);
  expect(Object.fromEntries(waits)).toEqual({
    ingest_busy: 2,
    queue_full: 10,
    extractor_busy: 5,
    starting: 1,
    draining: 5,
    overloaded: 1,
    extraction_failed: 10,
    store_busy: 1,
    store_damaged: 60,
    disk_full: 60,
  });
});

it("what else the framework refuses is told in our words", () => {
  const failure = Object.assign(new Error("FST_ERR_X: opts.schema is not valid"), { statusCode: 406 });
  expect(refusalAnswer(failure)).toMatchObject({
    status: 400,
    body: {
      message: "The request is malformed.",
      error: { code: "invalid_request", hint: "GET /openapi.json says what each operation takes." },
    },
  });
  for (const statusCode of [399, 500, "404"]) {
    expect(refusalAnswer(Object.assign(new Error("x"), { statusCode }))).toMatchObject({ status: 500 });
  }
  expect(refusalAnswer(Object.assign(new Error("x"), { statusCode: 400 }))).toMatchObject({ status: 400 });
  expect(refusalAnswer(Object.assign(new Error("x"), { statusCode: 499 }))).toMatchObject({ status: 400 });
});
