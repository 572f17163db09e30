import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Ended, kbsync, startProgram, stop, temporaryFolder, until } from "./program.ts";

const temporary = temporaryFolder("folders");
const config = join(temporary.path, "kbsync.config.json");
const folder = (name: string): string => join(temporary.path, name);
const run = async (...args: string[]): Promise<Ended> => kbsync([...args, "--config", config]);
const folders = async (): Promise<unknown> => {
  const { sources, removed } = JSON.parse((await run("list", "--json")).stdout) as Record<string, unknown>;
  return { sources, removed };
};
const agreed = (name: string, tier = "fastest") => ({ path: folder(name), tier, files: 1, inAgreement: 1 });

beforeAll(() => {
  for (const name of ["one", "two", "three"]) {
    mkdirSync(folder(name));
    writeFileSync(join(folder(name), `${name}.md`), `# ${name}\n\nof ${name}\n`);
  }
  writeFileSync(
    config,
    `{\n  // mine\n  "stateDir": "state",\n  "service": { "embedded": true, "port": 0 },\n  "sources": [{ "path": "one" }]\n}\n`,
  );
});
afterAll(() => temporary.remove());

describe("folders of the configuration", () => {
  it("are added to a running daemon, which syncs them at once", async () => {
    const running = startProgram(["up", "--config", config], temporary.path);
    try {
      await until("the first pass", () => running.output.stdout.includes("in agreement"));
      const added = await run("add", folder("two"), folder("three"), "--owner", "team");
      expect(added).toMatchObject({ code: 0, stderr: "" });
      expect(added.stdout).toContain("the running daemon syncs it now");
      expect(await run("wait")).toMatchObject({ code: 0 });
      expect(await folders()).toMatchObject({
        sources: [agreed("one"), { ...agreed("two"), ownerId: "team" }, agreed("three")],
        removed: [],
      });
      expect((await run("add", folder("two"))).stdout).toContain("already");
      expect(readFileSync(config, "utf8")).toContain("// mine");

      const refused = await run("remove", folder("two"));
      expect(refused).toMatchObject({ code: 2 });
      expect(refused.stderr).toContain(`this deletes 1 document of ${folder("two")}`);
      expect((await run("remove", folder("two"), "--keep-documents")).stdout).toContain(
        "no longer synced; its 1 document is still searchable",
      );
      expect(await folders()).toMatchObject({ removed: [{ path: folder("two"), resources: 1 }] });
      expect(await run("remove", folder("two"), "--yes")).toMatchObject({ code: 0 });
      await until("the delete", async () => {
        const { stdout } = await run("list", "--json");
        return (JSON.parse(stdout) as { removed: unknown[] }).removed.length === 0;
      });
      expect(existsSync(join(folder("two"), "two.md"))).toBe(true);
    } finally {
      await stop(running);
    }
  });

  it("are added and removed without a daemon, and the next pass follows", async () => {
    expect((await run("add", folder("two"))).stdout).toContain("no daemon took it now");
    expect((await run("remove", folder("three"), "--yes")).stdout).toContain("deletes 1 document");
    expect(await run("sync")).toMatchObject({ code: 0 });
    expect(await folders()).toMatchObject({ sources: [agreed("one"), agreed("two")], removed: [] });
    expect(await run("remove", "/nowhere")).toMatchObject({ code: 2 });
    expect(await run("add", "/nowhere")).toMatchObject({ code: 2 });
    expect(await kbsync(["add", folder("one")], { cwd: folder("one") })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("kbsync init") as string,
    });
  });
});
