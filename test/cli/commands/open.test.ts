import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { addOpen, commandFor } from "../../../src/cli/commands/open.ts";
import type { Context } from "../../../src/cli/output/context.ts";
import type { Found } from "../../../src/cli/results/result-text.ts";
import { lastResults, rememberResults } from "../../../src/cli/results/last-results.ts";

describe("the program that opens a result", () => {
  it.each([
    ["vi with a line", "/a.md", 3, { EDITOR: "vim -u NONE" }, true, ["vim", "-u", "NONE", "+3", "/a.md"]],
    ["an editor of windows", "/a.md", 3, { EDITOR: "code" }, true, ["code", "--goto", "/a.md:3"]],
    ["VISUAL before EDITOR", "/a.md", null, { VISUAL: "nano", EDITOR: "ed" }, true, ["nano", "/a.md"]],
    ["an editor of which nothing is known", "/a.md", 3, { EDITOR: "ed" }, true, ["ed", "/a.md"]],
    ["no text", "/a.pdf", 3, { EDITOR: "vi" }, true, ["xdg-open", "/a.pdf"]],
    ["no terminal", "/a.md", 3, { EDITOR: "vi" }, false, ["xdg-open", "/a.md"]],
    ["no editor", "/a.md", 3, { EDITOR: " " }, true, ["xdg-open", "/a.md"]],
  ])("chooses the program that opens a file: %s", (_name, path, line, env, isTerminal, command) => {
    expect(commandFor(path, line, env, isTerminal, "linux")).toEqual(command);
  });
});

describe("the results of the last search", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "kbsync-open-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const found = (facts: object) =>
    ({ source: "/docs", path: "a.md", position: { lines: { first: 3, last: 4 } }, ...facts }) as Found;

  it("the results of the last search are remembered with their files and lines", () => {
    const env = { XDG_RUNTIME_DIR: folder };
    expect(lastResults(env)).toBeUndefined();
    rememberResults(env, [found({}), found({ path: null }), found({ position: {} })]);
    expect(lastResults(env)).toEqual([
      { path: "/docs/a.md", line: 3 },
      { path: null, line: 3 },
      { path: "/docs/a.md", line: null },
    ]);
  });

  it("the results of the last search are empty where nothing can be written, or the file is damaged", () => {
    writeFileSync(join(folder, "kbsync"), "a file");
    const env = { XDG_RUNTIME_DIR: folder };
    rememberResults(env, [found({})]);
    expect(lastResults(env)).toBeUndefined();
    rememberResults({}, [found({})]);
    expect(lastResults({})).toBeUndefined();
  });

  it("the results of the last search cannot be opened where no program opens the file, which says how to go on", async () => {
    const path = join(folder, "a.pdf");
    writeFileSync(path, "%PDF-1.4");
    writeFileSync(join(folder, "xdg-open"), "#!/bin/sh\nexit 3\n", { mode: 0o755 });
    const env = { XDG_RUNTIME_DIR: folder, PATH: folder };
    rememberResults(env, [found({ source: folder, path: "a.pdf" })]);
    const program = new Command();
    addOpen(program, { env, stdout: { isTTY: false } } as unknown as Context); // What the command does not use is missing.
    await expect(program.parseAsync(["open"], { from: "user" })).rejects.toMatchObject({
      code: "not_opened",
      message: `no program on this machine opens ${path}`,
      hint: expect.stringContaining("kbsync open 1 --print"),
    });
  });
});
