import { assert, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bytesTag,
  fileTag,
  markedDescription,
  readMarker,
  sourceTag,
  writerTag,
} from "../../../src/sync/plan/marker.ts";
import { withoutMarker } from "../../../src/wire/marker.ts";

const MARKER = {
  source: sourceTag("docs"),
  file: fileTag("docs/install.md"),
  bytes: bytesTag("00", 1),
  writer: writerTag("i", "m", "/state", "/docs"),
};

describe("a marker", () => {
  test("is read from the description that carries it", () => {
    const description = markedDescription("Installing on Linux, docs/install.md", MARKER);
    expect(description).toMatch(
      /^Installing on Linux, docs\/install\.md \[kb:[a-z2-7]{8}\.[a-z2-7]{12}\.[a-z2-7]{12}\.[a-z2-7]{8}\]$/,
    );
    expect(readMarker(description)).toEqual({ kind: "whole", marker: MARKER });
  });

  test.each([
    ["upper case", (text: string) => text.toUpperCase()],
    ["lower case", (text: string) => text.toLowerCase()],
    ["HTML escapes", (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")],
    ["blanks at the end", (text: string) => `${text} \n`],
  ])("survives %s", (_name, change) => {
    expect(readMarker(change(markedDescription("a & b < c", MARKER)))).toEqual({
      kind: "whole",
      marker: MARKER,
    });
  });

  test("is damaged wherever it is cut", () => {
    const description = markedDescription("", MARKER);
    for (let chars = 4; chars < description.length; chars += 1)
      expect(readMarker(description.slice(0, chars)).kind, `after ${chars} characters`).toBe("damaged");
  });

  test.each([[undefined], [null], [""], ["Installing on Linux"], ["[kb:aaaa] is what kbsync writes"]])(
    "is not in %s",
    (description) => {
      expect(readMarker(description)).toEqual({ kind: "none" });
    },
  );

  test("of a document's own front matter is removed before ours is added", () => {
    const copied = markedDescription("Copied", { ...MARKER, file: fileTag("other.md") });
    expect(markedDescription(copied, MARKER)).toBe(markedDescription("Copied", MARKER));
  });

  test("is one for the two ways to compose a letter of a path", () => {
    expect(fileTag("re\u0301sume\u0301.md")).toBe(fileTag("r\u00e9sum\u00e9.md"));
  });
});

test("a description has at most 200 characters before its marker, and no half of one", () => {
  const human = withoutMarker(markedDescription(`${"x".repeat(199)}😀 and more`, MARKER));
  expect(human).toBe("x".repeat(199));
});

test("any text before a marker is read back, and marked again it is the same", () => {
  assert(
    property(string({ unit: "grapheme", maxLength: 60 }), (human) => {
      const description = markedDescription(human, MARKER);
      expect(readMarker(description)).toEqual({ kind: "whole", marker: MARKER });
      expect(markedDescription(description, MARKER)).toBe(description);
    }),
  );
});
