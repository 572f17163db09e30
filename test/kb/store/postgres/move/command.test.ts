import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Client } from "pg";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { isSkipped, newDatabase } from "../databases.ts";
import { main, newSite, type Site } from "../program.ts";

// Each test runs the program several times.
describe.skipIf(isSkipped())("kbsync move", { timeout: 240_000 }, () => {
  let database = "";
  let site: Site;

  /** Writes the configuration, with a database or without. */
  const configure = (withDatabase: boolean): void => {
    const service = { embedded: true, port: 0, ...(withDatabase && { database }) };
    const config = { service, stateDir: site.stateDir, sources: [{ path: site.docs, ownerId: "tests" }] };
    writeFileSync(join(dirname(site.stateDir), "kbsync.config.json"), JSON.stringify(config));
  };
  const sync = async (): Promise<string> => {
    const { code, stdout, stderr } = await site.run("sync");
    expect(stderr).toBe("");
    expect(code).toBe(0);
    return stdout;
  };

  beforeEach(async () => {
    database = await newDatabase("template1");
    site = newSite(database);
    configure(false);
    for (let at = 0; at < 30; at++)
      writeFileSync(join(site.docs, `${at}.md`), `# Tide ${at}\n\nThe moon and ${at}.\n`);
  });
  afterEach(() => site.remove());

  it("copies to a database and back, after which nothing is sent again", async () => {
    expect(await sync()).toContain("30");
    const there = await site.run("move", "--to", database);
    expect(there).toMatchObject({ code: 0, stderr: "" });
    expect(there.stdout).toContain("30 documents");
    expect(there.stdout).toContain("service.database");

    configure(true);
    expect(await sync()).toMatch(/30 unchanged|nothing/);
    // The store of before is still there.
    const occupied = await site.run("move", "--from", database);
    expect(occupied).toMatchObject({ code: 2 });
    expect(occupied.stderr).toContain("there is a store");
    for (const file of globSync(`${site.stateDir}/service/kb.sqlite*`)) rmSync(file);
    writeFileSync(join(site.docs, "new.md"), "Ebb and flow.\n");
    await sync();

    expect(await site.run("move", "--from", database)).toMatchObject({ code: 0, stderr: "" });
    configure(false);
    expect(await sync()).toMatch(/31 unchanged|nothing/);
  });

  it("kbsync move goes on after it was killed; until then neither service starts", async () => {
    await sync();
    const args = ["move", "--to", database, "--config", join(dirname(site.stateDir), "kbsync.config.json")];
    const child = spawn(process.execPath, [main, ...args], { stdio: "ignore" });
    const client = new Client({ connectionString: database });
    await client.connect();
    await vi.waitFor(
      async () => {
        const { rows } = await client.query<{ found: string | null }>(
          "SELECT to_regclass('unfinished_move') AS found",
        );
        if (rows[0]?.found === null) throw new Error("not begun");
      },
      { timeout: 30_000, interval: 2 },
    );
    child.kill("SIGKILL");
    await once(child, "close");
    await client.end();

    configure(true);
    const refused = await site.run("serve");
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("unfinished copy");
    const { code, stdout } = await site.run("move", "--to", database, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ wasResumed: true, documents: 30 });
    expect(existsSync(join(site.stateDir, "service", "kb.sqlite"))).toBe(true);
  });

  it("kbsync move back goes on after it was killed, and leaves no store under its name before it is complete", async () => {
    await sync();
    expect(await site.run("move", "--to", database)).toMatchObject({ code: 0 });
    for (const file of globSync(`${site.stateDir}/service/kb.sqlite*`)) rmSync(file);
    const complete = join(site.stateDir, "service", "kb.sqlite");
    const args = ["move", "--from", database, "--config", join(dirname(site.stateDir), "kbsync.config.json")];
    const child = spawn(process.execPath, [main, ...args], { stdio: "ignore" });
    await vi.waitFor(
      () => {
        if (!existsSync(`${complete}.moving`)) throw new Error("not begun");
      },
      { timeout: 30_000, interval: 1 },
    );
    child.kill("SIGKILL");
    await once(child, "close");
    expect(existsSync(complete)).toBe(false);

    const { code, stdout } = await site.run("move", "--from", database, "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ documents: 30 });
    expect([existsSync(complete), existsSync(`${complete}.moving`)]).toEqual([true, false]);
    expect(await sync()).toMatch(/30 unchanged|nothing/);
  });

  it("refuses a store in use, wrong addresses and a state folder without a store", async () => {
    expect(await site.run("move")).toMatchObject({ code: 2 });
    expect(await site.run("move", "--to", "mysql://x/y")).toMatchObject({ code: 2 });
    expect(await site.run("move", "--to", database, "--from", database)).toMatchObject({ code: 2 });
    const nothing = await site.run("move", "--to", database);
    expect(nothing.code).toBe(2);
    expect(nothing.stderr).toContain("there is no store");
    const service = await site.start("serve");
    expect(await site.run("move", "--to", database)).toMatchObject({ code: 75 });
    await service.stop();
  });
});
