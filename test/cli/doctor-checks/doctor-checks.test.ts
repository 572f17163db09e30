import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findService } from "../../../src/cli/compose/reached-service.ts";
import { CHECKS } from "../../../src/cli/doctor-checks/doctor-checks.ts";
import type { Checked } from "../../../src/cli/doctor-checks/check.ts";
import { judgeRoom, sizeWords } from "../../../src/cli/doctor-checks/machine.ts";
import { stateFolder } from "../../../src/cli/state/state-folder.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { askDaemon } from "../../../src/sync/daemon/control/client.ts";

let base: string;
let server: Server | undefined;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "kbsync-doctor-"));
  mkdirSync(join(base, "docs"));
});
afterEach(async () => {
  rmSync(base, { recursive: true, force: true });
  await new Promise<void>((resolve) => {
    if (server === undefined) resolve();
    else server.close(() => resolve());
  });
  server = undefined;
});

/** Runs one check on a configuration. */
async function check(name: string, config: object, env: NodeJS.ProcessEnv = {}): Promise<Checked> {
  const file = join(base, "kbsync.config.json");
  writeFileSync(file, JSON.stringify({ stateDir: "state", ...config }));
  const loaded = loadConfig({ file, cwd: base, env: {} });
  const found = CHECKS.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no check ${name}`);
  const signal = new AbortController().signal;
  const state = stateFolder(loaded.stateDir);
  return found.run({
    config: loaded,
    state,
    env,
    quick: false,
    signal,
    daemon: async () => askDaemon(state.path, "status", {}, { signal }),
    reached: async () => findService(loaded, state, env),
  });
}
const levels = ({ findings }: Checked): string[] => findings.map((one) => `${one.level} ${one.check}`);

async function serve(handle: RequestListener): Promise<string> {
  const opened = createServer(handle);
  server = opened;
  await new Promise<void>((resolve) => void opened.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(opened.address() as AddressInfo).port}`;
}
const hosted = (url: string) => ({ service: { apiUrl: url, dbUrl: url, resourcesUrl: url } });

it("every check has a name of its own that fits its column", () => {
  const names = CHECKS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^[a-z-]{1,8}$/);
});

it("reports what other users can read of the state folder", async () => {
  const state = join(base, "state");
  expect(levels(await check("access", {}))).toEqual([]);
  mkdirSync(state, { mode: 0o700 });
  writeFileSync(join(state, "ledger.db"), "", { mode: 0o644 });
  expect(levels(await check("access", {}))).toEqual([]);
  chmodSync(state, 0o755);
  expect(levels(await check("access", {}))).toEqual(["warning access-folder", "failure access-file"]);
});

describe("the disk", () => {
  const room = { freeBytes: 80e9, totalBytes: 271e9, freeFiles: 1e6, totalFiles: 1e7 };
  it.each([
    ["has room", room, []],
    ["is nearly full", { ...room, freeBytes: 500e6 }, ["warning disk-space"]],
    ["is full", { ...room, freeBytes: 1e6 }, ["failure disk-space"]],
    ["has no room for files", { ...room, freeFiles: 3 }, ["failure disk-files"]],
    ["has no limit of files", { ...room, freeFiles: 0, totalFiles: 0 }, []],
  ])("judges a disk that %s", (_name, given, expected) => {
    expect(levels(judgeRoom(given, "/s"))).toEqual(expected);
  });

  it("checks the disk where the state folder will be, before the folder exists", async () => {
    expect((await check("disk", { stateDir: "not/yet/there" })).seen).toMatch(/free$/);
  });

  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1400, "1.4 kB"],
    [80e9, "80 GB"],
    [5e15, "5000 TB"],
  ])("%d bytes in words", (bytes, words) => expect(sizeWords(bytes)).toBe(words));
});

