// Builds a Debian package of this repository, for this machine's architecture: `npm run package:deb`. It needs dpkg-deb,
// strip and what `npm ci` installed, and fetches nothing. With `--system-node` it brings no Node.js and depends on the machine's.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { z } from "zod";
import { layOut, REPOSITORY, sizeOf } from "../program.ts";

const { values } = parseArgs({
  options: {
    "system-node": { type: "boolean", default: false },
    /** Debian's own part of the version, for a package that is built again; given twice, it is built as both. */
    revision: { type: "string", multiple: true, default: ["1"] },
    out: { type: "string", default: REPOSITORY },
    /** How hard it is packed, 1 to 19. Six takes seconds: most of it is compiled code and a model. */
    level: { type: "string", default: "6" },
  },
});

/** Where the program lies once it is installed. */
const HOME = "/usr/lib/kbsync";
/** Where the units of an installation by npm find it; see systemd/kbsync.service. */
const NPM_SCRIPT = "/usr/lib/node_modules/kbsync/dist/main.js";
const NPM_START = `/usr/bin/node ${NPM_SCRIPT}`;
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

const own = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "kbsync-deb-"));
try {
  process.stdout.write(`${build(join(scratch, "tree")).join("\n")}\n`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

/** Builds the packages from a tree that it makes; returns the files. */
function build(tree: string): readonly string[] {
  const home = join(tree, HOME);
  layOut(home);
  const node = values["system-node"] ? "/usr/bin/node" : takeNode(home);
  const put = (path: string, content: string | Buffer, mode = 0o644): void => {
    const to = join(tree, path);
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, content, { mode });
    chmodSync(to, mode);
  };
  const start = `${node} ${HOME}/dist/main.js`;
  put("usr/bin/kbsync", `#!/bin/sh\nexec ${start} "$@"\n`, 0o755);
  for (const [unit, to] of [
    ["kbsync.service", "usr/lib/systemd/system/kbsync.service"],
    ["kbsync@.service", "usr/lib/systemd/system/kbsync@.service"],
    ["user/kbsync.service", "usr/lib/systemd/user/kbsync.service"],
  ] as const)
    put(to, unitFor(readFileSync(join(REPOSITORY, "systemd", unit), "utf8"), unit, start));
  put("usr/share/man/man1/kbsync.1.gz", zipped(readFileSync(join(REPOSITORY, "man/kbsync.1"))));
  const docs = "usr/share/doc/kbsync";
  const licence = readFileSync(join(REPOSITORY, "LICENSE"), "utf8")
    .split("\n\n")
    .slice(2)
    .join("\n\n")
    .trim();
  put(`${docs}/copyright`, readFileSync(own("copyright"), "utf8").trim() + indented(licence));
  put(`${docs}/changelog.gz`, zipped(readFileSync(join(REPOSITORY, "CHANGELOG.md"))));
  cpSync(join(REPOSITORY, "docs/ops"), join(tree, docs, "ops"), { recursive: true });
  put("etc/kbsync/kbsync.config.json", readFileSync(own("kbsync.config.json")));

  const size = Math.ceil(sizeOf(tree) / 1024);
  put("DEBIAN/conffiles", "/etc/kbsync/kbsync.config.json\n");
  for (const script of ["postinst", "prerm", "postrm"])
    put(`DEBIAN/${script}`, readFileSync(own(script)), 0o755);
  const { version, description } = z
    .object({ version: z.string(), description: z.string() })
    .parse(JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")));
  const architecture = ARCHITECTURES[process.arch];
  if (architecture === undefined) throw new Error(`no Debian package is made for ${process.arch}`);
  return values.revision.map((revision) => {
    const full = `${version}-${revision}`;
    put("DEBIAN/control", controlFile(full, architecture, size, description));
    // Whatever the umask of who builds it: everybody may read, nobody else write.
    execFileSync("chmod", ["-R", "u+rwX,go+rX,go-w", tree]);
    const file = join(values.out, `kbsync_${full}_${architecture}.deb`);
    const packing = ["--root-owner-group", "-Zzstd", `-z${values.level}`, "--build", tree, file];
    execFileSync("dpkg-deb", packing, { stdio: ["ignore", "ignore", "inherit"] });
    return file;
  });
}

/** Puts the Node.js that the project is tested with into the program's folder: no stable Debian has one that is new enough. */
function takeNode(home: string): string {
  mkdirSync(join(home, "bin"));
  cpSync(join(REPOSITORY, "node_modules/node/bin/node"), join(home, "bin/node"), { dereference: true });
  // Names for debuggers, which nothing reads at run time.
  execFileSync("strip", ["--strip-unneeded", join(home, "bin/node")]);
  return `${HOME}/bin/node`;
}

/** A unit with the place of this package's program in it. */
function unitFor(text: string, name: string, start: string): string {
  if (!text.includes(NPM_START)) throw new Error(`systemd/${name} does not start ${NPM_START}`);
  return text.replaceAll(NPM_START, start).replaceAll(NPM_SCRIPT, `${HOME}/dist/main.js`);
}

function zipped(content: Buffer): Buffer {
  return gzipSync(content, { level: 9 });
}

/** Paragraphs as a control file has them: indented, with a dot for an empty line. */
function indented(text: string): string {
  const lines = text.split("\n").map((line) => (line === "" ? " ." : ` ${line}`));
  return `\n${lines.join("\n")}\n`;
}

function controlFile(version: string, architecture: string, size: number, description: string): string {
  // What Node.js and the packages' binaries are linked to; libsystemd takes the program's messages to systemd.
  const linked = ["libc6 (>= 2.28)", "libstdc++6 (>= 8)", "libsystemd0"];
  const depends = [...linked, ...(values["system-node"] ? ["nodejs (>= 24)"] : [])];
  return `${[
    "Package: kbsync",
    `Version: ${version}`,
    `Architecture: ${architecture}`,
    "Maintainer: The kbsync authors <kbsync@localhost>",
    `Installed-Size: ${size}`,
    `Depends: ${depends.join(", ")}`,
    "Section: text",
    "Priority: optional",
    "Description: folder to knowledge base synchronisation",
    ` ${description}`,
  ].join("\n")}\n`;
}
