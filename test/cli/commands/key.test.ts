import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startEmbeddedService } from "../../../src/cli/compose/embedded-service.ts";
import { addKey } from "../../../src/cli/commands/key.ts";
import { makeStateFolder } from "../../../src/cli/state/state-folder.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { cliContext, outputTo } from "../context.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-key-"));
});
afterEach(() => rm(folder, { recursive: true }));

const env = (): NodeJS.ProcessEnv => ({ STATE_DIRECTORY: folder });

/** Runs `kbsync key …` over the state folder; what it printed. */
async function key(...args: readonly string[]): Promise<{ out: string; err: string }> {
  const reported = { out: "", err: "" };
  const context = cliContext({
    stdout: outputTo((text) => void (reported.out += text)),
    stderr: { write: (text) => void (reported.err += text) },
    env: env(),
    cwd: folder,
  });
  const program = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
  addKey(program, context);
  for (const command of program.commands.flatMap((one) => one.commands))
    command.exitOverride().configureOutput({ writeErr: () => undefined });
  await program.parseAsync(["key", ...args], { from: "user" });
  return reported;
}

const keys = async (...args: readonly string[]) =>
  JSON.parse((await key("list", "--json", ...args)).out).keys;

/** The embedded service over the state folder, for as long as `work` takes. */
async function serving<T>(work: (url: string, own: string) => Promise<T>): Promise<T> {
  await writeFile(join(folder, "kbsync.config.json"), JSON.stringify({ service: { port: 0 } }));
  const config = loadConfig({ cwd: folder, env: env() });
  const service = await startEmbeddedService(
    config,
    makeStateFolder(config.stateDir),
    pino({ level: "silent" }),
  );
  try {
    return await work(service.apiUrl, service.pauthkey);
  } finally {
    await service.close();
  }
}

const statusOf = async (url: string, pauthkey: string): Promise<number> =>
  (await fetch(`${url}/api/rag/collections`, { headers: { pauthkey } })).status;

describe("kbsync key", () => {
  it("makes a key, alone on standard output, that works where the service runs", async () => {
    const { out, err } = await key("create", "laptop", "--scopes", "read");
    expect(out).toMatch(/^kb_[A-Za-z0-9_-]{43}\n$/);
    expect(err).toContain("not shown again");
    expect(await serving((url) => statusOf(url, out.trim()))).toBe(200);
    expect(await keys()).toMatchObject([
      { name: "laptop", scopes: ["read"], state: "valid" },
      { name: "state folder" },
    ]);
    expect((await key("list")).out).toMatch(
      /^[0-9a-f]{24} {2}laptop\n {2}valid, never expires; kb_\S{5}…; read$/m,
    );
  });

  it("kbsync key works beside the running service: a new key at once, a revoked one within seconds", async () => {
    await serving(async (url) => {
      const made = JSON.parse((await key("create", "phone", "--json", "--expires", "90d")).out);
      expect(Date.parse(made.expiresAt) - Date.now()).toBeGreaterThan(89 * 86_400_000);
      expect(await statusOf(url, made.key)).toBe(200);
      expect((await key("revoke", made._id)).out).toBe(`revoked phone (${made.hint}…)\n`);
      await expect.poll(() => statusOf(url, made.key), { timeout: 10_000 }).toBe(401);
    });
  });

  it("keeps accounts apart", async () => {
    const one = JSON.parse((await key("create", "a", "--account", "one", "--json")).out);
    const two = JSON.parse((await key("create", "b", "--account", "two", "--json")).out);
    expect(await keys("--account", "one")).toMatchObject([{ _id: one._id }]);
    await expect(key("revoke", two._id, "--account", "one")).rejects.toMatchObject({ code: "key_not_found" });
    await expect(key("list", "--account", "three")).rejects.toThrow("there is no account three");
    await serving(async (url) => {
      const collections = async (pauthkey: string) =>
        (await fetch(`${url}/api/rag/collections`, { headers: { pauthkey } })).text();
      expect(await collections(one.key)).not.toBe(await collections(two.key));
    });
  });

  it("rotates a key, which works on for the overlap", async () => {
    const old = JSON.parse((await key("create", "old", "--json")).out);
    const made = JSON.parse((await key("rotate", old._id, "--json")).out);
    expect(made).toMatchObject({ name: "old", previous: { _id: old._id } });
    await serving(async (url) => {
      expect([await statusOf(url, old.key), await statusOf(url, made.key)]).toEqual([200, 200]);
    });
  });

  it.each([
    ["an unknown scope", ["create", "x", "--scopes", "root"]],
    ["an end that is no time", ["create", "x", "--expires", "soon"]],
    ["an account that is no name", ["create", "x", "--account", "../x"]],
  ])("kbsync key refuses %s", async (_name, args) => {
    await expect(key(...args)).rejects.toMatchObject({ code: "commander.invalidArgument" });
  });

  it("says that keys of a hosted service are made there", async () => {
    const service = {
      apiUrl: "https://a.example",
      dbUrl: "https://b.example",
      resourcesUrl: "https://c.example",
    };
    await writeFile(join(folder, "kbsync.config.json"), JSON.stringify({ service }));
    await expect(key("list")).rejects.toThrow("hosted service");
  });
});

describe("the key of the state folder", () => {
  const ownId = async (): Promise<string> =>
    (await keys()).find(
      (one: { name: string; state: string }) => one.name === "state folder" && one.state === "valid",
    )._id;

  it("the key of the state folder stays the same over restarts", async () => {
    const first = await serving((_url, own) => Promise.resolve(own));
    expect(await serving((_url, own) => Promise.resolve(own))).toBe(first);
    expect(await keys()).toHaveLength(1);
  });

  it("the key of the state folder is not revoked by itself, but can be rotated: the file has the new one", async () => {
    const old = await serving((_url, own) => Promise.resolve(own));
    await expect(key("revoke", await ownId())).rejects.toThrow("the state folder's own key");
    const id = await ownId();
    const { out, err } = await key("rotate", id);
    await key("revoke", id);
    expect(err).toContain(join(folder, "pauthkey"));
    expect(await readFile(join(folder, "pauthkey"), "utf8")).toBe(out);
    expect((await stat(join(folder, "pauthkey"))).mode & 0o777).toBe(0o600);
    await serving(async (url, own) => {
      expect(own).toBe(out.trim());
      expect([await statusOf(url, old), await statusOf(url, own)]).toEqual([401, 200]);
    });
  });

  it("the key of the state folder is replaced after it was revoked by API, and the revoked one stays refused", async () => {
    const old = await serving(async (url, own) => {
      const id = await ownId();
      const answer = await fetch(`${url}/v1/keys/${id}`, { method: "DELETE", headers: { pauthkey: own } });
      expect(answer.status).toBe(200);
      return own;
    });
    await serving(async (url, own) => {
      expect(own).not.toBe(old);
      expect([await statusOf(url, old), await statusOf(url, own)]).toEqual([401, 200]);
    });
  });
});
