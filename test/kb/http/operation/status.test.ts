import { describe, expect, it } from "vitest";
import { KbsyncError } from "../../../../src/lib/failure.ts";
import { refusalAnswer, STATUS } from "../../../../src/kb/http/operation/status.ts";
import { Refusal, type RefusalCode } from "../../../../src/kb/resources/refusal.ts";

/** These set their own Retry-After: the endpoint of a model, and the rate of a key. */
const TELLS_ITSELF: ReadonlySet<string> = new Set<RefusalCode>(["model_busy", "rate_limited"]);

it("sends Retry-After with every retryable refusal", () => {
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
    files_unavailable: 5,
  });
});

it("converts other refusals of Fastify to the API's error format", () => {
  const failure = Object.assign(new Error("FST_ERR_X: opts.schema is not valid"), { statusCode: 406 });
  expect(refusalAnswer(failure)).toMatchObject({
    status: 400,
    body: {
      message: "The request is malformed.",
      error: { code: "invalid_request", hint: "GET /openapi.json describes the input of each operation." },
    },
  });
  for (const statusCode of [399, 500, "404"]) {
    expect(refusalAnswer(Object.assign(new Error("x"), { statusCode }))).toMatchObject({ status: 500 });
  }
  expect(refusalAnswer(Object.assign(new Error("x"), { statusCode: 400 }))).toMatchObject({ status: 400 });
  expect(refusalAnswer(Object.assign(new Error("x"), { statusCode: 499 }))).toMatchObject({ status: 400 });
});

const failure = (code: string, message = "the text is too long"): KbsyncError =>
  new KbsyncError(message, { code, hint: "send less", retryAfterSeconds: 7 });

describe("errors of other parts of the service", () => {
  it.each<[RefusalCode, number]>([
    ["invalid_body", 400],
    ["empty_file", 400],
    ["file_damaged", 500],
    ["files_unavailable", 503],
    ["unsupported_media_type", 415],
    ["text_too_large", 413],
    ["too_many_chunks", 422],
    ["store_full", 422],
    ["encrypted_pdf", 422],
    ["damaged_pdf", 422],
    ["pdf_without_text", 422],
    ["image_without_text", 422],
    ["image_too_large", 413],
    ["damaged_image", 422],
    ["page_without_text", 422],
    ["page_unreadable", 422],
    ["mail_unreadable", 422],
    ["too_many_pages", 422],
    ["extraction_memory", 422],
    ["extraction_timeout", 422],
    ["extraction_crashed", 422],
    ["extraction_failed", 503],
    ["extractor_busy", 429],
    ["queue_full", 429],
    ["too_many_endpoints", 409],
    ["precondition_failed", 412],
    ["model_failed", 502],
    ["model_busy", 503],
    ["model_timeout", 504],
  ])("keeps message, hint and Retry-After of an error that is meant for the caller: %s", (code, status) => {
    expect(refusalAnswer(failure(code))).toEqual({
      status,
      retryAfterSeconds: 7,
      body: {
        success: false,
        message: "The text is too long.",
        error: { code, hint: "Send less." },
      },
    });
  });

  it.each(["lease_lost", "store_failed", "embedding_unreachable", "internal", "ENOENT", ""])(
    "reveals no details of an error with another code: %s",
    (code) => {
      const { status, body } = refusalAnswer(failure(code, "/var/lib/kb.db is gone"));
      expect([status, body]).toEqual([
        500,
        {
          success: false,
          message: "The service failed on this request; its log has the cause.",
          error: { code: "internal" },
        },
      ]);
    },
  );

  it("sends no hint or Retry-After without one, and ends the message with a full stop", () => {
    const { body, retryAfterSeconds } = refusalAnswer(new KbsyncError("is it?", { code: "empty_file" }));
    expect([body.message, body.error, retryAfterSeconds]).toEqual([
      "Is it?",
      { code: "empty_file" },
      undefined,
    ]);
    for (const words of ["Done.", "Done!"]) {
      expect(refusalAnswer(failure("empty_file", words)).body.message).toBe(words);
    }
  });

  it("treats a foreign error with a known code as internal", () => {
    const error = Object.assign(new Error("x"), { code: "empty_file" });
    expect(refusalAnswer(error).body.error.code).toBe("internal");
  });

  it.each([
    ["ENOSPC", "disk_full", "The disk has no space left to store this."],
    ["EDQUOT", "disk_full", "The disk has no space left to store this."],
    ["SQLITE_FULL", "disk_full", "The disk has no space left to store this."],
    ["SQLITE_CORRUPT_VTAB", "store_damaged", "The store of the knowledge base is damaged."],
    ["index_damaged", "store_busy", "A part of the search index is damaged, and is being rebuilt."],
    ["store_damaged", "store_damaged", "The store of the knowledge base is damaged."],
    ["store_busy", "store_busy", "The store is busy, or does not answer."],
  ])("reports errors of the disk and the store without a path: %s", (code, answered, message) => {
    const answer = refusalAnswer(Object.assign(new Error("cannot write /var/lib/kb.db"), { code }));
    expect([answer.status, answer.body.error.code, answer.body.message]).toEqual([503, answered, message]);
  });
});

it.each<[string, RefusalCode, number, RegExp]>([
  ["FST_ERR_CTP_BODY_TOO_LARGE", "body_too_large", 413, /^The body is larger/],
  ["FST_PARTS_LIMIT", "body_too_large", 413, /^The form has more parts/],
  ["FST_FILES_LIMIT", "body_too_large", 413, /^The form has more parts/],
  ["FST_FIELDS_LIMIT", "body_too_large", 413, /^The form has more parts/],
  ["FST_ERR_CTP_INVALID_MEDIA_TYPE", "unsupported_media_type", 415, /^The content-type/],
  ["FST_ERR_CTP_INVALID_CONTENT_LENGTH", "invalid_body", 400, /^The length of the body differs/],
  ["FST_PROTO_VIOLATION", "invalid_body", 400, /^The form has a field with a forbidden name/],
  ["FST_INVALID_JSON_FIELD_ERROR", "invalid_body", 400, /^A field of the form declares/],
  ["FST_ERR_BAD_URL", "invalid_request", 400, /^The address of the request/],
  ["FST_ERR_MAX_PARAM_LENGTH", "invalid_request", 400, /^The address of the request/],
])("converts Fastify's refusal %s to the API's error format", (code, refusal, status, message) => {
  const answer = refusalAnswer(Object.assign(new Error("FST: schema"), { code, statusCode: 418 }));
  expect([answer.status, answer.body.error.code]).toEqual([status, refusal]);
  expect(answer.body.message).toMatch(message);
});

it("names the invalid field of a refusal", () => {
  const answer = refusalAnswer(new Refusal("invalid_field", "No.", { field: "a.b", hint: "Yes." }));
  expect(answer).toEqual({
    status: 400,
    retryAfterSeconds: undefined,
    body: { success: false, message: "No.", error: { code: "invalid_field", hint: "Yes.", field: "a.b" } },
  });
});
