import { spawnSync } from "node:child_process";
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withPriority } from "../../../src/cli/output/journal.ts";
import { repositoryRoot } from "../../e2e/program.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-journal-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** What the program writes to standard error when that is the journal. */
function journalOf(...args: readonly string[]): string[] {
  const stderr = openSync(join(folder, "stderr"), "w+");
  const { dev, ino } = fstatSync(stderr, { bigint: true });
  spawnSync(process.execPath, ["--no-warnings", join(repositoryRoot, "src/main.ts"), ...args], {
    stdio: ["ignore", "ignore", stderr],
    cwd: folder,
    env: { ...process.env, JOURNAL_STREAM: `${dev}:${ino}` },
  });
  closeSync(stderr);
  return readFileSync(join(folder, "stderr"), "utf8").trimEnd().split("\n");
}

describe("a failed start under systemd", () => {
  it.each([
    ["a configuration that is not there", ["up", "--config", "missing.json"], "missing.json"],
    ["a command line that is wrong", ["up", "--prot", "1"], "--prot"],
  ])(
    "a failed start under systemd has the priority of an error on each line that says why: %s",
    (_name, args, words) => {
      const lines = journalOf(...args);
      expect(lines.join("\n")).toContain(words);
      expect(lines.filter((line) => !line.startsWith("<3>"))).toEqual([]);
    },
  );
});

it("puts the priority before every line that says something", () => {
  expect(withPriority("kbsync: it failed\nTry again.\n", 3)).toBe("<3>kbsync: it failed\n<3>Try again.\n");
  expect(withPriority("one\n\ntwo", 4)).toBe("<4>one\n\n<4>two");
});
