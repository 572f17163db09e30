import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
/** Least histories that the simulation printed, of bugs that are mended. */
const REPLAYS = fileURLToPath(new URL("replays", import.meta.url));

/** In a process of its own: the simulation replaces clock, disk and chance of the whole process. */
async function simulate(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ["--no-warnings", MAIN, ...args]);
  return stdout.trim();
}

it("eight seeds leave folder and service in agreement", { timeout: 120_000 }, async () => {
  expect(await simulate("--seeds", "8")).toMatch(/^8 seeds, 0 failed$/m);
});

it("histories that once failed pass", { timeout: 120_000 }, async () => {
  const count = readdirSync(REPLAYS).length;
  expect(count).toBeGreaterThan(10);
  expect(await simulate("--replay", REPLAYS)).toBe(`${count} histories, 0 failed`);
});
