import { describe, expect, it } from "vitest";
import { z } from "zod";
import { oneOf, readBody, readInput } from "../../../../src/kb/http/body/validate.ts";
import { Refusal } from "../../../../src/kb/resources/refusal.ts";

const OwnerBody = z.strictObject({ owner_id: z.string() });
const Body = z.object({
  text: z.string().min(1).max(80).optional(),
  words: z.string().min(2).optional(),
  count: z.int().min(1).max(9).optional(),
  share: z.number().gt(0).lt(1).optional(),
  kind: z.enum(["a", "b", "c"]).optional(),
  isOn: z.boolean().optional(),
  list: z
    .array(z.object({ url: z.string() }))
    .min(1)
    .optional(),
  custom: z
    .string()
    .refine((text) => text === "x", { message: "expected x" })
    .optional(),
  strict: z.strictObject({ url: z.string() }).optional(),
});

const refusalOf = (run: () => unknown): Refusal => {
  try {
    run();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error("it was accepted");
};

describe("readInput", () => {
  it.each([
    [{ text: "" }, "text", 'text: expected a text that is not empty, got ""'],
    [{ text: "x".repeat(81) }, "text", "text: expected at most 80 characters, got 81 characters"],
    [{ words: "x" }, "words", 'words: expected at least 2 characters, got "x"'],
    [{ words: 7 }, "words", "words: expected a string, got 7"],
    [{ count: 0 }, "count", "count: expected at least 1, got 0"],
    [{ count: 10 }, "count", "count: expected at most 9, got 10"],
    [{ count: 1.5 }, "count", "count: expected an integer, got 1.5"],
    [{ share: 0 }, "share", "share: expected more than 0, got 0"],
    [{ share: 1 }, "share", "share: expected less than 1, got 1"],
    [{ share: "x" }, "share", 'share: expected a number, got "x"'],
    [{ kind: "d" }, "kind", 'kind: expected "a", "b" or "c", got "d"'],
    [{ isOn: null }, "isOn", "isOn: expected true or false, got null"],
    [{ list: {} }, "list", "list: expected an array, got an object"],
    [{ list: [] }, "list", "list: expected at least 1, got an empty array"],
    [{ list: [{ url: "x" }, 5] }, "list[1]", "list[1]: expected an object, got 5"],
    [{ list: [{ url: ["x"] }] }, "list[0].url", "list[0].url: expected a string, got an array"],
    [{ list: [{}] }, "list[0].url", "list[0].url: expected a string, got nothing"],
    [{ custom: "y" }, "custom", 'custom: expected x, got "y"'],
    [{ strict: { url: "x", uri: 5 } }, "strict.uri", "strict.uri: expected no field of this name, got 5"],
  ])("names the field, what it expects, and what it got: %j", (input, field, message) => {
    const refusal = refusalOf(() => readInput(Body, input));
    expect(refusal).toMatchObject({ refusal: "invalid_field", field, message });
  });

  it("names an unknown field of a body that takes none", () => {
    const refusal = refusalOf(() => readBody(OwnerBody, { owner_id: "ann", owner: "ben" }));
    expect(refusal).toMatchObject({
      field: "owner",
      message: 'owner: expected no field of this name, got "ben"',
    });
  });

  it("shortens the name of a field that is longer than any of the service", () => {
    const body = { owner_id: "ann", ["x".repeat(100_000)]: "y" };
    const { field, message } = refusalOf(() => readBody(OwnerBody, body));
    expect(field).toBe(`${"x".repeat(260)}…`);
    expect(message.length).toBeLessThan(400);
  });

  it("shows a text of 60 characters, and only counts a longer one", () => {
    const got = (chars: number) => refusalOf(() => readInput(Body, { kind: "x".repeat(chars) })).message;
    expect(got(60)).toContain(`got "${"x".repeat(60)}"`);
    expect(got(61)).toMatch(/got 61 characters$/);
  });

  it("shows no value of the prototype of a body", () => {
    const schema = z.object({ constructor: z.string() });
    expect(refusalOf(() => readInput(schema, {})).message).toMatch(/got nothing$/);
  });
});

it.each([
  [undefined, "nothing"],
  [null, "null"],
  [[], "an array"],
  ["text", '"text"'],
  [7, "7"],
])("readBody refuses %j, which is no object", (body, got) => {
  const refusal = refusalOf(() => readBody(Body, body));
  expect(refusal).toMatchObject({
    refusal: "invalid_body",
    message: `The body: expected a JSON object, got ${got}.`,
  });
});

it.each([
  [[], "nothing"],
  [["a"], "a"],
  [["a", "b"], "a or b"],
  [["a", "b", "c"], "a, b or c"],
])("oneOf joins %j", (words, joined) => {
  expect(oneOf(words)).toBe(joined);
});
