import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REPOSITORY } from "../../packaging/program.ts";

/** The publisher's own checker, with the published schema of the manifest. */
const CHECKER = "@anthropic-ai/mcpb@2.1.2";

const folder = mkdtempSync(join(tmpdir(), "kbsync-mcpb-"));
const unpacked = join(folder, "unpacked");
let file = "";
const checker = (...args: string[]) =>
  spawnSync(join(folder, "node_modules/.bin/mcpb"), args, { cwd: folder, encoding: "utf8" });

beforeAll(() => {
  execFileSync("npm", [
    "install",
    "--prefix",
    folder,
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    CHECKER,
  ]);
  const build = join(REPOSITORY, "packaging/mcpb/build.ts");
  file = execFileSync(process.execPath, ["--no-warnings", build, "--out", folder], {
    encoding: "utf8",
  }).trim();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the MCP bundle", () => {
  it("the MCP bundle can be unpacked, and has a manifest of the published schema", () => {
    expect(checker("unpack", file, unpacked)).toMatchObject({ status: 0 });
    const { status, stdout } = checker("validate", join(unpacked, "manifest.json"));
    expect([status, stdout]).toEqual([0, expect.stringContaining("schema validation passes")]);
  });

  it("starts the kbsync that is installed, or says that there is none", () => {
    const home = join(folder, "home");
    const start = (): { status: number | null; stdout: string; stderr: string } =>
      spawnSync("/bin/sh", [join(unpacked, "server/start.sh")], {
        encoding: "utf8",
        env: { HOME: home, PATH: join(folder, "nothing") },
      });
    expect(start()).toMatchObject({ status: 127, stderr: expect.stringContaining("npm install") });
    mkdirSync(join(home, ".local/bin"), { recursive: true });
    writeFileSync(join(home, ".local/bin/kbsync"), '#!/bin/sh\necho "started $*"\n', { mode: 0o755 });
    expect(start()).toMatchObject({ status: 0, stdout: "started mcp\n" });
  });
});
