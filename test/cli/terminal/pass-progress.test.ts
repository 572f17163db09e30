import { describe, expect, it } from "vitest";
import { IDLE_STATUS } from "../../fakes/status.ts";
import {
  barLine,
  openPassCount,
  type PassState,
  type PassStatus,
  progressWords,
  startProgress,
} from "../../../src/cli/terminal/pass-progress.ts";

const STATE: PassState = {
  done: 500,
  total: 1000,
  failed: 0,
  documentsLeft: 0,
  deletesLeft: 0,
  isScanning: false,
  isServiceAway: false,
  secondsLeft: undefined,
};

describe("the words of progress", () => {
  it.each([
    ["at the start", { done: 0, total: 20_000 }, "0 of 20,000 files"],
    ["half way", { secondsLeft: 11 }, "500 of 1,000 files, about 11 s left"],
    ["with failures", { failed: 2 }, "500 of 1,000 files, 2 failed"],
    [
      "with scans left",
      { documentsLeft: 12, secondsLeft: 40 },
      "500 of 1,000 files, 12 PDFs and images left, about 40 s",
    ],
    [
      "before all is found",
      { isScanning: true, secondsLeft: 3 },
      "comparing the folders: 500 of 1,000 files done so far",
    ],
    ["with deletes alone", { total: 0, deletesLeft: 1 }, "1 delete left"],
    [
      "without the service",
      { isServiceAway: true, secondsLeft: 9 },
      "500 of 1,000 files, waiting for the service",
    ],
  ])("shows the progress of a pass %s", (_name, state, words) => {
    expect(progressWords({ ...STATE, ...state })).toBe(words);
  });
});

it("draws a bar as wide as the terminal allows", () => {
  expect(barLine(STATE, 80, false)).toBe("  ############------------ 500 of 1,000 files");
  expect(barLine(STATE, 30, true)).toBe("  ▰▰▰▰▱▱▱▱ 500 of 1,000 files");
  expect(barLine(STATE, 24, true)).toBe("  500 of 1,000 files");
  expect(barLine({ ...STATE, isScanning: true }, 40, true).length).toBeLessThan(40);
});

function status(files: number, waiting: number, done: number, total: number, compared = true): PassStatus {
  return {
    sources: [{ files, waiting, compared }],
    service: { kind: "open" },
    progress: { ...IDLE_STATUS.progress, done, total, sent: done },
  };
}

it("counts files of this pass alone, with the time left by the rate of late", () => {
  const count = openPassCount(0);
  expect(count(status(1000, 900, 0, 900), 0)).toMatchObject({ done: 0, total: 900, secondsLeft: undefined });
  // Retried jobs do not make the total grow.
  expect(count(status(1000, 450, 450, 960), 10_000)).toMatchObject({ done: 450, total: 900 });
  const { secondsLeft } = count(status(1000, 450, 450, 900), 10_000);
  expect(secondsLeft).toBeCloseTo(10, 1);
});

it("counts the time left down while nothing more is done, and gives no time that is over", () => {
  const count = openPassCount(0);
  const scans = (done: number, nowMs: number): number | undefined => {
    const { progress, ...rest } = status(4, 4 - done, done, 4);
    return count({ ...rest, progress: { ...progress, documents: { done, total: 4 } } }, nowMs).secondsLeft;
  };
  expect(scans(0, 0)).toBeUndefined();
  expect([10_000, 20_000, 39_000].map((nowMs) => scans(1, nowMs))).toEqual([30, 20, 1]);
  expect(scans(1, 41_000)).toBeUndefined();
  expect(scans(2, 44_000)).toBe(44);
});

it("draws no full bar before all is done", () => {
  expect(barLine({ ...STATE, done: 999 }, 80, false)).toContain("#- 999 of 1,000 files");
  expect(barLine({ ...STATE, done: 1000 }, 80, false)).toContain("## 1,000 of 1,000 files");
});

function record(isTTY: boolean, isQuiet = false, TERM = "xterm") {
  const written: string[] = [];
  const write = (text: string): void => void written.push(text);
  const stdout = {
    isTTY,
    columns: 80,
    write,
    draw: write,
    bar: (line: string) => void written.push(`bar:${line}`),
  };
  return { written, context: { env: { LANG: "C", TERM }, stdout, isQuiet } };
}

/** Shows a pass of twelve seconds. */
function shown(isQuiet: boolean, isTTY = false, TERM?: string): readonly string[] {
  const { written, context } = record(isTTY, isQuiet, TERM);
  const progress = startProgress(context, 0);
  progress.update(status(10, 0, 0, 0), 6000);
  for (let ms = 0; ms <= 12_000; ms += 100) progress.update(status(12_000, 12_000 - ms, ms, 12_000), ms);
  progress.finish();
  return written;
}

it("writes plain lines seldom where there is no terminal or a dumb one, and nothing for an empty pass or a quiet one", () => {
  expect(shown(false, true, "dumb")).toEqual(shown(false));
  expect(shown(false)).toEqual([
    expect.stringMatching(/^syncing: 5,000 of 12,000 files, .*\n$/),
    expect.stringMatching(/^syncing: 10,000 of 12,000 files, .*\n$/),
  ]);
  expect(shown(true)).toEqual([]);
});

it("redraws one line on a terminal and removes it at the end", () => {
  const { written, context } = record(true);
  const progress = startProgress(context, 0);
  progress.update(status(2, 1, 1, 2), 0);
  progress.update(status(2, 0, 2, 2), 10);
  progress.finish();
  expect(written).toHaveLength(2);
  expect(written.at(-1)).toBe("bar:");
});
