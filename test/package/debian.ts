import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { REPOSITORY } from "../../packaging/program.ts";

/** Why no Debian package can be built here, in words; undefined: one can. */
export function whyNoPackage(): string | undefined {
  return spawnSync("dpkg-deb", ["--version"]).error === undefined ? undefined : "there is no dpkg-deb";
}

/** What Node.js is called with to build a package of each revision into a folder; it prints their files last. */
export function buildArguments(folder: string, ...revisions: readonly string[]): string[] {
  const script = join(REPOSITORY, "packaging/debian/build.ts");
  return ["--no-warnings", script, "--out", folder, ...revisions.flatMap((one) => ["--revision", one])];
}

/** Builds a package of each revision into a folder; returns the files. */
export function buildPackages(folder: string, ...revisions: readonly string[]): readonly string[] {
  const args = buildArguments(folder, ...revisions);
  const output = execFileSync(process.execPath, args, { cwd: REPOSITORY, encoding: "utf8" });
  return output.trim().split("\n").slice(-revisions.length);
}
