import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compareConfigs, LIVE_IN_SERVICE, liveConfig } from "../../../src/cli/state/config-change.ts";
import { type Config, loadConfig } from "../../../src/config/load.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-config-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function configOf(content: object): Config {
  const file = join(folder, "kbsync.config.json");
  writeFileSync(file, JSON.stringify({ stateDir: "/var/lib/kbsync", ...content }));
  return loadConfig({ file, cwd: folder, env: {} });
}

const HANDBOOK = { path: "/srv/handbook" };

describe("a configuration that was read again", () => {
  it.each<[string, object, object, readonly string[], readonly string[]]>([
    ["is the same", { sources: [HANDBOOK] }, { sources: [HANDBOOK] }, [], []],
    [
      "spells out a default",
      { sources: [HANDBOOK] },
      { sources: [HANDBOOK], sync: { trashDays: 7 } },
      [],
      [],
    ],
    [
      "has another source",
      { sources: [HANDBOOK] },
      { sources: [HANDBOOK, { path: "/srv/b" }] },
      ["source /srv/b added"],
      [],
    ],
    ["has a source less", { sources: [HANDBOOK] }, { sources: [] }, ["source /srv/handbook removed"], []],
    [
      "has other rules for a source",
      { sources: [HANDBOOK] },
      { sources: [{ ...HANDBOOK, exclude: ["drafts/**"], settings: { chunkSize: 2000 } }] },
      ["source /srv/handbook: settings.chunkSize, exclude"],
      [],
    ],
    [
      "works at another pace",
      {},
      { sync: { requestsPerMinute: 99, trashDays: 3 } },
      ["sync.trashDays", "sync.requestsPerMinute"],
      [],
    ],
    ["has another port", {}, { service: { port: 8000 } }, [], ["service.port"]],
    [
      "has other rules for the service",
      {},
      { kb: { ocr: { languages: ["deu"] } } },
      [],
      ["kb.ocr.languages"],
    ],
    ["lies elsewhere", {}, { stateDir: "/var/lib/other" }, [], ["stateDir"]],
    [
      "has both",
      {},
      { sources: [HANDBOOK], kb: { limits: { requestsPerMinute: 9 } } },
      ["source /srv/handbook added"],
      ["kb.limits.requestsPerMinute"],
    ],
  ])("compares a configuration that %s", (_name, before, after, applied, pending) => {
    const [old, now] = [configOf(before), configOf(after)];
    expect(compareConfigs(old, now)).toEqual({ applied, pending });
    // What was taken is no news any more, and what waits for the next start still does.
    expect(compareConfigs(liveConfig(old, now), now)).toEqual({ applied: [], pending });
  });

  it("changes nothing of a service that runs alone", () => {
    const change = compareConfigs(
      configOf({}),
      configOf({ sources: [HANDBOOK], sync: { trashDays: 9 } }),
      LIVE_IN_SERVICE,
    );
    expect(change).toEqual({ applied: [], pending: ["source /srv/handbook added", "sync.trashDays"] });
  });
});
