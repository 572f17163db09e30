import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { repositoryRoot } from "../e2e/program.ts";

/** What came of building the packages: their files, or what went wrong. */
export interface BuiltPackages {
  readonly files: readonly string[];
  readonly problem?: string;
}

declare module "vitest" {
  interface ProvidedContext {
    /** File that holds `BuiltPackages` as soon as they are built; empty: they are not. */
    packages: string;
  }
}

/** Why no Debian package can be built here, in words; undefined: one can. */
export function whyNoPackage(): string | undefined {
  return spawnSync("dpkg-deb", ["--version"]).error === undefined ? undefined : "there is no dpkg-deb";
}

/**
 * Builds the packages beside the tests that need none: those wait most of the time, while packing takes a processor for
 * half a minute.
 */
export function setup(project: TestProject): (() => void) | undefined {
  project.provide("packages", "");
  if (whyNoPackage() !== undefined) return undefined;
  // Not below /tmp, in whose place the container has a folder of its own.
  const folder = mkdtempSync("/var/tmp/kbsync-debian-");
  const reported = join(folder, "built.json");
  project.provide("packages", reported);
  // At the lowest level: how small the package gets is of no concern here.
  const script = join(repositoryRoot, "packaging/debian/build.ts");
  const revisions = ["--revision", "1", "--revision", "2"];
  const args = ["--no-warnings", script, "--out", folder, ...revisions, "--level", "1"];
  const build = spawn(process.execPath, args, { cwd: repositoryRoot, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  build.stdout.on("data", (data: Buffer) => (output += data.toString()));
  build.stderr.on("data", (data: Buffer) => (errors += data.toString()));
  build.on("close", (code) => {
    const files = output.trim().split("\n").slice(-2);
    const built: BuiltPackages = code === 0 ? { files } : { files: [], problem: `${code}: ${errors}` };
    if (code === null) return; // The tests are over.
    writeFileSync(`${reported}.new`, JSON.stringify(built));
    renameSync(`${reported}.new`, reported);
  });
  return () => {
    build.kill();
    rmSync(folder, { recursive: true, force: true });
  };
}
