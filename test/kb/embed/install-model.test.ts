import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Agent } from "undici";
import { installModel, MODEL_PATHS } from "../../../src/kb/embed/install-model.ts";
import type { ModelDownload } from "../../../src/kb/embed/known-models.ts";
import { openFolder, openHub, openWebFolder } from "../../../src/kb/embed/model-source.ts";
import { readModelFolder } from "../../../src/kb/embed/model-files.ts";
import { writeTinyModel } from "./tiny-model.ts";

const HUB_ID = "models/tiny";
const REVISION = "0123456789abcdef0123456789abcdef01234567";
const WEIGHTS = "onnx/model_quantized.onnx";
const DOWNLOAD: ModelDownload = {
  hubId: HUB_ID,
  weightsFile: WEIGHTS,
  sizeMb: 1,
  tokensMax: 64,
  prompts: { query: "query: ", passage: "passage: " },
};

let folder: string;
let original: string;
let target: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-install-"));
  original = join(folder, "original");
  target = join(folder, "models/tiny");
  await writeTinyModel(original);
});
afterEach(() => rm(folder, { recursive: true }));

/** A hub, and a web server with the same files and a list of checksums. */
let server: Server;
let url = "";
const asked: string[] = [];
/** What is sent instead of a file. */
let spoilt: ReadonlyMap<string, Buffer> = new Map();
beforeAll(async () => {
  server = createServer((request, response) => {
    const path = (request.url ?? "").split("?")[0] ?? "";
    asked.push(path);
    void answer(path).then(
      (body) => response.end(body),
      () => response.writeHead(404).end(),
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // a port, as listened on above
});
afterAll(() => server.close());
const dispatcher = new Agent();
afterAll(() => dispatcher.close());
beforeEach(() => {
  asked.length = 0;
  spoilt = new Map();
});

async function answer(path: string): Promise<string | Buffer> {
  const files = (await readdir(original, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(original.length + 1));
  const contents = await Promise.all(files.map(async (file) => readFile(join(original, file))));
  const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
  if (path === `/api/${HUB_ID}` || path === `/api/models/${HUB_ID}/revision/main`) {
    const siblings = files.map((rfilename, at) => {
      const bytes = contents[at] ?? Buffer.alloc(0);
      const blobId = createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
      const lfs = rfilename.endsWith(".onnx") ? { lfs: { sha256: sha256(bytes), size: bytes.length } } : {};
      return { rfilename, size: bytes.length, blobId, ...lfs };
    });
    return JSON.stringify({ sha: REVISION, siblings });
  }
  if (path === "/web/SHA256SUMS")
    return files.map((file, at) => `${sha256(contents[at] ?? Buffer.alloc(0))}  ./${file}\n`).join("");
  const file = path.replace(`/${HUB_ID}/resolve/${REVISION}/`, "").replace("/web/", "");
  const instead = spoilt.get(file);
  return instead ?? readFile(join(original, file));
}

const reach = { dispatcher, signal: new AbortController().signal };
const install = async (source: Awaited<ReturnType<typeof openHub>>): Promise<number[]> => {
  const done: number[] = [];
  await installModel(DOWNLOAD, source, target, 384, ({ doneBytes }) => done.push(doneBytes));
  return done;
};
const fromHub = async (): Promise<number[]> => install(await openHub(url, HUB_ID, reach));

describe.each([
  ["a hub", () => openHub(url, HUB_ID, reach)],
  ["a folder of a web server", () => openWebFolder(`${url}/web/`, reach)],
  ["a folder of this machine", () => openFolder(original, MODEL_PATHS)],
])("a model from %s", (_name, source) => {
  it("a model from %s is found with the length and the prompts of its card", async () => {
    await install(await source());
    expect(await readModelFolder(target, false)).toMatchObject({
      name: "tiny",
      dtype: "q8",
      dimensions: 384,
      tokensMax: 64,
      prompts: DOWNLOAD.prompts,
    });
  });

  it("a model from %s is not found if its weights are no model", async () => {
    await writeFile(join(original, WEIGHTS), "no model at all");
    await expect(source().then(install)).rejects.toMatchObject({ code: "model_unusable" });
    expect(await readdir(join(folder, "models"))).toEqual(["tiny.part"]);
  });

  it("a model from %s is not found if a file is missing", async () => {
    await rm(join(original, "tokenizer.json"));
    await expect(source().then(install)).rejects.toMatchObject({
      code: "model_download",
      message: expect.stringMatching(/it has no tokenizer\.json$/) as string,
    });
  });
});

it.each([
  ["other bytes of a large file", WEIGHTS, Buffer.alloc(100_000)],
  [
    "other bytes of a small file",
    "config.json",
    Buffer.from('{"hidden_size": 384, "max_position_embeddings": 1}'),
  ],
  ["more bytes than announced", "config.json", Buffer.alloc(1_000_000)],
  ["half a file", "tokenizer.json", Buffer.from("{")],
])("a bad download is refused: %s", async (_name, file, bytes) => {
  spoilt = new Map([[file, bytes]]);
  await expect(fromHub()).rejects.toMatchObject({
    code: "model_download",
    message: expect.stringContaining(file) as string,
  });
  const left = await readdir(join(folder, "models"), { recursive: true });
  expect(left).not.toContain("tiny");
  expect(left.filter((name) => name.endsWith(file))).toEqual([]);
});

it("an interrupted download goes on with the files that are whole", async () => {
  spoilt = new Map([[WEIGHTS, Buffer.from("half")]]);
  await expect(fromHub()).rejects.toThrow(WEIGHTS);
  spoilt = new Map();
  asked.length = 0;
  const done = await fromHub();
  expect(asked.filter((path) => path.includes("/resolve/"))).toEqual([
    `/${HUB_ID}/resolve/${REVISION}/${WEIGHTS}`,
  ]);
  expect(done).toEqual(done.toSorted((a, b) => a - b));
});

it("a copy replaces a model that is there", async () => {
  await mkdir(target, { recursive: true });
  await writeFile(join(target, "old"), "old");
  await fromHub();
  expect(await readdir(target)).not.toContain("old");
});

it("a model of other dimensions is refused, because the store has room for the known ones", async () => {
  await rm(original, { recursive: true });
  await writeTinyModel(original, 128);
  await expect(fromHub()).rejects.toThrow(/128 dimensions, expected 384/);
});

it("checksums beside the files of a folder count", async () => {
  await cp(original, join(folder, "copy"), { recursive: true });
  await writeFile(join(folder, "copy/SHA256SUMS"), `${"0".repeat(64)}  ${WEIGHTS}\n`);
  await expect(openFolder(join(folder, "copy"), MODEL_PATHS).then(install)).rejects.toThrow(
    /model_quantized\.onnx: it has the checksum [0-9a-f]{64}, expected 0000/,
  );
});

it.each([
  ["no list", "/nothing", /status 404/],
  ["a list that is none", "/web", /resolve|JSON|sha/i],
])("a source that does not answer as expected is an error: %s", async (_name, path, message) => {
  await expect(openHub(`${url}${path}`, "SHA256SUMS", reach)).rejects.toThrow(message);
});
