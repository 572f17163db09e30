import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { downloadModel } from "../../../src/kb/embed/download-model.ts";
import { KNOWN_MODELS } from "../../../src/kb/embed/known-models.ts";
import { readModelFolder } from "../../../src/kb/embed/model-files.ts";
import { writeTinyModel } from "./tiny-model.ts";

const HUB_ID = "models/tiny";
const REVISION = "0123456789abcdef0123456789abcdef01234567";
const WEIGHTS = "onnx/model_quantized.onnx";

let folder: string;
let original: string;
let target: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-download-"));
  original = join(folder, "original");
  target = join(folder, "models/tiny");
  await writeTinyModel(original);
});
afterEach(() => rm(folder, { recursive: true }));

/** A hub with the files of the tiny model. */
let server: Server;
let url = "";
/** What is sent instead of a file. */
let spoilt: ReadonlyMap<string, Buffer> = new Map();
beforeAll(async () => {
  server = createServer((request, response) => {
    void answer((request.url ?? "").split("?")[0] ?? "").then(
      (body) => response.end(body),
      () => response.writeHead(404).end(),
    );
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // a port, as listened on above
});
afterAll(() => server.close());
beforeEach(() => {
  spoilt = new Map();
});

async function answer(path: string): Promise<string | Buffer> {
  if (path !== `/api/models/${HUB_ID}/revision/main`) {
    const file = path.replace(`/${HUB_ID}/resolve/${REVISION}/`, "");
    return spoilt.get(file) ?? readFile(join(original, file));
  }
  const files = (await readdir(original, { recursive: true, withFileTypes: true })).filter((entry) =>
    entry.isFile(),
  );
  const siblings = files.map(async ({ parentPath, name }) => {
    const rfilename = join(parentPath, name).slice(original.length + 1);
    const bytes = await readFile(join(original, rfilename));
    const blobId = createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const lfs = rfilename === WEIGHTS ? { sha256 } : undefined;
    return { rfilename, size: bytes.length, blobId, lfs };
  });
  return JSON.stringify({ sha: REVISION, siblings: await Promise.all(siblings) });
}

const card = KNOWN_MODELS.find(({ name }) => name === "multilingual-e5-small")?.download?.card ?? {};
const download = (): Promise<void> =>
  downloadModel({ hubId: HUB_ID, sizeMb: 1, card }, target, {
    hubUrl: url,
    env: {},
    signal: new AbortController().signal,
  });

it("a downloaded model has the length and the prompts of its card", async () => {
  await download();
  expect(await readModelFolder(target, false)).toMatchObject({
    name: "tiny",
    dtype: "q8",
    dimensions: 384,
    tokensMax: 512,
    prompts: { query: "query: ", passage: "passage: " },
  });
});

it("a model without one of its files is refused", async () => {
  await rm(join(original, "tokenizer.json"));
  await expect(download()).rejects.toMatchObject({
    code: "model_download",
    message: expect.stringMatching(/it has no tokenizer\.json$/) as string,
  });
});

it.each([
  ["other bytes of a large file", WEIGHTS, Buffer.alloc(100_000)],
  ["other bytes of a small file", "config.json", Buffer.from('{"hidden_size": 384}')],
  ["half a file", "tokenizer.json", Buffer.from("{")],
])("a bad download is refused and leaves nothing: %s", async (_name, file, bytes) => {
  spoilt = new Map([[file, bytes]]);
  await expect(download()).rejects.toMatchObject({
    code: "model_download",
    message: expect.stringContaining(file) as string,
  });
  expect([target, `${target}.part`].filter((path) => existsSync(path))).toEqual([]);
});
