import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { ENVIRONMENT, FILES, manPage } from "../../../packaging/man-page.ts";
import { EXIT, EXIT_WORDS } from "../../../src/cli/output/exit-code.ts";
import { programVersion } from "../../../src/cli/output/version.ts";
import { table } from "./program.ts";

const page = manPage(table, {
  version: programVersion(),
  exits: EXIT_WORDS,
  environment: ENVIRONMENT,
  files: FILES,
});
const path = fileURLToPath(new URL("../../../man/kbsync.1", import.meta.url));

it("man/kbsync.1 is what the program's commands give (npm run man rewrites it)", async () => {
  await expect(page).toMatchFileSnapshot(path);
});

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

it("names every command and every option with its value", () => {
  for (const { name, options } of table.commands) {
    const title = `.SS "kbsync ${name.replaceAll("-", "\\-")}`;
    const start = page.indexOf(title);
    expect({ name, start: start > 0 }).toEqual({ name, start: true });
    const section = page.slice(start, page.indexOf("\n.S", start + 1));
    for (const { long, value } of options) {
      const takes = value === undefined ? "" : ` \\fI${value.replaceAll("-", "\\-")}\\fR`;
      expect(section).toContain(`\\fB${long.replaceAll("-", "\\-")}\\fR${takes}\n`);
    }
  }
});

it("names every exit status, and every environment variable of docs/CONFIG.md", () => {
  expect(EXIT_WORDS.map(([code]) => code)).toEqual(Object.values(EXIT));
  const manual = readFileSync(new URL("../../../docs/CONFIG.md", import.meta.url), "utf8");
  const environment = manual.slice(manual.indexOf("\n## Environment"));
  const variables = [...environment.matchAll(/`([A-Z][A-Z_]+)`/g)].map(([, name = ""]) => name);
  expect(variables.length).toBeGreaterThan(3);
  for (const variable of variables) expect(page).toContain(`\\fB${variable}\\fR`);
});

const hasGroff = spawnSync("groff", ["--version"]).status === 0;

it.skipIf(!hasGroff)("the man page is set without a warning (skipped where groff is not installed)", () => {
  const { stdout, stderr, status } = spawnSync("groff", ["-man", "-Tutf8", "-ww", "-z", path], {
    encoding: "utf8",
  });
  expect({ stdout, stderr, status }).toEqual({ stdout: "", stderr: "", status: 0 });
});

it("keeps what a line may not begin with, and what would end a string, from being a request", () => {
  const text = manPage(
    { ...table, description: '.hidden "files"\n\'quoted\\', commands: [] },
    { version: "1", exits: [], environment: [], files: [] },
  );
  expect(text).toContain("\\&.hidden \\(dqfiles\\(dq\n\\&'quoted\\(rs\n");
});
