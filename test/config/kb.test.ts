import { describe, expect, it } from "vitest";
import { parseConfig } from "../../src/config/config-file.ts";

const parse = (kb: object) => parseConfig(JSON.stringify({ kb }), "kbsync.config.json").kb;

describe("kb in the configuration", () => {
  it("by default the service fetches from public addresses only and limits no key", () => {
    expect(parse({})).toMatchObject({
      allowHosts: [],
      limits: {},
      unusedFileDays: 7,
    });
  });

  it.each(["wiki.example", "*.corp.example", "intranet", "10.0.0.0/8", "192.168.1.7", "fd00::/8", "::1"])(
    "kb in the configuration opens %s",
    (entry) => {
      expect(parse({ allowHosts: [entry] }).allowHosts).toEqual([entry]);
    },
  );

  it("by default the service embeds with the local model and reranks by sentences", () => {
    expect(parse({})).toMatchObject({ embedding: {} });
    expect(parse({})).not.toHaveProperty("reranker");
    const kb = parse({
      embedding: { baseUrl: "https://models.example/v1/", model: "m", apiKeyFile: "keys/m" },
      reranker: { url: "http://127.0.0.1:8080/rerank", model: "r" },
    });
    expect(kb.embedding).toEqual({
      baseUrl: "https://models.example/v1",
      model: "m",
      apiKeyFile: "keys/m",
    });
    expect(kb.reranker).toEqual({ url: "http://127.0.0.1:8080/rerank", model: "r" });
  });

  it.each([
    ["an embedding address without a model", { embedding: { baseUrl: "https://a/v1" } }, "kb.embedding"],
    ["a key in place of its file", { embedding: { apiKey: "sk-1" } }, "kb.embedding.apiKey: unknown key"],
    ["an address that is none", { reranker: { url: "models", model: "r" } }, "kb.reranker.url"],
    ["a reranker without a model", { reranker: { url: "https://a/rerank" } }, "kb.reranker.model"],
    [
      "an address with a path",
      { allowHosts: ["http://wiki.example/"] },
      "kb.allowHosts[0]: expected a host name",
    ],
    ["a range that is none", { allowHosts: ["10.0.0.0/64"] }, "kb.allowHosts[0]: expected a host name"],
    ["no requests at all", { limits: { requestsPerMinute: 0 } }, "kb.limits.requestsPerMinute"],
    [
      "an unknown key",
      { limits: { perSecond: 1 } },
      "kb.limits.perSecond: unknown key, expected one of requestsPerMinute",
    ],
  ])("kb in the configuration refuses %s", (_name, kb, words) => {
    expect(() => parse(kb)).toThrow(words);
  });
});
