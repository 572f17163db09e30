import { describe, expect, it } from "vitest";
import { duration, progressLine, startProgress, thousands } from "../../../src/cli/output/progress.ts";

describe("the line of progress", () => {
  it.each([
    ["at the start", { done: 0, total: 20_000, failed: 0 }, 0, "syncing: 0 of 20,000 files"],
    ["half way", { done: 500, total: 1000, failed: 0 }, 1000, "syncing: 500 of 1,000 files, 500/s, 1 s left"],
    ["with failures", { done: 10, total: 10, failed: 2 }, 1000, "syncing: 10 of 10 files, 10/s, 2 failed"],
  ])("%s", (_name, state, elapsedMs, line) => {
    expect(progressLine(state, elapsedMs, false)).toBe(line);
  });

  it("has a bar on a terminal", () => {
    expect(progressLine({ done: 1, total: 2, failed: 0 }, 0, true)).toBe(
      "  [############------------] 1 of 2 files",
    );
  });
});

function record(isTTY: boolean) {
  const written: string[] = [];
  const write = (text: string): void => void written.push(text);
  return { written, output: { isTTY, columns: 80, write, draw: write } };
}

it("writes plain lines seldom where there is no terminal, and nothing for an empty pass", () => {
  const { written, output } = record(false);
  const progress = startProgress(output, 0);
  progress.update({ done: 0, total: 0, failed: 0 }, 6000);
  for (let ms = 0; ms <= 12_000; ms += 100) progress.update({ done: ms, total: 12_000, failed: 0 }, ms);
  progress.finish();
  expect(written).toHaveLength(2);
  expect(written[0]).toMatch(/^syncing: 5,000 of 12,000 files, .*\n$/);
});

it("redraws one line on a terminal and removes it at the end", () => {
  const { written, output } = record(true);
  const progress = startProgress(output, 0);
  progress.update({ done: 1, total: 2, failed: 0 }, 0);
  progress.update({ done: 2, total: 2, failed: 0 }, 10);
  progress.finish();
  expect(written).toHaveLength(2);
  expect(written.at(-1)).toBe("\r\u001b[K");
});

it("spells numbers and times", () => {
  expect([0, 999, 1000, 1_234_567].map(thousands)).toEqual(["0", "999", "1,000", "1,234,567"]);
  expect([0.2, 89, 120, 7500].map(duration)).toEqual(["1 s", "89 s", "2 min", "2 h 5 min"]);
});
