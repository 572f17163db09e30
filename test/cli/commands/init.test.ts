import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bestTier, thisMachine } from "../../../src/cli/commands/tier-choice.ts";
import { buildProgram } from "../../../src/cli/command-line.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { parseConfig } from "../../../src/config/config-file.ts";
import { configText, type Wishes } from "../../../src/config/template.ts";
import { cliContext, outputTo } from "../context.ts";

const wishes: Wishes = {
  folders: ["/srv/docs", "/srv/more docs"],
  collection: "moderate",
  service: {},
  stateDir: undefined,
  schema: undefined,
};

describe("the configuration that is written", () => {
  it("says what was wished for", () => {
    const config = parseConfig(configText(wishes), "x");
    expect(config.sources.map(({ path, collection }) => ({ path, collection }))).toEqual([
      { path: "/srv/docs", collection: "moderate" },
      { path: "/srv/more docs", collection: "moderate" },
    ]);
    expect(config.service).toEqual({ host: "127.0.0.1", port: 7411 });
  });

  it("names every key of its parts, with its meaning in front", () => {
    const lines = configText(wishes).split("\n");
    const keys = ["ownerId", "settings", "include", "exclude", "rules", "maxFileBytes", "trashDays", "ocr"];
    for (const key of [...keys, "reranker", "metrics", "stateDir"]) {
      const at = lines.findIndex((line) => line.includes(`// "${key}": `));
      expect({ key, before: lines[at - 1] }).toEqual({ key, before: expect.stringMatching(/^ +\/\/ [^"]/) });
    }
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(140);
  });

  it("an initial configuration is valid with every comment of a key taken as a setting", () => {
    const text = configText({ ...wishes, folders: ["/srv/docs"] }).replaceAll(/^( +)\/\/ (?=")/gm, "$1");
    const config = parseConfig(text, "x");
    expect(config.sources[0]).toMatchObject({ ownerId: "my-documents" });
    expect(config.metrics).toEqual({ host: "127.0.0.1", port: 9464 });
  });

  it("an initial configuration may be of a hosted service", () => {
    const service = {
      apiUrl: "https://kb.example",
      dbUrl: "https://db.example",
      resourcesUrl: "https://kb.example",
      pauthkeyFile: undefined,
    };
    const { pauthkeyFile: _, ...expected } = service;
    const text = configText({ ...wishes, service, stateDir: "/s" });
    expect(parseConfig(text, "x")).toMatchObject({
      service: expected,
      stateDir: "/s",
    });
  });
});

describe("kbsync init", () => {
  let cwd: string;
  let said: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), "kbsync-init-"));
    mkdirSync(join(cwd, "docs"));
    said = "";
  });
  afterEach(() => rmSync(cwd, { recursive: true }));

  const init = async (...args: readonly string[]): Promise<void> => {
    const context = cliContext({ stdout: outputTo((text) => void (said += text)), cwd });
    await (await buildProgram(context)).parseAsync(["init", ...args], { from: "user" });
  };
  const file = (): string => join(cwd, "kbsync.config.json");

  it("writes what every command then reads, and says how to go on", async () => {
    await init("docs", "--tier", "high_accuracy", "--state-dir", "state");
    const config = loadConfig({ cwd, env: {} });
    expect(config.sources).toMatchObject([{ absolutePath: join(cwd, "docs"), collection: "high_accuracy" }]);
    expect(config.stateDir).toBe(join(cwd, "state"));
    expect(config.service).toEqual({ host: "127.0.0.1", port: 7411 });
    expect(said).toContain(`wrote ${file()}\n`);
    expect(said).toContain("kbsync up");
    // Nothing is left of how it was written.
    expect(readdirSync(cwd).toSorted()).toEqual(["docs", "kbsync.config.json"]);
  });

  it("takes the best tier that this machine does well if none is named, and explains it", async () => {
    await init("docs");
    const best = bestTier(await thisMachine({}));
    expect(loadConfig({ cwd, env: {} }).sources).toMatchObject([{ collection: best }]);
    expect(said).toContain(`  ${best}: by words`);
  });

  it("takes the cheapest tier of a hosted service", async () => {
    await init("docs", "--api-url", "https://kb.example.com");
    expect(loadConfig({ cwd, env: {} }).sources).toMatchObject([{ collection: "fastest" }]);
  });

  it("kbsync init never overwrites a configuration without --force", async () => {
    writeFileSync(file(), "{}");
    await expect(init("docs")).rejects.toMatchObject({ code: "usage", subject: file() });
    expect(readFileSync(file(), "utf8")).toBe("{}");
    await init("docs", "--force");
    expect(loadConfig({ cwd, env: {} }).sources).toHaveLength(1);
  });

  it.each([
    ["a folder that is not there", ["gone"], "source_unusable"],
    ["a folder twice", ["docs", "./docs/"], "source_overlap"],
    ["half of a hosted service", ["docs", "--key-file", "key"], "usage"],
    ["an address that is none", ["docs", "--api-url", "kb.example"], "config_invalid"],
    ["a place that cannot be written", ["docs", "-c", "no/such/folder/x.json"], "config_unreadable"],
  ])("refuses %s and writes nothing", async (_name, args, code) => {
    await expect(init(...args)).rejects.toMatchObject({ code });
    expect(readdirSync(cwd)).toEqual(["docs"]);
  });
});
