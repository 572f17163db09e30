import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";

const SCRIPT = fileURLToPath(new URL("../kbsync", import.meta.url));

let folder = "";
let clone = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-clone-"));
  clone = join(folder, "a clone");
  mkdirSync(clone);
  copyFileSync(SCRIPT, join(clone, "kbsync"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Writes a file of the clone; its Node.js prints how it was started. */
function write(path: string, text: string): void {
  mkdirSync(dirname(join(clone, path)), { recursive: true });
  writeFileSync(join(clone, path), text);
  chmodSync(join(clone, path), 0o755);
}

function run(program: string, ...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: "utf8" });
  return { status, stdout, stderr };
}

it("the script of a clone says what to do before the clone is installed and built", () => {
  expect(run(join(clone, "kbsync"), "status")).toMatchObject({
    status: 2,
    stderr: `kbsync: this clone is not installed. Run this once: (cd "${clone}" && npm ci)\n`,
  });
  mkdirSync(join(clone, "node_modules"));
  expect(run(join(clone, "kbsync"), "status")).toMatchObject({
    status: 2,
    stderr: `kbsync: this clone is not built. Run this once: (cd "${clone}" && npm run build)\n`,
  });
});

it("the script of a clone runs the clone's program with its Node.js from any folder, also through links", () => {
  write("dist/main.js", "");
  write("node_modules/.bin/node", '#!/bin/sh\nprintf "%s\\n" "$KBSYNC_COMMAND" "$@"; exit 7\n');
  symlinkSync("a clone/kbsync", join(folder, "relative"));
  symlinkSync(join(folder, "relative"), join(folder, "absolute"));
  for (const typed of ["./a clone/kbsync", "./relative", "./absolute", join(clone, "kbsync")]) {
    const stdout = [typed, join(clone, "dist/main.js"), "search", "two words", ""].join("\n");
    expect(run(typed, "search", "two words")).toEqual({ status: 7, stdout, stderr: "" });
  }
});

it("the script of a clone that PATH finds is named without its path", () => {
  write("dist/main.js", "");
  write("node_modules/.bin/node", '#!/bin/sh\nprintf "%s\\n" "$KBSYNC_COMMAND"\n');
  const { stdout } = run("env", `PATH=${clone}/:${process.env["PATH"] ?? ""}`, "kbsync", "status");
  expect(stdout).toBe("kbsync\n");
});

it("the script of a clone runs without a Node.js of its own", () => {
  write("dist/main.js", "console.log(process.argv[2]);");
  mkdirSync(join(clone, "node_modules"));
  expect(run(join(clone, "kbsync"), "status")).toEqual({ status: 0, stdout: "status\n", stderr: "" });
});
