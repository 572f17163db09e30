import { expect, it } from "vitest";
import { endOf } from "../../src/cli/program.ts";
import { KbsyncError } from "../../src/lib/failure.ts";
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

it.each(table.commands.map(({ name }) => name).filter((name) => name !== "completion"))(
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

it.each([[["completion", "bash"]], [["--help"]], [["upp"]], [["help", "up"]], [[]]])(
  "loads all commands for %j",
  async (args) => {
    const program = await programFor(...args);
    expect(program.commands.length).toBeGreaterThan(30);
  },
);
