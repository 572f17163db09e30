import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

/** Top of the repository, with a slash at its end. */
export const REPOSITORY = fileURLToPath(new URL("..", import.meta.url));

const Packed = z.array(z.object({ filename: z.string() })).length(1);
const Lock = z.object({
  packages: z.record(z.string(), z.object({ dev: z.boolean().optional(), link: z.boolean().optional() })),
});

/**
 * Packs the repository as `npm pack` does, built again, into a folder; returns the file. Where KBSYNC_PACKED names a package of
 * this state of the repository, copies that: a build takes its time, and exchanges files below programs that run from `dist`.
 */
export function pack(folder: string): string {
  const made = process.env["KBSYNC_PACKED"];
  if (made !== undefined) {
    const copy = join(folder, basename(made));
    copyFileSync(made, copy);
    return copy;
  }
  const output = execFileSync("npm", ["pack", "--json", "--loglevel=error", "--pack-destination", folder], {
    cwd: REPOSITORY,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  // Before the list comes what the scripts of the package say.
  const [packed] = Packed.parse(JSON.parse(output.slice(output.search(/^\[\s*$/m))));
  return join(folder, packed?.filename ?? "");
}

/**
 * Lays the program out in a new folder as it is installed: what the package holds, and the packages that it runs with, in
 * the versions of the lock file and for this machine alone. Nothing is fetched: `npm ci` has done that.
 */
export function layOut(target: string): void {
  const scratch = mkdtempSync(join(tmpdir(), "kbsync-pack-"));
  try {
    mkdirSync(target, { recursive: true });
    execFileSync("tar", ["-xzf", pack(scratch), "--strip-components=1", "--no-same-owner", "-C", target]);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  const { packages } = Lock.parse(JSON.parse(readFileSync(join(REPOSITORY, "package-lock.json"), "utf8")));
  for (const [path, { dev, link }] of Object.entries(packages)) {
    if (path === "" || dev === true || link === true || isDeadWeight(path)) continue;
    const from = join(REPOSITORY, path);
    // The lock file names the binaries for every machine; what is for others was not installed.
    if (!existsSync(from)) continue;
    cpSync(from, join(target, path), {
      recursive: true,
      // Packages inside of it have entries of their own.
      filter: (source) =>
        source !== join(from, "node_modules") && !isDeadWeight(source.slice(REPOSITORY.length)),
    });
  }
}

/** Bytes of everything below a folder. */
export function sizeOf(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

const HERE = `${process.platform}/${process.arch}`;
const PREBUILT = `${process.platform}-${process.arch}.node`;

const DEAD_WEIGHT: readonly RegExp[] = [
  // The engines of text recognition with their code as text, for browsers. Here it is read from a file beside each.
  /^node_modules\/tesseract\.js-core\/.*\.wasm\.js$/,
  // The smaller engines, which tesseract.js 7 never takes in Node.js whatever it is asked for.
  /^node_modules\/tesseract\.js-core\/.*-lstm\.(?:js|wasm)$/,
  // Node.js has relaxed SIMD on every machine where it has SIMD.
  /^node_modules\/tesseract\.js-core\/tesseract-core-simd\.(?:js|wasm)$/,
  // PDF.js comes with unpdf, and pages are drawn by PDFium.
  /^node_modules\/@napi-rs(?:\/|$)/,
  // PDFium for browsers, for workers of browsers and for `require`.
  /^node_modules\/@hyzyla\/pdfium\/dist\/(?:index\.esm\.(?:base64|browser|cdn|worker)\.js|index\.cjs|worker\.bundle\.js|pdfium\.wasm\.base64.*)$/,
  // What bundlers take of the client of buckets; Node.js takes `dist-cjs`.
  /^node_modules\/@(?:aws|aws-sdk|smithy)\/.*\/dist-(?:es|types)(?:\/|$)/,
  // Sources and compilers' notes for people who debug packages: Node.js runs no TypeScript below node_modules.
  /\.map$/,
  /^node_modules\/.*\.[mc]?ts$/,
  // What packages carry for browsers, for other C libraries, and of their own tests and history.
  /^node_modules\/mammoth\/mammoth\.browser/,
  /^node_modules\/zlibjs\/bin\/(?!node-zlib\.js$)/,
  /^node_modules\/@koromix\/koffi-linux-[^/]+\/musl_/,
  /(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/@][^/]*\/(?:tests?|bench(?:marks?)?|examples?)$/,
  /^node_modules\/.*\/(?:docs|examples?|benchmarks?)\/.*\.(?:md|gif|png|jpe?g|svg)$/i,
  // What people read of packages; licences are passed on, which some packages have in their README alone.
  /^node_modules\/(?:.*\/)?(?!(?:licen[cs]e|notice|copying|readme)[^/]*$)[^/]*\.(?:md|markdown)$/i,
  // Sources in C and C++, from which binaries were built.
  /^node_modules\/.*\.(?:c|cc|cpp|cxx|h|hh|hpp|gypi?)$/,
];

/** Whether a path of the repository is never read by the program on this machine; together they are half of what npm installs. */
export function isDeadWeight(path: string): boolean {
  if (DEAD_WEIGHT.some((pattern) => pattern.test(path))) return true;
  // The sources of SQLite, for machines that no binary was built for.
  if (/^node_modules\/better-sqlite3\/(?:deps|src)(?:\/|$)/.test(path)) return true;
  if (isForeignRuntime(path)) return true;
  const prebuilt = /^node_modules\/better-sqlite3\/prebuilds\/([^/]+)$/.exec(path)?.[1];
  return prebuilt !== undefined && prebuilt !== PREBUILT;
}

/** Whether a path of the repository is a binary of the model runtime for another system or processor. */
export function isForeignRuntime(path: string): boolean {
  const machine = /^node_modules\/onnxruntime-node\/bin\/napi-v\d+\/([^/]+\/[^/]+)/.exec(path)?.[1];
  return machine !== undefined && machine !== HERE;
}