describe("the sources", () => {
  it("the sources are counted, with whose eyes", async () => {
    writeFileSync(join(base, "docs", "a.md"), "a");
    const { seen, findings } = await check("sources", { sources: [{ path: "docs" }] });
    expect(findings).toEqual([]);
    expect(seen).toMatch(/^1 folder, 1 file, as (root|user \d+)/);
  });

  it("the sources may be missing, or no folder", async () => {
    writeFileSync(join(base, "file"), "a");
    const seen = await check("sources", { sources: [{ path: "gone" }, { path: "file" }] });
    expect(levels(seen)).toEqual(["failure source-folder", "failure source-folder"]);
    expect(seen.findings.map(({ message }) => message)).toEqual([
      expect.stringContaining("is missing"),
      expect.stringContaining("is not a folder"),
    ]);
  });
});

it("says what the check for secrets does not see, where it is on", async () => {
  const words = "the check for secrets does not read PDFs, pictures and other files";
  const sources = [{ path: "docs" }];
  const kb = { reranker: { url: "https://models.example/rerank", model: "r" } };
  expect((await check("sources", { sources, kb })).seen).toContain(words);
  expect((await check("sources", { sources })).seen).not.toContain(words);
});

describe("a hosted service", () => {
  it("a hosted service is reached, and takes the key", async () => {
    const keys: unknown[] = [];
    const url = await serve((request, answer) => {
      keys.push(request.headers["pauthkey"]);
      answer.writeHead(404).end("{}");
    });
    const env = { KBSYNC_PAUTHKEY: "kb_one" };
    expect(await check("service", hosted(url), env)).toEqual({ seen: url, findings: [] });
    expect((await check("key", hosted(url), env)).seen).toBe("accepted by the service");
    // Whether somebody is there is asked without the key.
    expect(keys).toEqual([undefined, "kb_one"]);
  });

  it("refuses the key", async () => {
    const url = await serve((_request, answer) => answer.writeHead(401).end());
    const checked = await check("key", hosted(url), { KBSYNC_PAUTHKEY: "kb_wrong" });
    expect(levels(checked)).toEqual(["failure key-refused"]);
    expect(JSON.stringify(checked)).not.toContain("kb_wrong");
  });

  it("a hosted service that does not answer is reported", async () => {
    const url = await serve(() => undefined);
    await new Promise<void>((resolve) => void server?.close(() => resolve()));
    expect(levels(await check("service", hosted(url)))).toEqual(["failure service-reachable"]);
    expect((await check("key", hosted(url), { KBSYNC_PAUTHKEY: "kb_one" })).seen).toContain(
      "does not answer",
    );
  });

  it("a hosted service without a key is reported", async () => {
    const url = await serve((_request, answer) => answer.end());
    expect(levels(await check("key", hosted(url)))).toEqual(["failure key-missing"]);
  });

  it("a hosted service whose key others can read is reported", async () => {
    const url = await serve((_request, answer) => answer.writeHead(404).end());
    const file = join(base, "key");
    writeFileSync(file, "kb_one\n");
    chmodSync(file, 0o644);
    const config = { service: { ...hosted(url).service, pauthkeyFile: "key" } };
    expect(levels(await check("key", config))).toEqual(["warning key-file-mode"]);
    chmodSync(file, 0o600);
    expect(levels(await check("key", config))).toEqual([]);
  });
});

describe("the model", () => {
  it("a missing model fails the check where a source needs it, else is a warning", async () => {
    const kb = { embedding: { model: "no-model" } };
    expect(levels(await check("model", { kb }))).toEqual(["warning model-missing"]);
    const sources = [{ path: "docs", collection: "moderate" }];
    expect(levels(await check("model", { kb, sources }))).toEqual(["failure model-missing"]);
  });

  it("the model may be elsewhere", async () => {
    const kb = { embedding: { baseUrl: "https://models.example/v1", model: "small" } };
    expect((await check("model", { kb })).seen).toBe("small at https://models.example/v1 (not asked)");
  });
});

it("an embedded service need not run, nor have a key yet", async () => {
  expect(await check("service", {})).toEqual({ seen: "embedded, not running", findings: [] });
  expect(await check("key", {})).toEqual({ seen: "none yet", findings: [] });
});
