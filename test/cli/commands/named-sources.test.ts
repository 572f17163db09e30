import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Context } from "../../../src/cli/output/context.ts";
import { syncedSources, nameOtherSources } from "../../../src/cli/commands/named-sources.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { cliContext } from "../context.ts";
import { openWorld, type World } from "../../sync/daemon/harness.ts";

let world: World;
let configured: string;
let reported: string;
let context: Context;
const options = (): { config: string; stateDir: string } => ({
  config: join(dirname(world.root), "kbsync.config.json"),
  stateDir: world.stateDir,
});
beforeEach(async () => {
  world = await openWorld();
  configured = join(dirname(world.root), "configured");
  mkdirSync(configured);
  writeFileSync(options().config, JSON.stringify({ sources: [{ path: "configured", maxFileBytes: 77 }] }));
  // As `kbsync up FOLDER` leaves the ledger: the folder is none of the configuration's.
  world.write("a.txt", "a");
  await world.sync();
  reported = "";
  context = cliContext({
    stderr: { write: (text) => void (reported += text) },
    cwd: dirname(world.root),
  });
});
afterEach(async () => {
  await world.end();
});

const chosen = (folder: string | undefined): readonly string[] =>
  syncedSources(context, folder, options()).sources.map(({ absolutePath }) => absolutePath);

describe("a command on what was synced", () => {
  it("says without a daemon which folder it took, and how to name the other", () => {
    expect(chosen(undefined)).toEqual([configured]);
    expect(reported).toContain(`using ${configured} from the configuration`);
    expect(reported).toContain(`\`kbsync verify ${world.root}\``);
  });

  it("takes the folder on the command line", () => {
    expect(chosen("docs")).toEqual([world.root]);
    expect(chosen("configured")).toEqual([configured]);
    mkdirSync(join(context.cwd, "third"));
    expect(chosen("third")).toEqual([join(context.cwd, "third")]);
    expect(() => chosen("none")).toThrow(`there is no folder ${join(context.cwd, "none")}`);
    writeFileSync(join(context.cwd, "a.md"), "A");
    expect(() => chosen("a.md")).toThrow(/a\.md is a file, not a folder/);
    expect(reported).toBe("");
  });

  it("says nothing where configuration and ledger agree, or the ledger is damaged", () => {
    const request = { env: {}, cwd: context.cwd, folders: [{ path: world.root }], stateDir: world.stateDir };
    nameOtherSources(context, "sync", loadConfig(request));
    writeFileSync(join(world.stateDir, "ledger.db"), "no ledger at all");
    nameOtherSources(context, "sync", loadConfig({ ...request, folders: [{ path: configured }] }));
    expect(reported).toBe("");
  });

  it("names the ledger's folder where the configuration has none", () => {
    writeFileSync(options().config, JSON.stringify({ sources: [] }));
    const request = { env: {}, cwd: context.cwd, file: options().config, stateDir: world.stateDir };
    nameOtherSources(context, "sync", loadConfig(request));
    expect(reported).toContain("kbsync: the configuration names no folder; the state folder was last used");
    expect(() => chosen(undefined)).toThrow(
      expect.objectContaining({ hint: expect.stringContaining(world.root) as string }) as Error,
    );
  });
});
