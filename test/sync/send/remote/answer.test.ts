import { describe, expect, it } from "vitest";
import { z } from "zod";
import { header, type RawAnswer, readAnswer, type Reply } from "../../../../src/sync/send/remote/answer.ts";

const Schema = z.object({ data: z.object({ _id: z.string() }) });
const WORDS = '{"success":false,"message":"its words","error":{"code":"its_code"}}';
const answer = (status: number, text: string, headers: RawAnswer["headers"] = {}): RawAnswer => ({
  status,
  headers,
  text,
  atMs: 0,
});
const read = (raw: RawAnswer, subject: "resource" | "address" = "address"): Reply<unknown> =>
  readAnswer(raw, Schema, subject);
const later = (acted: string, blame: string, reason: unknown = expect.any(String)) => ({
  kind: "later",
  acted,
  blame,
  reason,
});

describe("an answer means", () => {
  it.each<[status: number, text: string, expected: Record<string, unknown>]>([
    [200, '{"success":true,"data":{"_id":"a"}}', { kind: "done", value: { data: { _id: "a" } } }],
    [299, '{"success":true,"data":{"_id":"a"}}', { kind: "done" }],
    [300, '{"success":true,"data":{"_id":"a"}}', later("no", "service")],
    [199, '{"success":true,"data":{"_id":"a"}}', later("maybe", "request")],
    [200, WORDS, { kind: "refused", code: "its_code", message: "its words" }],
    [299, '{"success":false}', { kind: "refused", code: "http_299", message: 'HTTP 299: {"success":false}' }],
    [200, '{"success":true}', later("maybe", "request")],
    [200, "null", later("maybe", "request")],
    [200, "7", later("maybe", "request")],
    [302, "", later("no", "service", expect.stringContaining("sent on to nowhere"))],
    [399, "", later("no", "service", expect.stringContaining("sent on"))],
    [400, WORDS, { kind: "refused", code: "its_code", message: "its words" }],
    [400, "<html>", { kind: "refused", code: "http_400", message: "HTTP 400" }],
    [401, WORDS, later("no", "key", "its words")],
    [403, WORDS, later("no", "key", "its words")],
    [404, WORDS, later("no", "service", "its words; is the address right?")],
    [405, WORDS, later("no", "service", "its words; is the address right?")],
    [408, WORDS, later("maybe", "request", "its words")],
    [409, WORDS, { kind: "refused" }],
    [410, WORDS, later("no", "service")],
    [425, WORDS, later("maybe", "request", "its words")],
    [429, WORDS, later("no", "service", "its words")],
    [499, WORDS, { kind: "refused" }],
    [500, WORDS, later("maybe", "request", "its words")],
    [501, WORDS, { kind: "refused" }],
    [502, "<html>", later("maybe", "request", "HTTP 502")],
    [503, WORDS, later("no", "service", "its words")],
    [503, "<html>", later("maybe", "service", "HTTP 503")],
  ])("interprets an answer of status %i with %s", (status, text, expected) => {
    expect(read(answer(status, text))).toMatchObject(expected);
  });

  it.each<[status: number, text: string, kind: string]>([
    [404, WORDS, "gone"],
    [410, WORDS, "gone"],
    [404, '{"success":true}', "later"],
    [404, '{"message":"no Route matched"}', "later"],
    [404, "<html>", "later"],
    [400, WORDS, "refused"],
  ])("interprets an answer about a resource with status %i and %s as %s", (status, text, kind) => {
    expect(read(answer(status, text), "resource").kind).toBe(kind);
  });

  it("reads the delay of any answer that has a Retry-After", () => {
    for (const status of [401, 404, 408, 429, 500, 503])
      expect(read(answer(status, WORDS, { "retry-after": "7" }))).toMatchObject({ retryAfterMs: 7000 });
    expect(read(answer(429, WORDS))).toMatchObject({ retryAfterMs: undefined });
  });

  it("reports that a person has to repair the store only for that code", () => {
    const text = (code: string): string =>
      JSON.stringify({ success: false, message: "m", error: { code, hint: "h" } });
    expect(read(answer(503, text("store_damaged")))).toMatchObject({ hint: "h" });
    expect(read(answer(503, text("busy")))).not.toHaveProperty("hint");
    expect(read(answer(500, text("store_damaged")))).not.toHaveProperty("hint");
  });
});

describe("what is repeated to a person", () => {
  it("quotes no JSON that may hold a document's text", () => {
    for (const text of [
      '{"success":true,"data":{"content":"secret',
      '[{"content":"secret"}]',
      ' {"a":"secret"}',
    ])
      expect(JSON.stringify(read(answer(200, text)))).not.toContain("secret");
    expect(read(answer(200, '{"a":1}'))).toMatchObject({
      reason: expect.stringContaining("7 characters of JSON") as string,
    });
  });

  it("quotes a page on one line, up to a limit", () => {
    const reasonOf = (text: string): string => {
      const reply = read(answer(200, text));
      return reply.kind === "later" ? reply.reason.slice(reply.reason.indexOf(": ") + 2) : "";
    };
    expect(reasonOf(" <html>\n\t page ")).toBe("<html> page");
    expect(reasonOf("x".repeat(500))).toBe("x".repeat(500));
    expect(reasonOf(`a${"x".repeat(500)}`)).toBe(`a${"x".repeat(499)}…`);
  });
});

describe("an earlier request with the same key", () => {
  const conflict = answer(409, WORDS, { "retry-after": "1" });

  it("takes a conflict with a Retry-After for an earlier request in flight", () => {
    const expected = { ...later("maybe", "request"), retryAfterMs: 1000, isInFlight: true };
    expect(read(conflict)).toMatchObject(expected);
  });

  it("takes no other answer for an earlier request in flight", () => {
    for (const raw of [answer(409, WORDS), answer(500, WORDS, { "retry-after": "1" })])
      expect(read(raw)).not.toHaveProperty("isInFlight");
  });
});

it("reads the first of several equal headers", () => {
  const raw = answer(200, "", { one: "a", several: ["b", "c"] });
  expect(["one", "several", "none"].map((name) => header(raw, name))).toEqual(["a", "b", undefined]);
});
