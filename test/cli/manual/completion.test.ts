import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { completionOf } from "../../../src/cli/commands/completion.ts";
import { table, wholeProgram } from "./program.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
const scripts = new Map<string, string>();
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-completion-"));
  for (const shell of SHELLS) {
    const script = await completionOf(await wholeProgram(), shell);
    scripts.set(shell, script);
    writeFileSync(join(folder, `kbsync.${shell}`), script);
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

const has = (shell: string): boolean => spawnSync(shell, ["-c", "true"]).status === 0;
const file = (shell: string): string => join(folder, `kbsync.${shell}`);

/** What bash offers for a command line; the last word is the one that is being typed. */
function bashOffers(...words: readonly string[]): string[] {
  const { stdout, stderr } = spawnSync(
    "bash",
    [
      "-c",
      `source ${file("bash")}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kbsync; printf '%s\\n' "\${COMPREPLY[@]}"`,
      "bash",
      "kbsync",
      ...words,
    ],
    { cwd: folder, encoding: "utf8" },
  );
  expect(stderr).toBe("");
  return stdout.split("\n").filter((word) => word !== "");
}

it("knows every command and option of the program, with a description of each", () => {
  expect(table.commands.length).toBeGreaterThan(25);
  for (const command of table.commands) {
    expect(command.description).not.toBe("");
    expect(command.options.map(({ long }) => long)).toEqual(
      expect.arrayContaining(["--help", "--config", "--state-dir"]),
    );
    for (const { description } of command.options) expect(description).not.toBe("");
  }
});

describe.each(SHELLS)("the completion of %s", (shell) => {
  it("names every command and every option", () => {
    const script = scripts.get(shell) ?? "";
    for (const { name, options } of table.commands) {
      for (const word of name.split(" ")) expect(script).toContain(word);
      for (const { long } of options)
        expect(script).toContain(shell === "fish" ? `-l ${long.slice(2)}` : long);
    }
  });

  it.skipIf(!has(shell))(
    "a completion script is understood by the shell (skipped where it is not installed)",
    () => {
      const { status, stderr } = spawnSync(shell, ["-n", file(shell)], { encoding: "utf8" });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    },
  );
});

describe.skipIf(!has("bash"))("bash offers (skipped where it is not installed)", () => {
  it.each([
    ["commands", ["st"], ["status"]],
    ["commands of a group", ["key", "r"], ["revoke", "rotate"]],
    ["the options of a command", ["status", "--w"], ["--watch"]],
    ["those of a command in a group", ["key", "create", "--sc"], ["--scopes"]],
    ["those of the program", ["--v"], ["--version"]],
    ["choices", ["completion", "z"], ["zsh"]],
    ["nothing for a number", ["up", "--port", ""], []],
    ["files where one is wanted", ["up", "--config", "kbsync.b"], ["kbsync.bash"]],
    ["the same after an option with a value", ["log", "-n", "5", "--fo"], ["--follow"]],
    ["the same after one that takes none", ["approve", "-n", "--js"], ["--json"]],
  ])("bash completes %s", (_name, words, expected) => {
    expect(bashOffers(...words)).toEqual(expected);
  });
});

describe.skipIf(!has("bash"))(
  "bash offers values of this machine (skipped where it is not installed)",
  () => {
    // A folder named like a command must not run.
    const lines = { sources: "/srv/hand book\n/srv/$(touch ran)", agents: "default\ndesk" };
    const stub = `kbsync() { case "$3" in sources) printf '%s\\n' ${quoted(lines.sources)} ;; agents) printf '%s\\n' ${quoted(lines.agents)} ;; esac; }`;

    it.each([
      ["the synced folders", ["pause", "/srv/"], ["/srv/hand book", "/srv/$(touch ran)"]],
      ["the synced folders of an option", ["search", "--source", "/srv/h"], ["/srv/hand book"]],
      ["agents", ["ask", "--agent", "de"], ["default", "desk"]],
    ])("bash completes from this machine %s", (_name, words, expected) => {
      const line = `${stub}; source ${file("bash")}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kbsync; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const { stdout } = spawnSync("bash", ["-c", line, "bash", "kbsync", ...words], {
        cwd: folder,
        encoding: "utf8",
      });
      expect(stdout.split("\n").filter((word) => word !== "")).toEqual(expected);
      expect(readdirSync(folder)).not.toContain("ran");
    });
  },
);

function quoted(text: string): string {
  return `'${text}'`;
}

describe.skipIf(!has("fish"))("fish offers (skipped where it is not installed)", () => {
  it.each([
    ["commands", "kbsync stat", ["status"]],
    ["commands of a group", "kbsync key r", ["revoke", "rotate"]],
    ["the options of a command", "kbsync status --w", ["--watch"]],
    ["choices", "kbsync completion z", ["zsh"]],
    ["files where one is wanted", "kbsync up --config kbsync.b", ["kbsync.bash"]],
  ])("fish completes %s", (_name, line, expected) => {
    const command = `source ${file("fish")}; complete -C ${JSON.stringify(line)}`;
    const { stdout } = spawnSync("fish", ["--no-config", "-c", command], {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, HOME: folder },
    });
    const offers = stdout.split("\n").filter((each) => each !== "");
    expect(offers.map((each) => each.split("\t")[0])).toEqual(expected);
  });
});
