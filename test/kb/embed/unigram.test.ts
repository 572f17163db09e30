import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openLocalEmbedder, type LocalEmbedder } from "../../../src/kb/embed/local.ts";
import { PROMPTS_FILE } from "../../../src/kb/embed/prompts.ts";
import { cosine, embedderContract } from "./embedder-contract.ts";
import { writeTinyModel } from "./tiny-model.ts";

let folder: string;
const opened: LocalEmbedder[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-unigram-"));
  await writeTinyModel(folder);
});
afterAll(async () => {
  for (const embedder of opened) await embedder.close();
  await rm(folder, { recursive: true });
});

async function open(): Promise<LocalEmbedder> {
  const embedder = await openLocalEmbedder({ modelDir: folder });
  if (embedder.kind === "no-model") throw new Error(embedder.reason);
  opened.push(embedder);
  return embedder;
}

embedderContract("local, with the tokenizer of multilingual models", open);

it.each([
  ["the most probable pieces, not the longest", "Haustüren", ["▁Haus", "tür", "en"]],
  ["a piece for each word", "der Haus", ["▁der", "▁Haus"]],
  ["letters of a word that has no piece", "Heb", ["▁", "H", "e", "b"]],
  ["Cyrillic", "мир привет", ["▁мир", "▁", "п", "р", "и", "в", "е", "т"]],
  ["a script without spaces", "世界", ["▁", "世", "界"]],
  ["compatibility forms as letters", "ｄer", ["▁der"]],
])("the tokenizer of multilingual models gives %s", async (_name, text, pieces) => {
  const read = async (name: string): Promise<object> =>
    JSON.parse(await readFile(join(folder, name), "utf8")) as object;
  const tokenizer = new Tokenizer(await read("tokenizer.json"), await read("tokenizer_config.json"));
  expect(tokenizer.encode(text).tokens).toEqual(["<s>", ...pieces, "</s>"]);
});

describe("a model with prompts", () => {
  it("reads the prompt of queries before queries and that of texts before texts", async () => {
    const plain = await open();
    await writeFile(
      join(folder, PROMPTS_FILE),
      '{"prompts": {"query": "query: ", "document": "passage: "}, "other": 1}',
    );
    const prompted = await open();
    const [query] = await prompted.queries.embed(["Haus"]);
    const [text] = await prompted.embed(["Haus"]);
    const [asQuery, asText] = await plain.embed(["query: Haus", "passage: Haus"]);
    expect([cosine(query, asQuery), cosine(text, asText)]).toEqual([
      expect.closeTo(1, 5),
      expect.closeTo(1, 5),
    ]);
    expect(cosine(query, text)).toBeLessThan(0.99);
    expect(prompted.fingerprint).toMatch(new RegExp(`^${plain.fingerprint}/prompts-[0-9a-f]{8}$`));
  });

  it.each([
    ["no prompts", "{}"],
    ["empty ones", '{"prompts": {"query": "", "document": ""}}'],
  ])("a model with prompts is the same as one without if its file has %s", async (_name, config) => {
    await writeFile(join(folder, PROMPTS_FILE), config);
    expect((await open()).fingerprint).not.toContain("prompts");
  });

  it("a model with prompts is refused if its prompts are no text", async () => {
    await writeFile(join(folder, PROMPTS_FILE), '{"prompts": {"query": 1}}');
    expect(await openLocalEmbedder({ modelDir: folder })).toMatchObject({ kind: "no-model" });
  });
});

it("a text on which the model hangs fails after its processor time, and the next one is embedded", async () => {
  const hanging = await mkdtemp(join(tmpdir(), "kbsync-hang-"));
  await writeTinyModel(hanging);
  const tokenizer = join(hanging, "tokenizer.json");
  // Takes time that doubles with each letter.
  const normalizer = { type: "Replace", pattern: { Regex: "(a+)+b" }, content: "" };
  await writeFile(
    tokenizer,
    JSON.stringify({ ...JSON.parse(await readFile(tokenizer, "utf8")), normalizer }),
  );
  const embedder = await openLocalEmbedder({
    modelDir: hanging,
    batchLimits: { cpuMs: 2000, wallMs: 600_000 },
  });
  if (embedder.kind === "no-model") throw new Error(embedder.reason);
  opened.push(embedder);
  const [before] = await embedder.queries.embed(["der Haus"]);
  await expect(embedder.embed(["a".repeat(60)])).rejects.toMatchObject({
    code: "model_failed",
    message: expect.stringContaining("used 2 s of processor time"),
  });
  const [after] = await embedder.queries.embed(["der Haus"]);
  expect(after).toEqual(before);
  await rm(hanging, { recursive: true });
});
