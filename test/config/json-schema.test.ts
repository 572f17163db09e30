import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { configJsonSchema, knownKeys } from "../../src/config/json-schema.ts";
import { parseConfig } from "../../src/config/config-file.ts";

it("kbsync.schema.json matches the program's schema (npx vitest run -u updates it)", async () => {
  await expect(`${JSON.stringify(configJsonSchema(), undefined, 2)}\n`).toMatchFileSnapshot(
    "../../kbsync.schema.json",
  );
});

it("knownKeys lists the keys at every level", () => {
  expect(knownKeys("")).toEqual(["$schema", "service", "stateDir", "sources", "sync", "kb", "metrics"]);
  expect(knownKeys("sources[3].settings")).toEqual(["strategy", "chunkSize", "chunkOverlap"]);
  expect(knownKeys("no.such")).toEqual([]);
});

it("the repository's own configuration is valid", () => {
  const text = readFileSync(new URL("../../kbsync.config.json", import.meta.url), "utf8");
  expect(parseConfig(text, "kbsync.config.json").sources).toHaveLength(1);
});

it("docs/CONFIG.md names every key", () => {
  const manual = readFileSync(new URL("../../docs/CONFIG.md", import.meta.url), "utf8");
  const paths = [
    "",
    "service",
    "sources[0]",
    "sources[0].rules[0]",
    "sources[0].settings",
    "sync",
    "kb",
    "kb.fetch",
    "kb.limits",
    "kb.resources",
    "metrics",
  ];
  const missing = paths.flatMap(knownKeys).filter((key) => !manual.includes(`\`${key}\``));
  expect(missing).toEqual([]);
});
