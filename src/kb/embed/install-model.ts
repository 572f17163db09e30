import { createHash, type Hash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { mkdir, open, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import type { ModelDownload } from "./known-models.ts";
import { openLocalEmbedder } from "./local.ts";
import { LENGTH_FILE, readModelFolder, WEIGHTS } from "./model-files.ts";
import type { Checksum, ModelSource, SourceFile } from "./model-source.ts";
import { PROMPTS_FILE } from "./prompts.ts";

const NEEDED = ["config.json", "tokenizer.json", "tokenizer_config.json"];
const OPTIONAL = [LENGTH_FILE, PROMPTS_FILE];
/** Largest accepted file. The weights of these models take up to 470 MB. */
const FILE_BYTES_MAX = 1024 * 1024 * 1024;

/** Every path that a model may have, for a source that cannot list its files. */
export const MODEL_PATHS: readonly string[] = [
  ...NEEDED,
  ...OPTIONAL,
  ...WEIGHTS.flatMap(({ weightsFile }) => [weightsFile, `${weightsFile}_data`]),
];

/** Bytes of all files that have arrived; `totalBytes` is undefined if the source does not say. */
export interface InstallProgress {
  readonly doneBytes: number;
  readonly totalBytes: number | undefined;
}

/**
 * Copies a model from its source into `folder`, and tries it. Every file is checked before it is used, and the folder appears
 * when the model has turned a text into a vector, so that an interrupted or spoilt copy is never used. A repetition goes on with
 * the files that are whole. Throws `model_download` if the source does not have what it takes, and `model_unusable` if the model
 * does not run here or gives vectors of other than `dimensions`.
 */
export async function installModel(
  download: ModelDownload,
  source: ModelSource,
  folder: string,
  dimensions: number,
  onProgress: (progress: InstallProgress) => void,
): Promise<void> {
  const paths = pathsOf(download, source);
  const part = `${folder}.part`;
  const sizes = paths.map((path) => source.files.get(path)?.sizeBytes);
  const totalBytes = sizes.reduce(
    (sum, size) => (sum === undefined || size === undefined ? undefined : sum + size),
    0 as number | undefined,
  );
  // Removes the files of an earlier copy with other weights.
  for (const path of MODEL_PATHS) if (!paths.includes(path)) await rm(join(part, path), { force: true });
  let doneBytes = 0;
  for (const path of paths) {
    const file = source.files.get(path) ?? {};
    const count = (bytes: number): void => onProgress({ doneBytes: (doneBytes += bytes), totalBytes });
    if (await isWhole(join(part, path), file)) {
      count(file.sizeBytes ?? 0);
      continue;
    }
    await copyFile(source, path, file, join(part, path), count);
  }
  await writeCard(part, download);
  await tryModel(part, dimensions, source.origin);
  await rm(folder, { recursive: true, force: true });
  await rename(part, folder);
}

/** Returns the paths to copy: what every model needs, what the source has of the rest, and one file of weights. */
function pathsOf({ weightsFile }: ModelDownload, { files, origin }: ModelSource): readonly string[] {
  const missing = NEEDED.find((path) => !files.has(path));
  if (missing !== undefined) throw unavailable(origin, `it has no ${missing}`);
  const weights = [weightsFile, ...WEIGHTS.map((each) => each.weightsFile)].find((path) => files.has(path));
  if (weights === undefined) throw unavailable(origin, `it has no ${weightsFile}`);
  return [...NEEDED, ...[...OPTIONAL, weights, `${weights}_data`].filter((path) => files.has(path))];
}

function unavailable(origin: string, problem: string, cause?: unknown): KbsyncError {
  return new KbsyncError(`cannot get the model from ${origin}: ${problem}`, {
    code: "model_download",
    subject: origin,
    retryable: true,
    cause,
  });
}

/** Whether a file from an interrupted run is there and has its checksum. */
async function isWhole(path: string, { checksum, sizeBytes }: SourceFile): Promise<boolean> {
  if (checksum === undefined || !existsSync(path)) return false;
  const hash = digest(checksum, sizeBytes ?? (await stat(path)).size);
  for await (const bytes of createReadStream(path)) hash.update(bytes as Uint8Array); // a stream without encoding
  return hash.digest("hex") === checksum.hex;
}

async function copyFile(
  source: ModelSource,
  path: string,
  { checksum, sizeBytes }: SourceFile,
  target: string,
  onBytes: (bytes: number) => void,
): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  const partPath = `${target}.${process.pid}`;
  const max = Math.min(sizeBytes ?? FILE_BYTES_MAX, FILE_BYTES_MAX);
  try {
    const hash = digest(checksum ?? { kind: "sha256" }, sizeBytes ?? 0);
    let copiedBytes = 0;
    {
      await using part = await open(partPath, "w");
      for await (const bytes of await source.read(path)) {
        copiedBytes += bytes.byteLength;
        if (copiedBytes > max) throw new Error(`it is larger than ${max} bytes`);
        hash.update(bytes);
        await part.writeFile(bytes);
        onBytes(bytes.byteLength);
      }
      await part.sync();
    }
    if (sizeBytes !== undefined && copiedBytes !== sizeBytes)
      throw new Error(`it has ${copiedBytes} bytes, expected ${sizeBytes}`);
    const actual = hash.digest("hex");
    if (checksum !== undefined && actual !== checksum.hex)
      throw new Error(`it has the checksum ${actual}, expected ${checksum.hex}`);
    await rename(partPath, target);
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOSPC") throw cause;
    throw unavailable(source.origin, `${path}: ${causeOf(cause)}`, cause);
  } finally {
    await rm(partPath, { force: true });
  }
}

/** The innermost message: `fetch` alone says "fetch failed". */
export function causeOf(error: unknown): string {
  return error instanceof Error && error.cause !== undefined ? causeOf(error.cause) : messageOf(error);
}

function digest({ kind }: Pick<Checksum, "kind">, sizeBytes: number): Hash {
  // Git hashes a header before the content.
  return kind === "sha256" ? createHash("sha256") : createHash("sha1").update(`blob ${sizeBytes}\0`);
}

/** Writes what the model's card says into the files that are read for it, unless the source has them. */
async function writeCard(folder: string, { tokensMax, prompts }: ModelDownload): Promise<void> {
  const cards: readonly (readonly [file: string, content: object | undefined])[] = [
    [LENGTH_FILE, { max_seq_length: tokensMax }],
    [PROMPTS_FILE, prompts && { prompts: { query: prompts.query, document: prompts.passage } }],
  ];
  for (const [file, content] of cards) {
    const path = join(folder, file);
    if (content === undefined || existsSync(path)) continue;
    await writeFile(path, `${JSON.stringify(content, undefined, 2)}\n`);
  }
}

/** Turns a text into a vector. */
async function tryModel(folder: string, dimensions: number, origin: string): Promise<void> {
  const unusable = (problem: string, cause?: unknown): KbsyncError =>
    new KbsyncError(`the model from ${origin} does not work here: ${problem}`, {
      code: "model_unusable",
      subject: origin,
      hint: "Nothing was changed. The folder needs an ONNX model that pools by the mean, with its tokenizer.json.",
      cause,
    });
  const found = await readModelFolder(folder, false);
  if (!("folder" in found)) throw unusable(found.problem);
  if (found.dimensions !== dimensions)
    throw unusable(`it has ${found.dimensions} dimensions, expected ${dimensions}`);
  const embedder = await openLocalEmbedder({ modelDir: folder, threads: 1 });
  if (embedder.kind === "no-model") throw unusable(embedder.reason);
  try {
    const [vector] = await embedder.queries.embed(["Ein Satz, den jedes Modell lesen kann."]);
    if (vector?.every(Number.isFinite) !== true) throw unusable("its vectors hold no numbers");
  } catch (error) {
    throw error instanceof KbsyncError && error.code === "model_unusable"
      ? error
      : unusable(causeOf(error), error);
  } finally {
    await embedder.close();
  }
}
