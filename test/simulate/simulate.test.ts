import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { MUTANTS } from "./mutants.ts";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
const SOURCES = fileURLToPath(new URL("../../src", import.meta.url));

/** In processes of their own: the simulation replaces clock, disk and chance of the whole process. */
async function simulate(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ["--no-warnings", MAIN, ...args]);
  return stdout.trim();
}

it.each(MUTANTS)("the deliberate bug $name still fits the sources", ({ patches }) => {
  for (const { file, find } of patches) {
    const text = readFileSync(join(SOURCES, file), "utf8");
    expect(text.split(find), `${file}: ${String(find)}`).toHaveLength(2);
  }
});

it("the same seed gives the same trace", { timeout: 120_000 }, async () => {
  expect(await simulate("--seeds", "4", "--from", "30", "--twice")).toMatch(/^4 seeds, 0 failed$/m);
});

it("finds a deliberate bug by the histories that once found one", { timeout: 120_000 }, async () => {
  expect(await simulate("--mutant", "no-intent")).toMatch(
    /found by the recorded history \S+\.json\s+1 mutants, 0 not found$/,
  );
});
