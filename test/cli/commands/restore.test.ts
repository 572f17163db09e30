import { mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { addBackup } from "../../../src/cli/commands/backup.ts";
import { startEmbeddedService } from "../../../src/cli/compose/embedded-service.ts";
import { addKey } from "../../../src/cli/commands/key.ts";
import { addRestore } from "../../../src/cli/commands/restore.ts";
import { makeStateFolder } from "../../../src/cli/state/state-folder.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { cliContext, outputTo } from "../context.ts";

let folder: string;
let state: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-restore-"));
  state = join(folder, "state");
  await writeFile(
    join(folder, "kbsync.config.json"),
    JSON.stringify({ service: { port: 0 }, stateDir: state }),
  );
});
afterEach(() => rm(folder, { recursive: true }));

/** How the last command ended. */
let exitCode: number;

/** Runs a command over the state folder; what it printed. */
async function run(...args: readonly string[]): Promise<string> {
  let out = "";
  const context = cliContext({ stdout: outputTo((text) => void (out += text)), cwd: folder });
  const program = new Command().exitOverride();
  addBackup(program, context);
  addKey(program, context);
  addRestore(program, context);
  await program.parseAsync(args, { from: "user" });
  exitCode = context.exitCode;
  return out;
}

interface Made {
  readonly key: string;
  readonly _id: string;
}

const makeKey = async (name: string, ...more: readonly string[]): Promise<Made> =>
  JSON.parse(await run("key", "create", name, "--json", ...more)) as Made;

/** How a service that is started over the state folder answers each key. */
async function statuses(...keys: readonly string[]): Promise<number[]> {
  const config = loadConfig({ cwd: folder, env: {} });
  const silent = pino({ level: "silent" });
  const service = await startEmbeddedService(config, makeStateFolder(config.stateDir), silent);
  try {
    const asked = keys.map((pauthkey) =>
      fetch(`${service.apiUrl}/api/rag/collections`, { headers: { pauthkey } }),
    );
    return (await Promise.all(asked)).map(({ status }) => status);
  } finally {
    await service.close();
  }
}

describe("kbsync backup", () => {
  const watch = (path: string): Promise<void> =>
    writeFile(
      join(folder, "kbsync.config.json"),
      JSON.stringify({
        service: { port: 0 },
        stateDir: state,
        sources: [{ path }],
      }),
    );

  it.each([["docs"], ["docs/backups/new"], ["link/backups"]])(
    "a backup into a watched folder is refused by name: %s",
    async (to) => {
      await makeKey("first");
      await mkdir(join(folder, "docs"));
      await symlink("docs", join(folder, "link"));
      await watch("docs");
      await expect(run("backup", to)).rejects.toMatchObject({
        code: "backup_in_source",
        message: expect.stringContaining(join(folder, "docs")) as string,
      });
      expect(await readdir(join(folder, "docs"))).toEqual([]);
    },
  );

  it("a backup beside a watched folder, or in a hidden folder of it, is made", async () => {
    await makeKey("first");
    await mkdir(join(folder, "docs", ".backups"), { recursive: true });
    await watch("docs");
    await run("backup", "docs/.backups");
    await run("backup", "beside");
    expect(exitCode).toBe(0);
  });
});

describe("kbsync restore", () => {
  it("leaves keys revoked that were revoked since the backup, and says so", async () => {
    const [valid, revoked] = [await makeKey("valid"), await makeKey("revoked")];
    await run("backup", "backup");
    await run("key", "revoke", revoked._id);
    const reported = await run("restore", "backup", "--force");
    expect(reported).toContain("stays withdrawn: 1 key revoked\n");
    expect(reported).not.toContain("valid again");
    expect(await statuses(valid.key, revoked.key)).toEqual([200, 401]);
    const json = JSON.parse(await run("restore", "backup", "--force", "--json"));
    expect(json.keys).toEqual({ problem: null, revoked: 1, endEarlier: 0, narrowed: 0, valid: 1 });
  });

  it("names an upload that the backup has no more, and ends as a backup does that leaves one out", async () => {
    await makeKey("first");
    await run("backup", "backup");
    expect(await run("restore", "backup", "--force")).not.toContain("not restored");
    expect(exitCode).toBe(0);
    const manifest = join(folder, "backup", "manifest.json");
    const reported = JSON.parse(await readFile(manifest, "utf8")) as { files: object[] };
    reported.files.push({ path: "service/uploads/gone", bytes: 3, sha256: "0".repeat(64) });
    await writeFile(manifest, JSON.stringify(reported));
    expect(await run("restore", "backup", "--force")).toContain(
      "not restored: service/uploads/gone (it is missing)\n",
    );
    expect(exitCode).toBe(1);
    expect(JSON.parse(await run("restore", "backup", "--force", "--json"))).toMatchObject({
      notRestored: [{ path: "service/uploads/gone", reason: "it is missing" }],
    });
  });

  it("kbsync restore does not register a key from its file again that was revoked since", async () => {
    await makeKey("first");
    await run("backup", "backup");
    // The key file's key gets to the store with the first start.
    expect(await statuses()).toEqual([]);
    const own = (await readFile(join(state, "pauthkey"), "utf8")).trim();
    const listed = JSON.parse(await run("key", "list", "--json")) as {
      keys: { _id: string; name: string }[];
    };
    const id = listed.keys.find(({ name }) => name === "state folder")?._id ?? "";
    await rm(join(state, "pauthkey"));
    await run("key", "revoke", id);
    await writeFile(join(state, "pauthkey"), `${own}\n`, { mode: 0o600 });
    await run("restore", "backup", "--force");
    const restored = JSON.parse(await run("key", "list", "--json")) as {
      keys: { _id: string; state: string }[];
    };
    expect(restored.keys.find(({ _id }) => _id === id)?.state).toBe("revoked");
  });

  it.each([
    ["is damaged", () => truncate(join(state, "service", "kb.sqlite"), 5000), "cannot be read"],
    ["is gone", () => rm(state, { recursive: true }), "no store here before"],
  ])(
    "says that revoked keys are valid again where the store that was there %s",
    async (_name, lose, words) => {
      const revoked = await makeKey("revoked");
      await run("backup", "backup");
      await run("key", "revoke", revoked._id);
      await lose();
      const reported = await run("restore", "backup", "--force");
      expect(reported).toContain("valid again");
      expect(reported).toContain(words);
      expect(reported).toContain("kbsync key revoke");
      expect(await statuses(revoked.key)).toEqual([200]);
    },
  );
});
