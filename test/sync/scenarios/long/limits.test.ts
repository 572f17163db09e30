import { spawnSync } from "node:child_process";
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../daemon/harness.ts";
import { LONG_PATIENCE_MS } from "../followed.ts";
import { startProgram, type RunningProgram } from "../program.ts";

let program: RunningProgram;
afterEach(async () => {
  await program.end();
});

const words = (): string => `${JSON.stringify(program.status())}\n${program.log()}`;
const live = (): number => program.service.live().length;

/** A command that gives the program limits of its own; undefined where the system does not allow it. */
function withLimit(name: string, value: number): readonly string[] | undefined {
  const script = `echo ${value} > /proc/sys/user/${name} && exec "$@"`;
  const wrapper = ["unshare", "-Ur", "sh", "-c", script, "sh"];
  const [command = "", ...args] = wrapper;
  return spawnSync(command, [...args, "true"]).status === 0 ? wrapper : undefined;
}

it("a program that was stopped while 30,000 files came, more than the kernel's queue holds, finds every one", async () => {
  program = await startProgram({ fill: (root) => writeFileSync(join(root, "first.txt"), "first") });
  const { root, service, child } = program;
  await until(() => live() === 1, words, LONG_PATIENCE_MS);
  mkdirSync(join(root, "d"));
  writeFileSync(join(root, "d/seen.txt"), "seen");
  await until(() => live() === 2, words, LONG_PATIENCE_MS);
  child.kill("SIGSTOP");
  for (let n = 0; n < 30_000; n++) writeFileSync(join(root, `d/${n}.txt`), `text ${n}`);
  mkdirSync(join(root, "late"));
  writeFileSync(join(root, "late/x.txt"), "x");
  appendFileSync(join(root, "first.txt"), ", changed");
  child.kill("SIGCONT");
  await until(() => service.resources.size === 30_003, words, 250_000);
  await until(() => service.live().some(({ content }) => content === "first, changed"), words);
  expect([service.count("create"), service.count("delete")]).toEqual([30_003, 0]);
  expect(new Set(service.live().map(({ title }) => title)).size).toBe(30_003);
  // The watches are whole again: a change in a folder that came meanwhile is reported, not found by the hourly rescan.
  writeFileSync(join(root, "late/y.txt"), "y");
  await until(() => live() === 30_004, words, LONG_PATIENCE_MS);
});

describe.each([
  ["watches (ENOSPC)", "max_inotify_watches", 8],
  ["watchers (EMFILE)", "max_inotify_instances", 0],
])("too few %s", (_name, limit, value) => {
  const wrapper = withLimit(limit, value);
  it.skipIf(wrapper === undefined)(
    "reports limits with a hint, and scans the folder every quarter of a minute (skipped where limits cannot be set)",
    async () => {
      program = await startProgram({
        wrapper: wrapper ?? [],
        fill: (root) => {
          for (let n = 0; n < 20; n++) {
            mkdirSync(join(root, `f${n}`));
            writeFileSync(join(root, `f${n}/a.txt`), `text ${n}`);
          }
        },
      });
      const { root, service, log } = program;
      await until(() => live() === 20, words, LONG_PATIENCE_MS);
      const hint = limit === "max_inotify_watches" ? "max_user_watches" : "max_user_instances";
      await until(() => log().includes(hint), words);
      for (let n = 0; n < 20; n++) appendFileSync(join(root, `f${n}/a.txt`), ", changed");
      rmSync(join(root, "f0"), { recursive: true });
      mkdirSync(join(root, "new"));
      writeFileSync(join(root, "new/b.txt"), "b");
      const agreed = (): boolean =>
        live() === 20 &&
        service.live().every(({ title, content }) => title === "new/b.txt" || content?.endsWith("changed"));
      await until(agreed, words, 60_000);
      expect([service.count("create"), service.count("delete")]).toEqual([21, 1]);
    },
  );
});
