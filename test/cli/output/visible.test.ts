import { expect, it } from "vitest";
import type { ListedFile } from "../../../src/wire/daemon-files.ts";
import { doctorText } from "../../../src/cli/commands/doctor.ts";
import { troubleLines, unreadableLine } from "../../../src/cli/commands/follow.ts";
import { visibleLine } from "../../../src/cli/output/visible.ts";

const HOSTILE = "a\u001b[2J\nok\u009b1m\u007f.md";
const SHOWN = String.raw`a\u001b[2J\nok\u009b1m\u007f.md`;

it.each([
  ["a text without any", "Ümläut 日本 a\\b.md", "Ümläut 日本 a\\b.md"],
  ["line ends and tabs", "a\r\n\tb", String.raw`a\r\n\tb`],
  ["what a terminal obeys", HOSTILE, SHOWN],
])("shows control characters and obeys none: %s", (_name, text, shown) => {
  expect(visibleLine(text)).toBe(shown);
});

it("a file's name reaches the terminal in no report as it is", () => {
  const failed = { path: HOSTILE, message: `cannot read ${HOSTILE}`, state: "failed" } as ListedFile; // the rest is not shown
  expect(troubleLines([failed], 20)).toBe(`failed\n  ${SHOWN}: cannot read ${SHOWN}\n`);
  expect(unreadableLine({ unreadable: 1, unreadablePaths: [HOSTILE], warnings: [] })).toContain(
    `cannot be read: ${SHOWN} (`,
  );
  const finding = {
    check: "x",
    level: "warning",
    subject: HOSTILE,
    message: HOSTILE,
    remedy: HOSTILE,
  } as const;
  const text = doctorText([{ check: "sources", sound: true, seen: "1 folder", findings: [finding] }]);
  expect(text).toBe(`ok       sources  1 folder\n         warning: ${SHOWN}\n         → ${SHOWN}\n`);
});
