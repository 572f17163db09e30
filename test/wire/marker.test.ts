import { describe, expect, it } from "vitest";
import { splitMarker, withMarker } from "../../src/wire/marker.ts";

const MARKER = "[kb:docs7q2x.7f3k2mqx4ab5.h2k4m7p6qa2c.x7f2k5wd]";
const OTHER = "[kb:aaaaaaaa.bbbbbbbbbbbb.cccccccccccc.dddddddd]";

describe("a description is split into text and marker", () => {
  it.each([
    ["a marker after a text", `Installing, docs/a.md ${MARKER}`, "Installing, docs/a.md", MARKER],
    ["a marker alone", MARKER, "", MARKER],
    ["a marker between blanks", `a \n ${MARKER} \n`, "a", MARKER],
    ["a marker in capitals", `a ${MARKER.toUpperCase()}`, "a", MARKER.toUpperCase()],
    ["two markers: the last one counts", `a ${OTHER}${MARKER}`, "a", MARKER],
    ["a marker in the middle", `a ${MARKER} b`, `a ${MARKER} b`, ""],
    ["an earlier marker in the middle", `a ${OTHER} b ${MARKER}`, `a ${OTHER} b`, MARKER],
    ["the beginning of a marker", `see [kb:docs7q2x.7f3k`, `see [kb:docs7q2x.7f3k`, ""],
    ["another tag", "see [kb:article] ", "see [kb:article] ", ""],
    ["a digit that base32 lacks", MARKER.replace("7", "1"), MARKER.replace("7", "1"), ""],
    ["no marker: blanks stay", " a ", " a ", ""],
    ["nothing", "", "", ""],
  ])("%s", (_what, description, text, marker) => {
    expect(splitMarker(description)).toEqual({ text, marker });
  });

  it.each([
    ["blanks", " ".repeat(1_000_000)],
    ["beginnings of markers", "[kb:".repeat(250_000)],
    ["markers that are not at the end", `${`${MARKER} `.repeat(20_000)}x`],
  ])("a megabyte of %s is left as it is", (_what, description) => {
    expect(splitMarker(`a${description}b`)).toEqual({ text: `a${description}b`, marker: "" });
  });

  it("thousands of markers are removed", () => {
    expect(splitMarker(`a ${`${OTHER} `.repeat(20_000)}`)).toEqual({ text: "a", marker: OTHER });
  });
});

it.each([
  ["a new", MARKER, `a new ${MARKER}`],
  ["", MARKER, MARKER],
  ["a new", "", "a new"],
])("the text %j with the marker %j is the description %j", (text, marker, description) => {
  expect(withMarker(text, marker)).toBe(description);
  expect(splitMarker(description)).toEqual({ text, marker });
});
