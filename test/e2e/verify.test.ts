import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { kbsync, startUp, stop, statusOf, until } from "./program.ts";

let base: string;
let folder: string;
let stateDir: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "kbsync-verify-"));
  folder = join(base, "docs");
  stateDir = join(base, "state");
  mkdirSync(folder);
  writeFileSync(join(folder, "a.md"), "# Alpha\n\nsome text");
  writeFileSync(join(folder, "b.txt"), "other text");
  const config = {
    service: { port: 0 },
    stateDir,
    sources: [{ path: folder }],
  };
  writeFileSync(join(base, "kbsync.config.json"), JSON.stringify(config));
});
afterEach(() => {
  rmSync(base, { recursive: true, force: true });
});

const run = (...args: string[]): ReturnType<typeof kbsync> => kbsync(args, { cwd: base });

describe("verify", () => {
  it("compares with the service, with no daemon running and beside one", async () => {
    expect((await run("sync")).code).toBe(0);
    const alone = await run("verify");
    expect(alone).toMatchObject({ code: 0, stderr: "" });
    expect(alone.stdout).toContain("all agree");

    const up = await startUp(["up", "-c", join(base, "kbsync.config.json")], stateDir, base);
    try {
      await until("agreement", async () =>
        (await statusOf(folder, stateDir)).searchable === 2 ? true : undefined,
      );
      const beside = await run("verify", "--repair", "--json");
      expect(JSON.parse(beside.stdout)).toMatchObject({ agrees: true, left: 0, sources: [{ resources: 2 }] });
      expect(await run("sync", "--recover")).toMatchObject({
        code: 75,
        stderr: expect.stringContaining("another kbsync") as string,
      });
    } finally {
      await stop(up);
    }
    writeFileSync(join(folder, "b.txt"), "changed");
    const differs = await run("verify");
    expect(differs.code).toBe(1);
    expect(differs.stdout).toContain("1 of 2 files searchable, 1 waiting");
  });
});

describe("sync --recover", () => {
  it("keeps a damaged ledger and goes on with what the service holds", async () => {
    expect((await run("sync")).code).toBe(0);
    writeFileSync(join(stateDir, "ledger.db"), "no ledger");
    const refused = await run("sync");
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("kbsync sync --recover") as string,
    });
    const recovered = await run("sync", "--recover");
    expect(recovered.code).toBe(0);
    expect(recovered.stdout).toContain("nothing to send");
    expect(readdirSync(stateDir).some((name) => name.startsWith("ledger.db.set-aside-"))).toBe(true);
    expect(existsSync(join(stateDir, "ledger.db"))).toBe(true);
    expect((await run("sync")).stdout).toContain("nothing to send");
  });
});
