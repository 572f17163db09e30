import { expect, it } from "vitest";
import { asCurl, asMcp } from "../../../src/console/search/copies.ts";
import { markWords, questionWords } from "../../../src/console/search/words.ts";

it.each([
  ["who may switch off the heater?", ["may", "switch", "off", "heater"]],
  ["Tide tide", ["tide"]],
  ["who is who", ["who", "is"]],
  ["", []],
])("takes from %j the words that mean something", (question, words) => {
  expect(questionWords(question)).toEqual(words);
});

it("marks words of the question also in another form, and joins to the text again", () => {
  const text = "Tides rise; the tidal wave (a tide) is no titan.";
  const pieces = markWords(text, "tide");
  expect(pieces.filter(({ isMatch }) => isMatch).map((piece) => piece.text)).toEqual(["Tides", "tide"]);
  expect(pieces.map((piece) => piece.text).join("")).toBe(text);
});

const REQUEST = { query: "it's late", collection_id: "c", owner_id: "o", top_k: 10 };

it("copies a search as a command that a shell takes, without a key", () => {
  expect(asCurl("http://127.0.0.1:7411", REQUEST)).toBe(
    [
      "curl 'http://127.0.0.1:7411/rag/query'",
      '-H "pauthkey: $KBSYNC_KEY"',
      "-H 'content-type: application/json'",
      `-d '{"query":"it'\\''s late","collection_id":"c","owner_id":"o","top_k":10}'`,
    ].join(" \\\n  "),
  );
});

it("copies a search as a call of the MCP tool", () => {
  expect(JSON.parse(asMcp({ ...REQUEST, score: 0.5 }))).toEqual({
    name: "search",
    arguments: { query: "it's late", source: "o", top_k: 10 },
  });
});
