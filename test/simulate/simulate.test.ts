import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));

/** In processes of their own: the simulation replaces clock, disk and chance of the whole process. */
async function simulate(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ["--no-warnings", MAIN, ...args]);
  return stdout.trim();
}

it("twenty seeds leave folder and service in agreement", { timeout: 120_000 }, async () => {
  expect(await simulate("--seeds", "20")).toBe("20 seeds, 0 failed");
});

it("the same seed gives the same trace", { timeout: 120_000 }, async () => {
  expect(await simulate("--seeds", "4", "--from", "30", "--twice")).toBe("4 seeds, 0 failed");
});

it("a deliberate bug is found and reduced to what it takes", { timeout: 120_000 }, async () => {
  expect(await simulate("--mutant", "no-intent")).toMatch(
    /found by seed \d+ after[\s\S]*1 mutants, 0 not found$/,
  );
});
