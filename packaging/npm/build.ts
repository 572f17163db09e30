// Builds an npm package for machines like this one, with all that the program needs in it: `npm run package:npm`. It is installed
// without a registry and without scripts, and holds no binaries of other systems, which are over half of what `npm pack` leads to.
// It needs what `npm ci` installed, and fetches nothing.
import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { layOut, REPOSITORY } from "../program.ts";

const { values } = parseArgs({
  options: {
    out: { type: "string", default: REPOSITORY },
    /** How hard it is packed, 1 to 9. */
    level: { type: "string", default: "6" },
  },
});

const Manifest = z.looseObject({
  version: z.string().optional(),
  scripts: z.unknown().optional(),
  optionalDependencies: z.record(z.string(), z.string()).optional(),
});

const scratch = mkdtempSync(join(tmpdir(), "kbsync-npm-"));
try {
  const tree = join(scratch, "package");
  layOut(tree);
  for (const path of globSync("node_modules/**/package.json", { cwd: tree }))
    complete(join(tree, path), tree);
  process.stdout.write(`${pack(tree)}\n`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

/** Takes out of a package's manifest what npm would run or fetch: every binary is here, and those for other systems are not. */
function complete(file: string, tree: string): void {
  const text = readFileSync(file, "utf8");
  const { scripts, optionalDependencies, ...rest } = Manifest.parse(JSON.parse(text));
  if (scripts === undefined && optionalDependencies === undefined) return;
  const optional = Object.entries(optionalDependencies ?? {}).filter(
    ([name]) =>
      existsSync(join(dirname(file), "node_modules", name)) || existsSync(join(tree, "node_modules", name)),
  );
  writeFileSync(file, JSON.stringify({ ...rest, optionalDependencies: Object.fromEntries(optional) }));
}

/** Packs the tree with every package in it as bundled, for this platform alone; returns the file. */
function pack(tree: string): string {
  const file = join(tree, "package.json");
  const {
    scripts: _scripts,
    devDependencies: _development,
    overrides: _overrides,
    allowScripts: _allowed,
    ...manifest
  } = Manifest.parse(JSON.parse(readFileSync(file, "utf8")));
  const { platform, arch } = process;
  const bundled = readdirSync(join(tree, "node_modules")).flatMap((name) =>
    name.startsWith("@")
      ? readdirSync(join(tree, "node_modules", name)).map((each) => `${name}/${each}`)
      : [name],
  );
  // The binaries are linked to the C library of most Linux distributions; Alpine has another one.
  const machine = { os: [platform], cpu: [arch], ...(platform === "linux" && { libc: ["glibc"] }) };
  writeFileSync(
    file,
    `${JSON.stringify({ ...manifest, ...machine, bundleDependencies: bundled }, undefined, 2)}\n`,
  );
  const target = join(values.out, `kbsync-${manifest.version}-${platform}-${arch}.tgz`);
  execFileSync("tar", ["-I", `gzip -${values.level}`, "-cf", target, "-C", dirname(tree), "package"]);
  return target;
}
