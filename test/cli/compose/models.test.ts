import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { embedderOf, rerankerOf, serviceKey } from "../../../src/cli/compose/models.ts";
import { openModelService } from "../../fakes/model-service.ts";

const KEY = "sk-of-the-tests";
let folder: string;
let lines: string[];
const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(line) });
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-models-"));
  lines = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

const keyFile = (text = `${KEY}\n`, mode = 0o600): string => {
  const file = join(folder, "key");
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
};

describe("the models of the configuration", () => {
  it("the models of the configuration embed at the address that is configured, with the key of the file", async () => {
    const service = await openModelService(KEY);
    const { baseUrl } = service;
    const open = embedderOf({ baseUrl, model: "hashed", apiKeyFile: keyFile() }, log);
    const embedder = await open();
    expect(embedder).toMatchObject({ kind: "remote", dimensions: 64 });
    if ("close" in embedder) await embedder.close();
    await service.close();
  });

  it("the local model embeds where no address is configured, and reports what a model folder lacks", async () => {
    const found = await embedderOf({ model: folder }, log)();
    expect(found).toMatchObject({ kind: "no-model", reason: expect.stringContaining(folder) });
  });

  it("the models of the configuration rerank where a reranker is configured", () => {
    expect(rerankerOf(undefined, log)).toEqual({});
    const file = keyFile();
    const { reranker } = rerankerOf({ url: "http://a/rerank", model: "r", apiKeyFile: file }, log);
    expect(reranker).toMatchObject({ url: "http://a/rerank", model: "r" });
    expect(reranker?.apiKey?.()).toBe(KEY);
  });
});

describe("the key of another service", () => {
  it("the key of another service is read from its file, and needs none", () => {
    expect(serviceKey(undefined, "kb.x", log)).toBeUndefined();
    expect(serviceKey(keyFile(), "kb.x", log)?.()).toBe(KEY);
    expect(lines).toEqual([]);
  });

  it("reports a missing or invalid key at the start, without its content", () => {
    expect(() => serviceKey(join(folder, "none"), "kb.x", log)).toThrow(/there is no key file/);
    expect(() => serviceKey(keyFile("two\nlines"), "kb.x", log)).toThrow(/several lines/);
  });

  it("the key of another service is used but warned of where everybody can read it", () => {
    expect(serviceKey(keyFile(KEY, 0o644), "kb.x", log)?.()).toBe(KEY);
    expect(lines.join("")).toContain("other users of this machine can read the key of kb.x");
    expect(lines.join("")).not.toContain(KEY);
  });

  it("a new key is used from the next request on, and the former one while the file has none", () => {
    const file = keyFile();
    const key = serviceKey(file, "kb.x", log);
    writeFileSync(file, "sk-new");
    expect(key?.()).toBe("sk-new");
    rmSync(file);
    expect(key?.()).toBe("sk-new");
    expect(key?.()).toBe("sk-new");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`not applied, the former key stays in use: there is no key file ${file}`);
    writeFileSync(file, "sk-newest");
    expect(key?.()).toBe("sk-newest");
  });
});
