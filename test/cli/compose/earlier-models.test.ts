import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rememberedEmbedder } from "../../../src/cli/compose/earlier-models.ts";
import type { FoundModel } from "../../../src/kb/ingest/model.ts";
import { openModelService, type ModelService } from "../../fakes/model-service.ts";

const KEY = "sk-of-the-tests";
const log = pino({ level: "silent" });

let folder: string;
let notes: string;
let apiKeyFile: string;
let service: ModelService;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-earlier-"));
  notes = join(folder, "models.json");
  apiKeyFile = join(folder, "key");
  writeFileSync(apiKeyFile, `${KEY}\n`, { mode: 0o600 });
  service = await openModelService(KEY);
});
afterEach(async () => {
  await service.close();
  rmSync(folder, { recursive: true });
});

/** The embedder of a configuration that names this model of the service. */
const configured = (model: string) =>
  rememberedEmbedder(notes, { baseUrl: service.baseUrl, model, apiKeyFile }, log);
const fingerprintOf = async (found: FoundModel): Promise<string | undefined> => {
  if (!("fingerprint" in found)) return undefined;
  await found.close();
  return found.fingerprint;
};

describe("the models of earlier configurations", () => {
  it("the models of earlier configurations are opened again by their fingerprint, as they were configured", async () => {
    const one = await fingerprintOf(await configured("one").openEmbedder());
    const later = configured("two");
    const two = await fingerprintOf(await later.openEmbedder());
    expect([one, two]).toEqual([expect.stringContaining("one"), expect.stringContaining("two")]);
    expect(await fingerprintOf(await later.openEarlierEmbedder(one ?? ""))).toBe(one);
  });

  it("the models of earlier configurations are noted without their key, the latest eight", async () => {
    const seen: (string | undefined)[] = [];
    for (let at = 1; at <= 9; at += 1)
      seen.push(await fingerprintOf(await configured(`m${at}`).openEmbedder()));
    const text = readFileSync(notes, "utf8");
    expect(Object.keys(JSON.parse(text))).toEqual(seen.slice(1));
    expect(text).not.toContain(KEY);
  });

  it("models that were never noted are taken for the local one", async () => {
    const found = await configured("one").openEarlierEmbedder("somebody/384");
    expect(found).not.toMatchObject({ kind: "remote" });
    await fingerprintOf(found);
  });

  it("the models of earlier configurations are unavailable where the notes are damaged, and the current one is noted again", async () => {
    writeFileSync(notes, "{half a");
    const one = await fingerprintOf(await configured("one").openEmbedder());
    expect(Object.keys(JSON.parse(readFileSync(notes, "utf8")))).toEqual([one]);
  });
});
