import { describe, expect, it } from "vitest";
import { IDLE_STATUS } from "../../fakes/status.ts";
import {
  barLine,
  embeddedOf,
  type PassStatus,
  progressWords,
  startProgress,
} from "../../../src/cli/terminal/pass-progress.ts";

interface Figures {
  readonly files?: number;
  readonly waiting?: number;
  readonly reading?: number;
  readonly failed?: number;
  readonly compared?: boolean;
  readonly secondsLeft?: number | null;
  readonly service?: PassStatus["service"];
  readonly progress?: Partial<PassStatus["progress"]>;
}

/** A pass of so many files, of which some wait. */
function status({
  files = 1000,
  waiting = 500,
  reading = 0,
  failed = 0,
  compared = true,
  ...more
}: Figures = {}): PassStatus {
  const done = files - waiting;
  return {
    sources: [{ files, waiting, reading, failed, searchable: done - reading - failed, compared }],
    service: more.service ?? { kind: "open" },
    secondsLeft: more.secondsLeft ?? null,
    progress: { ...IDLE_STATUS.progress, done, total: files, sent: done, ...more.progress },
  };
}

const AWAY = { kind: "waiting", untilMs: 1, reason: "ECONNREFUSED" } as const;

describe("the words of progress", () => {
  it.each([
    ["at the start", { files: 20_000, waiting: 20_000 }, "searchable: 0 of 20,000"],
    ["half way", {}, "searchable: 500 of 1,000"],
    ["with failures", { failed: 2 }, "searchable: 498 of 1,000, 2 failed"],
    ["with scans left", { reading: 9 }, "searchable: 491 of 1,000, 9 being read"],
    ["before all is found", { compared: false }, "comparing the folders, searchable: 500 so far"],
    ["with deletes alone", { files: 0, waiting: 0, progress: { done: 0, total: 1 } }, "1 delete left"],
    ["without the service", { service: AWAY }, "searchable: 500 of 1,000, waiting for the service"],
  ])("shows the progress of a pass %s", (_name, figures, words) => {
    expect(progressWords(status(figures), undefined, false)).toBe(words);
  });

  it.each([
    [{ embed: 160 }, "34 %"],
    [{ embed: 0 }, "50 %"],
    [{ embed: 900 }, "0 %"],
    [{ embed: 160, more: true }, "under 35 %"],
  ] as const)("show which share of all files can be found by meaning: %j", (pending, share) => {
    const embedded = embeddedOf({ read: 0, ...pending }, status());
    expect(progressWords(status(), embedded, true)).toBe(`searchable: 500 of 1,000 · embedded: ${share}`);
  });
});

it("draws a bar as wide as the terminal allows", () => {
  const counts = "searchable: 500 of 1,000";
  expect(barLine(status(), counts, 80, false)).toBe(`  ############------------ ${counts}`);
  expect(barLine(status({ secondsLeft: 20 }), counts, 80, true)).toBe(
    `  ▰▰▰▰▰▰▰▰▰▰▰▰▱▱▱▱▱▱▱▱▱▱▱▱ ${counts} · about 20 s left`,
  );
  expect(barLine(status(), counts, 36, true)).toBe(`  ▰▰▰▰▱▱▱▱ ${counts}`);
  expect(barLine(status(), counts, 30, true)).toBe(`  ${counts}`);
  expect(barLine(status({ compared: false }), counts, 80, true)).toBe(`  ${counts}`);
});

it("draws no full bar before all is done", () => {
  expect(barLine(status({ waiting: 1 }), "x", 80, false)).toContain("#- x");
  expect(barLine(status({ waiting: 0 }), "x", 80, false)).toContain("## x");
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

/** Shows a pass of which nothing is done from the sixth second to the sixteenth. */
function shown(isQuiet: boolean, isTTY = false, TERM?: string): readonly string[] {
  const { written, context } = record(isTTY, isQuiet, TERM);
  const progress = startProgress(context, 0);
  progress.update(status({ files: 10, waiting: 0 }), 6000);
  for (let ms = 0; ms <= 22_000; ms += 100) {
    const done = ms < 6000 ? ms : Math.max(6000, ms - 10_000);
    progress.update(
      status({ files: 13_000, waiting: 13_000 - done, secondsLeft: 23 - Math.floor(ms / 1000) }),
      ms,
    );
  }
  progress.finish();
  return written;
}

it("writes plain lines seldom where there is no terminal or a dumb one, none that repeats the last, and nothing for an empty pass or a quiet one", () => {
  expect(shown(false, true, "dumb")).toEqual(shown(false));
  expect(shown(false)).toEqual([
    "searchable: 5,000 of 13,000, about 18 s left\n",
    "searchable: 6,000 of 13,000, about 13 s left\n",
    "searchable: 10,000 of 13,000, about 3 s left\n",
  ]);
  expect(shown(true)).toEqual([]);
});

it("redraws one line on a terminal and removes it at the end", () => {
  const { written, context } = record(true);
  const progress = startProgress(context, 0);
  progress.update(status({ files: 2, waiting: 1 }), 0);
  progress.update(status({ files: 2, waiting: 1 }), 10);
  progress.finish();
  expect(written).toHaveLength(2);
  expect(written.at(-1)).toBe("bar:");
});

it("asks the service seldom for what has no vectors, and shows no figure while it does not answer", async () => {
  const { written, context } = record(true);
  let asked = 0;
  const answers = [{ read: 0, embed: 100 }, undefined];
  const progress = startProgress(context, 0, async () => {
    asked += 1;
    const next = answers.shift();
    if (next === undefined) throw new Error("no answer");
    return next;
  });
  for (const ms of [0, 4900, 5000, 5100]) {
    progress.update(status(), ms);
    await Promise.resolve();
    await Promise.resolve();
  }
  expect(asked).toBe(2);
  expect(written.map((line) => line.includes("embedded: 40 %"))).toEqual([false, true, true, false]);
});
