import { spawnSync } from "node:child_process";
import { appendFileSync, chmodSync, mkdirSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { until } from "../../daemon/harness.ts";
import { LONG_PATIENCE_MS } from "../followed.ts";
import { startProgram, type RunningProgram } from "../program.ts";

let program: RunningProgram;
afterEach(async () => {
  await program.end();
});

/** Rights do not bind the superuser, so a test that runs as root lets the program run as nobody. */
const isRoot = process.getuid?.() === 0;
const nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
const main = join(import.meta.dirname, "../../../../src/main.ts");
const [command, ...args] = [...(isRoot ? nobody : ["env"]), process.execPath, main, "--version"];
const cannotRun = spawnSync(command, args).status !== 0;

it.skipIf(cannotRun)(
  "files and folders that may not be read keep what they have, the others go on, and nothing is lost when they are open again (skipped where the program cannot run without rights)",
  async () => {
    program = await startProgram({
      wrapper: isRoot ? nobody : [],
      fill: (root) => {
        for (const folder of ["open", "shut", "shut/deep"]) mkdirSync(join(root, folder));
        for (const path of ["open/a.txt", "shut/b.txt", "shut/deep/c.txt", "d.txt", "e.txt"])
          writeFileSync(join(root, path), `text of ${path}`);
      },
    });
    const { root, service, status, troubled } = program;
    const at = (path: string): string => join(root, path);
    const words = (): string => `${JSON.stringify([status(), troubled()])}\n${program.log()}`;
    const texts = (): Record<string, string | undefined> =>
      Object.fromEntries(service.live().map(({ title, content }) => [title, content]));
    await until(() => service.live().length === 5, words, LONG_PATIENCE_MS);
    const ids = new Set(service.live().map(({ _id }) => _id));

    chmodSync(at("shut"), 0o000);
    appendFileSync(at("d.txt"), ", changed");
    chmodSync(at("d.txt"), 0o000);
    appendFileSync(at("open/a.txt"), ", changed");
    unlinkSync(at("e.txt"));
    await until(
      () => texts()["open/a.txt"] === "text of open/a.txt, changed" && !("e.txt" in texts()),
      words,
    );
    await until(() => troubled().some(({ path, code }) => path === "d.txt" && code === "EACCES"), words);
    await until(() => status()?.unreadable === 1, words);
    expect(Object.keys(texts()).toSorted()).toEqual(["d.txt", "open/a.txt", "shut/b.txt", "shut/deep/c.txt"]);
    expect(texts()["d.txt"]).toBe("text of d.txt");

    chmodSync(at("shut"), 0o755);
    chmodSync(at("d.txt"), 0o644);
    appendFileSync(at("shut/deep/c.txt"), ", changed");
    await until(
      () =>
        texts()["d.txt"]?.endsWith("changed") === true &&
        texts()["shut/deep/c.txt"]?.endsWith("changed") === true,
      words,
      LONG_PATIENCE_MS,
    );
    await until(() => status()?.unreadable === 0 && troubled().length === 0, words);
    expect(service.live().every(({ _id }) => ids.has(_id))).toBe(true);
    expect([service.count("create"), service.count("delete")]).toEqual([5, 1]);
  },
);
