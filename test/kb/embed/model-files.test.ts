import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KNOWN_FILES, readModelFolder } from "../../../src/kb/embed/model-files.ts";

let folder: string;
beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), "kbsync-model-")), "my-model");
});
afterEach(() => rm(dirname(folder), { recursive: true }));

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const CONFIG = JSON.stringify({ hidden_size: 384, max_position_embeddings: 512 });
const MODEL = { "config.json": CONFIG, "tokenizer.json": "{}", "onnx/model.onnx": "graph" };

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
}

describe("a configured model folder", () => {
  it("a configured model folder is named like its folder, and known by the digests of its weights", async () => {
    await write(MODEL);
    expect(await readModelFolder(folder, false)).toEqual({
      folder,
      name: "my-model",
      dtype: "fp32",
      weightsFile: "onnx/model.onnx",
      weightsSha256: sha256(`${sha256("graph")} `),
      dimensions: 384,
      tokensMax: 256,
    });
    await write({ "onnx/model.onnx_data": "data" });
    const weightsSha256 = sha256(`${sha256("graph")} ${sha256("data")}`);
    expect(await readModelFolder(folder, false)).toMatchObject({ weightsSha256 });
  });

  it("a configured model folder is used with its smallest weights", async () => {
    await write(MODEL);
    await write({ "onnx/model_quantized.onnx": "q8" });
    expect(await readModelFolder(folder, false)).toMatchObject({
      dtype: "q8",
      weightsFile: "onnx/model_quantized.onnx",
    });
    await write({ "onnx/model_q4.onnx": "q4" });
    expect(await readModelFolder(folder, false)).toMatchObject({
      dtype: "q4",
      weightsFile: "onnx/model_q4.onnx",
    });
  });

  it("takes as many tokens as it was trained with, and no more than it has positions for", async () => {
    const tokens = async (trained: number): Promise<unknown> => {
      await write({ ...MODEL, "sentence_bert_config.json": JSON.stringify({ max_seq_length: trained }) });
      const read = await readModelFolder(folder, false);
      return "tokensMax" in read ? read.tokensMax : read.problem;
    };
    expect([await tokens(128), await tokens(512), await tokens(513)]).toEqual([128, 512, 512]);
  });

  it.each([
    [
      "no folder",
      {},
      "no weights: expected one of onnx/model_q4.onnx, onnx/model_quantized.onnx, onnx/model.onnx",
    ],
    [
      "no weights but their data",
      { ...MODEL, "onnx/model.onnx": undefined, "onnx/model.onnx_data": "d" },
      "no weights",
    ],
    ["no tokenizer", { ...MODEL, "tokenizer.json": undefined }, "tokenizer.json is missing"],
    ["no configuration", { ...MODEL, "config.json": undefined }, "config.json is missing"],
    ["a broken configuration", { ...MODEL, "config.json": "{" }, "JSON"],
    ["a configuration of something else", { ...MODEL, "config.json": '{"hidden_size":0}' }, "hidden_size"],
    ["a broken limit of tokens", { ...MODEL, "sentence_bert_config.json": "{}" }, "max_seq_length"],
  ])("a configured model folder that has %s is named with what is wrong", async (_name, files, problem) => {
    const present = Object.entries(files).flatMap(([name, text]) =>
      text === undefined ? [] : [[name, text]],
    );
    await write(Object.fromEntries(present));
    expect(await readModelFolder(folder, false)).toEqual({
      location: folder,
      problem: expect.stringContaining(problem),
    });
  });
});

describe("a folder of the known model", () => {
  it("a folder of the known model is refused at the first file that differs from the verified one", async () => {
    await write(Object.fromEntries([...KNOWN_FILES.keys()].map((name) => [name, "x"])));
    expect(await readModelFolder(folder, true)).toMatchObject({
      problem: `config.json has SHA-256 ${sha256("x")}, expected ${KNOWN_FILES.get("config.json")}`,
    });
  });

  it("a folder of the known model is refused if a file is missing", async () => {
    expect(await readModelFolder(folder, true)).toEqual({
      location: folder,
      problem: "config.json is missing",
    });
  });
});
