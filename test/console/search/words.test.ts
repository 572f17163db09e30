import { expect, it } from "vitest";
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
