import { expect, it } from "vitest";
import { buildProgram } from "../../src/cli/command-line.ts";
import { endOf } from "../../src/cli/program.ts";
import { KbsyncError } from "../../src/lib/failure.ts";
import { cliContext } from "./context.ts";
import { programFor, table } from "./manual/program.ts";

const stopped = AbortSignal.abort();
const running = new AbortController().signal;

it.each([
  ["the signal's own reason", stopped, stopped.reason, 130, ""],
  ["whatever broke off because of it", stopped, new Error("the daemon is stopping"), 130, ""],
  [
    "a failure that was expected",
    stopped,
    new KbsyncError("x", { code: "ledger_damaged" }),
    2,
    "kbsync: x\n",
  ],
  ["a search that is refused", running, new KbsyncError("x", { code: "service_refused" }), 3, "kbsync: x\n"],
])("ends with the right status after %s", (_name, signal, error, code, words) => {
  expect(endOf(error, signal)).toEqual({ code, words });
});

it("calls what nobody expected a defect", () => {
  const { code, words } = endOf(new Error("what"), running);
  expect(code).toBe(70);
  expect(words).toContain("a defect in kbsync");
});

it.each(table.commands.map(({ name }) => name))(
  "loads %s without other commands, with its help",
  async (name) => {
    const words = name.split(" ");
    const program = await programFor(...words);
    expect(program.commands.map((command) => command.name())).toEqual([words[0]]);
    const command = words.reduce((above, word) => {
      const found = above.commands.find((one) => one.name() === word);
      expect(found).toBeDefined();
      return found ?? above;
    }, program);
    expect(command.helpInformation()).toMatch(new RegExp(`^Usage: kbsync ${name} `));
    expect(command.helpInformation()).toContain("--config");
  },
);

it.each([[["--help"]], [["upp"]], [["help", "up"]], [[]]])("loads all commands for %j", async (args) => {
  const program = await programFor(...args);
  expect(program.commands.length).toBeGreaterThan(25);
});

it.each([
  [
    ["search", "--filter", "{x", "dome"],
    /^kbsync: option '--filter <json>' argument '\{x' is invalid: expected /,
  ],
  [
    ["add", "papers", "--tier", "fastes"],
    /^kbsync: option '.*--tier <tier>' argument 'fastes' is invalid[.:] Allowed choices are /,
  ],
])("says what is wrong with %j in sentences", async (args, words) => {
  let said = "";
  const program = await buildProgram(cliContext(), args);
  for (const command of program.commands)
    command.configureOutput({ ...command.configureOutput(), writeErr: (text) => void (said += text) });
  await expect(program.parseAsync(args, { from: "user" })).rejects.toThrow("is invalid");
  expect(said).toMatch(words);
});

it.each([
  [40, /^ {2}-p, --port <n>\n {6}port of the service/m],
  [60, /^ {2}-p, --port <n> +port of the service/m],
])("puts descriptions %i cells wide where they can be read", async (helpWidth, expected) => {
  const program = await buildProgram(cliContext(), ["up"]);
  const [up] = program.commands;
  const help = up?.configureHelp({ ...up.configureHelp(), helpWidth }).helpInformation() ?? "";
  expect(help).toMatch(expected);
  expect(Math.max(...help.split("\n").map((line) => line.length))).toBeLessThanOrEqual(helpWidth);
});
