import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LiveStatus } from "../../src/wire/daemon-status.ts";
import {
  agreed as agreedIn,
  type Ended,
  kbsync,
  send,
  startProgram,
  startUp,
  stop,
  temporaryFolder,
  until,
} from "./program.ts";

const temporary = temporaryFolder("folders");
const config = join(temporary.path, "kbsync.config.json");
const folder = (name: string): string => join(temporary.path, name);
const run = async (...args: string[]): Promise<Ended> => kbsync([...args, "--config", config]);
const folders = async (): Promise<unknown> => {
  const { sources, removed } = JSON.parse((await run("status", "--json")).stdout) as Record<string, unknown>;
  return { sources, removed };
};
const agreed = (name: string, tier = "fastest") => ({ path: folder(name), tier, files: 1, searchable: 1 });

beforeAll(() => {
  for (const name of ["one", "two", "three"]) {
    mkdirSync(folder(name));
    writeFileSync(join(folder(name), `${name}.md`), `# ${name}\n\nof ${name}\n`);
  }
  writeFileSync(
    config,
    `{\n  // mine\n  "stateDir": "state",\n  "service": { "port": 0 },\n  "sources": [{ "path": "one" }]\n}\n`,
  );
});
afterAll(() => temporary.remove());

describe("folders of the configuration", () => {
  it("folders of the configuration are added to a running daemon, which syncs them at once", async () => {
    const running = startProgram(["up", "--config", config], temporary.path);
    try {
      await until("the first pass", () => running.output.stdout.includes(" searchable, "));
      const added = await run("add", folder("two"), folder("three"), "--owner", "team");
      expect(added).toMatchObject({ code: 0, stderr: "" });
      expect(added.stdout).toContain("the running daemon is syncing it");
      expect(await run("wait")).toMatchObject({ code: 0 });
      expect(await folders()).toMatchObject({
        sources: [agreed("one"), { ...agreed("two"), ownerId: "team" }, agreed("three")],
        removed: [],
      });
      expect((await run("add", folder("two"))).stdout).toContain("already");

      // A copy that two folders have is found in each.
      const copies = ["two", "three"].map((name) => join(folder(name), "copy.md"));
      for (const copy of copies) writeFileSync(copy, "The harbour master rings the bell twice in fog.\n");
      expect(await run("wait")).toMatchObject({ code: 0 });
      for (const [at, name] of ["two", "three"].entries()) {
        const ofOne = await run("search", "harbour master", "--files", "--source", folder(name));
        expect(ofOne.stdout).toBe(`${copies[at]}\n`);
      }
      for (const copy of copies) rmSync(copy);
      expect(await run("wait")).toMatchObject({ code: 0 });
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
        const { stdout } = await run("status", "--json");
        return (JSON.parse(stdout) as { removed: unknown[] }).removed.length === 0;
      });
      expect(existsSync(join(folder("two"), "two.md"))).toBe(true);
    } finally {
      await stop(running);
    }
  });

  it("folders of the configuration are added and removed without a daemon, and the next pass follows", async () => {
    expect((await run("add", folder("two"))).stdout).toContain("no running daemon syncs it");
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

  it("a folder inside another one is removed without a question, and its documents go to that one's owner", async () => {
    const inner = join(folder("two"), "inner");
    mkdirSync(inner);
    writeFileSync(join(inner, "inner.md"), "of the inner one");
    expect(await run("add", inner, "--owner", "team")).toMatchObject({ code: 0 });
    expect(await run("sync")).toMatchObject({ code: 0 });
    expect((await run("remove", inner)).stdout).toMatch(
      /belong to .*two now, and its 1 document to owner two/,
    );
    expect(await run("sync")).toMatchObject({ code: 0 });
    expect(await folders()).toMatchObject({ sources: [agreed("one"), { files: 2 }], removed: [] });
    rmSync(inner, { recursive: true });
    expect(await run("sync")).toMatchObject({ code: 0 });
  });

  it("folders of the configuration are previewed, added and removed over the service's API, down to none, which a new start accepts", async () => {
    const state = join(temporary.path, "state");
    await run("remove", folder("two"), "--yes");
    expect(await run("sync")).toMatchObject({ code: 0 });
    const before = readFileSync(config, "utf8");
    let running = await startUp(["up", "--config", config], state, temporary.path);
    const post = async (name: string, body: object): Promise<Record<string, unknown>> => {
      const { status, json } = await send(running, "POST", `/v1/daemon/${name}`, {
        body: JSON.stringify(body),
      });
      return { status, ...(json as object) };
    };
    const status = async (): Promise<LiveStatus> => {
      const { json } = await until("a daemon", async () => {
        const answer = await send(running, "GET", "/v1/daemon/status");
        return answer.status === 200 && answer;
      });
      return json as LiveStatus; // checked by `send`
    };
    try {
      await agreedIn(folder("one"), state, 1);
      expect(await post("add", { path: folder("two"), dryRun: true })).toMatchObject({
        file: config,
        obstacle: null,
        preview: { files: 1, documents: 0 },
      });
      expect(await post("add", { path: "two" })).toMatchObject({ status: 400 });
      expect(await post("add", { path: folder("one") })).toMatchObject({
        status: 409,
        error: { code: "source_known" },
      });
      expect(readFileSync(config, "utf8")).toBe(before);
      expect(await post("add", { path: folder("two"), ownerId: "team" })).toMatchObject({
        status: 200,
        file: config,
      });
      await agreedIn(folder("two"), state, 1);

      const one = { folder: folder("one") };
      expect(await post("remove", { ...one, documents: "delete", dryRun: true })).toMatchObject({
        documents: 1,
      });
      expect(await post("remove", { ...one, documents: "delete" })).toMatchObject({
        status: 200,
        documents: 1,
      });
      await until("the delete", async () => (await status()).removed.length === 0);
      expect((await status()).sources.map(({ path }) => path)).toEqual([folder("two")]);
      expect(await post("remove", { folder: folder("two"), documents: "keep" })).toMatchObject({
        status: 200,
      });
      expect(
        await until("the rest", async () => (await status()).sources.length === 0 && status()),
      ).toMatchObject({
        removed: [{ path: folder("two"), resources: 1, approved: false }],
      });
      expect(existsSync(join(folder("one"), "one.md"))).toBe(true);

      expect(await stop(running)).toBe(0);
      running = await startUp(["up", "--config", config], state, temporary.path);
      const { output } = running;
      await until("its first lines", () => output.stdout.includes("nothing yet") || undefined);
      await status();
      expect(await post("add", { path: folder("two"), dryRun: true })).toMatchObject({
        preview: { documents: 1 },
      });
      expect(await post("add", { path: folder("two"), ownerId: "team" })).toMatchObject({ status: 200 });
      expect((await agreedIn(folder("two"), state, 1)).files).toBe(1);
    } finally {
      await stop(running);
    }
  });
});
