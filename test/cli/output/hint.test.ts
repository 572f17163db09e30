import { describe, expect, it } from "vitest";
import { completeCommands, invocationOf } from "../../../src/cli/output/hint.ts";

const typed = (text: string, options: { config?: string; stateDir?: string }, env: NodeJS.ProcessEnv = {}) =>
  completeCommands(text, invocationOf({ env, cwd: "/home/me" }, options));

describe("a command in a hint", () => {
  it.each([
    ["names the state folder", "see `kbsync status`", "see `kbsync status --state-dir /home/me/state`"],
    [
      "has its options before a redirection",
      "`kbsync key create NAME > FILE` makes one",
      "`kbsync key create NAME --state-dir /home/me/state > FILE` makes one",
    ],
    [
      "is completed within a longer line",
      "`echo x >> .kbsyncignore && kbsync erase 'a b'`",
      "`echo x >> .kbsyncignore && kbsync erase 'a b' --state-dir /home/me/state`",
    ],
    ["keeps the options that it has", "`kbsync wait --state-dir /x`", "`kbsync wait --state-dir /x`"],
    ["stays a request for help", "`kbsync eval --help`", "`kbsync eval --help`"],
    ["is left alone without backticks", "kbsync up and kbsync run", "kbsync up and kbsync run"],
    ["is left alone between two others", "`a` and kbsync up, `b`", "`a` and kbsync up, `b`"],
    ["leaves other commands alone", "`systemctl restart kbsync`", "`systemctl restart kbsync`"],
  ])("completes a command: %s", (_name, text, expected) => {
    expect(typed(text, { stateDir: "state" })).toBe(expected);
  });

  it("a command in a hint stays short where nothing was named", () => {
    expect(typed("see `kbsync status`", {})).toBe("see `kbsync status`");
  });

  it("quotes folders for a shell", () => {
    expect(typed("`kbsync up`", { config: "my notes.json" })).toBe(
      "`kbsync up --config '/home/me/my notes.json'`",
    );
  });

  it.each([
    ["is that of the clone in which npm starts the program", { npm_lifecycle_event: "start" }, "./kbsync"],
    ["is as the clone's script was typed", { KBSYNC_COMMAND: "../a clone/kbsync" }, "'../a clone/kbsync'"],
  ])("a command in a hint %s", (_, env, program) => {
    expect(typed("`kbsync approve`", {}, env)).toBe(`\`${program} approve\``);
  });

  it("reaches a system unit's state folder from a journal", () => {
    expect(typed("`kbsync approve`", {}, { STATE_DIRECTORY: "/var/lib/kbsync" })).toBe(
      "`sudo kbsync approve --state-dir /var/lib/kbsync`",
    );
  });
});
