import { expect, it } from "vitest";
import { hasColours, openTerminal } from "../../../src/cli/output/terminal.ts";

function record() {
  const written: string[] = [];
  const stream = (name: string) => ({ write: (text: string) => void written.push(`${name}:${text}`) });
  return { written, terminal: openTerminal({ stdout: stream("out"), stderr: stream("err") }) };
}

it("clears the bar before other text and draws it again below", () => {
  const { written, terminal } = record();
  terminal.bar("half");
  terminal.err("a warning\n");
  terminal.out("a result\n");
  terminal.bar("");
  expect(written).toEqual([
    "out:half",
    "out:\r\u001b[K",
    "err:a warning\n",
    "out:half",
    "out:\r\u001b[K",
    "out:a result\n",
    "out:half",
    "out:\r\u001b[K",
  ]);
});

it("passes text through without a bar, and draws the same bar once", () => {
  const { written, terminal } = record();
  terminal.out("text");
  terminal.bar("half");
  terminal.bar("half");
  expect(written).toEqual(["out:text", "out:half"]);
});

it("output has colours on a terminal that shows them, unless NO_COLOR is set", () => {
  expect(hasColours({ TERM: "xterm" }, true)).toBe(true);
  expect(hasColours({ TERM: "xterm" }, false)).toBe(false);
  expect(hasColours({ TERM: "dumb" }, true)).toBe(false);
  expect(hasColours({ TERM: "xterm", NO_COLOR: "1" }, true)).toBe(false);
});
