import { describe, expect, it } from "vitest";
import { readAnswer } from "../../../../src/kb/ingest/agentic/boundaries.ts";

describe("a model's answer about the pieces 3 to 12", () => {
  it.each<[name: string, answer: string, splitAfter: readonly number[]]>([
    ["some boundaries", '{"split_after": [3, 7]}', [3, 7]],
    ["none", '{"split_after": []}', []],
    ["words around it", 'Sure!\n```json\n{"split_after": [11]}\n```', [11]],
  ])("a model's answer about the pieces 3 to 12 is read: %s", (_name, answer, splitAfter) => {
    expect(readAnswer(answer, 3, 12)).toEqual({ splitAfter });
  });

  it.each<[name: string, answer: string, flaw: RegExp]>([
    ["a refusal", "I cannot help with that.", /no JSON/],
    ["a broken object", '{"split_after": [3, 7', /no JSON/],
    ["other fields", '{"cuts": [3]}', /split_after/],
    ["words for numbers", '{"split_after": ["three"]}', /split_after/],
    ["half numbers", '{"split_after": [3.5]}', /split_after/],
    ["a number before the first", '{"split_after": [2, 5]}', /from 3 to 11/],
    ["the last piece", '{"split_after": [12]}', /from 3 to 11/],
    ["a number twice", '{"split_after": [4, 4]}', /ascending/],
    ["falling numbers", '{"split_after": [7, 4]}', /ascending/],
    ["every number", `{"split_after": [${[3, 4, 5, 6, 7, 8, 9, 10, 11].join()}]}`, /every piece/],
  ])("a model's answer about the pieces 3 to 12 is not taken: %s", (_name, answer, flaw) => {
    expect(readAnswer(answer, 3, 12)).toEqual({ flaw: expect.stringMatching(flaw) });
  });
});
