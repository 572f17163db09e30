import { assert, property, string } from "fast-check";
import { expect, it } from "vitest";
import { withoutLabels } from "../../../src/formats/markup/front-matter.ts";

const CASES: readonly [name: string, text: string, expected: string][] = [
  ["tags on a line", "---\ntitle: Tides\ntags: [sea, moon]\n---\nText", "---\ntitle: Tides\n---\nText"],
  ["a list of tags", "---\ntags:\n- sea\n  - moon\nlang: en\n---\nText", "---\nlang: en\n---\nText"],
  ["tags in capitals, with \\r\\n", "---\r\nTags: sea\r\n---\r\nText", "---\r\n---\r\nText"],
  ["aliases and keywords", "---\naliases: [a]\nkeywords: b, c\n---\n", "---\n---\n"],
  [
    "dates, numbers, true and false",
    '---\na: 2026-11-28\nb: "2026-11-28 10:00"\nc: 3.5\nd: true\n---\n',
    "---\n---\n",
  ],
  ["a description stays", "---\ndescription: On 2026-11-28\n---\n", "---\ndescription: On 2026-11-28\n---\n"],
  ["nothing without front matter", "tags: [sea]\n---\nText", "tags: [sea]\n---\nText"],
  ["nothing after a rule", "---\n\ntags: sea\n---\n", "---\n\ntags: sea\n---\n"],
  ["nothing in front matter without an end", "---\ntags: sea\n", "---\ntags: sea\n"],
  ["nothing in the text below", "---\na: b\n---\ntags: sea\n", "---\na: b\n---\ntags: sea\n"],
];

it.each(CASES)("leaves labels out of front matter: %s", (_name, text, expected) => {
  expect(withoutLabels(text)).toBe(expected);
});

it("leaving labels out twice changes nothing more", () => {
  assert(
    property(string({ unit: "grapheme-ascii" }), (inner) => {
      const once = withoutLabels(`---\ntags: ${inner}\n---\nText`);
      expect(withoutLabels(once)).toBe(once);
    }),
  );
});
