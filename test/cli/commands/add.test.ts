import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Context } from "../../../src/cli/output/context.ts";
import { buildProgram } from "../../../src/cli/command-line.ts";
import { cliContext } from "../context.ts";
import { openWorld, type World } from "../../sync/daemon/harness.ts";

let world: World;
let context: Context;
beforeEach(async () => {
  world = await openWorld();
  context = cliContext({ cwd: dirname(world.root) });
});
afterEach(async () => {
  await world.end();
});

const add = async (...args: string[]): Promise<unknown> => {
  const all = ["add", ...args, "--state-dir", world.stateDir];
  return (await buildProgram(context, all)).parseAsync(all, { from: "user" });
};

it("says how to write a configuration, where there is none", async () => {
  const fresh = join(dirname(world.root), "my papers");
  mkdirSync(fresh);
  await expect(add("my papers")).rejects.toMatchObject({
    code: "config_not_found",
    hint: `\`kbsync init '${fresh}'\` writes one; --config names another.`,
  });
});

it("includes the folders that were named on the command line, with their tier", async () => {
  world.write("a.txt", "a");
  await world.sync();
  const { collection } = world.source();
  await expect(add("papers")).rejects.toMatchObject({
    code: "config_not_found",
    hint: `\`kbsync init ${world.root} ${join(dirname(world.root), "papers")} --tier ${collection}\` writes one; --config names another. Then stop kbsync, and start it with \`kbsync up\` and no folders.`,
  });
});
