import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  kbsync,
  repositoryRoot,
  type Running,
  startProgram,
  startUp,
  stop,
  temporaryFolder,
  until,
} from "./program.ts";
import { countTokens } from "../../src/lib/tokens.ts";

const Sources = z.object({
  sources: z.array(
    z.object({
      files: z.number(),
      searchable: z.number(),
      waiting: z.number(),
      failed: z.number(),
      skipped: z.number(),
      held: z.number(),
    }),
  ),
});
const parse = (stdout: string) => Sources.parse(JSON.parse(stdout)).sources[0];

const temporary = temporaryFolder("commands");
let docs: string;
let state: string;
let count = 0;
beforeEach(() => {
  docs = join(temporary.path, `docs-${++count}`);
  state = join(temporary.path, `state-${count}`);
  mkdirSync(docs);
});
afterAll(() => temporary.remove());

const sync = (...args: string[]) => kbsync(["sync", docs, "--state-dir", state, ...args]);
const write = (name: string, text: string): void => writeFileSync(join(docs, name), text);

describe("usage", () => {
  it.each(["up", "service install"])("%s has a help", async (command) => {
    const { code, stdout } = await kbsync([...command.split(" "), "--help"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^Usage: kbsync ${command} `));
    expect(stdout).toContain("--config");
  });

  it.each([
    ["an unknown command", ["upp"], /unknown command 'upp'/],
    ["an unknown option", ["up", "--prot", "1"], /unknown option '--prot'/],
    ["a port that is none", ["up", "--port", "70000"], /expected a whole number from 0 to 65535/],
    ["a search without a question", ["search"], /missing required argument 'query'/],
    ["two forms at once", ["search", "x", "--json", "--files"], /cannot be used with option '--json'/],
    ["a score that is none", ["search", "x", "--score", "2"], /expected a number from 0 to 1/],
    ["a filter that is no JSON", ["search", "x", "--filter", "{"], /expected conditions as JSON/],
    ["an expansion of another kind", ["search", "x", "--expand", "page"], /expected neighbours/],
    ["a search for nothing", ["search", " "], /the query has 0 characters/],
    ["a folder that is not there", ["sync", "/no/such/folder"], /no folder/],
    ["no folder at all", ["sync", "--config", "/dev/null"], /is not JSON/],
  ])("%s ends with 2 and says what is wrong", async (_name, args, message) => {
    const { code, stderr } = await kbsync([...args, "--state-dir", state]);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });

  it("a bad configuration ends with 2 and names the key", async () => {
    const config = join(temporary.path, "bad.json");
    writeFileSync(config, JSON.stringify({ sources: [{ path: docs, settings: { chunkSize: 9000 } }] }));
    const { code, stderr } = await kbsync(["sync", "--config", config]);
    expect(code).toBe(2);
    expect(stderr).toContain("sources[0].settings.chunkSize: expected number to be <=4000, got 9000");
  });

  it("a search before the first sync ends with 2 and says what to do", async () => {
    const { code, stderr } = await kbsync(["search", "anything", "--state-dir", state]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/Sync a folder first: `kbsync up FOLDER --state-dir \S+`/);
  });
});

describe("sync", () => {
  it("prints its plan in a dry run and makes nothing", async () => {
    cpSync(join(repositoryRoot, "sample-docs"), docs, { recursive: true });
    const dry = await sync("--dry-run");
    expect(dry.code).toBe(0);
    expect(dry.stdout).toMatch(/^create {3}README\.md$/m);
    expect(dry.stdout).toMatch(/7 to create; nothing was sent\n$/);
    expect((await sync("--dry-run")).stdout).toBe(dry.stdout);
    const first = await sync("--json");
    expect(parse(first.stdout)).toMatchObject({ files: 7, searchable: 7 });
  });

  it("sends what is new, then nothing; then it can be searched", async () => {
    cpSync(join(repositoryRoot, "sample-docs"), docs, { recursive: true });
    const first = await sync();
    expect(first).toMatchObject({ code: 0, stderr: "" });
    // A pass that takes seconds reports its progress first.
    expect(first.stdout).toMatch(/^synced: 7 files searchable, 7 changes in /m);
    const second = await sync();
    expect(second.stdout).toBe("synced: 7 files searchable, nothing to send\n");
    const found = await kbsync(["search", "who may switch off the heater", "--state-dir", state, "-k", "1"]);
    expect(found).toMatchObject({ code: 0, stderr: "" });
    expect(found.stdout).toMatch(/^ 1 {2}\S+ 0\.\d\d {2}handbook\/telescopes\.md:\d+\n/);
    const files = await kbsync(["search", "heater", "--state-dir", state, "--files", "--source", docs]);
    expect(files.stdout.split("\n")[0]).toBe(join(docs, "handbook/telescopes.md"));
    const none = await kbsync(["search", "the", "heater", "--state-dir", state, "--score", "1"]);
    expect(none.stdout).toMatch(/^nothing found with a score of 1 or more; the best has 0\.\d\d\n$/);
    const lines = await kbsync(["search", "the", "heater", "--state-dir", state, "--json"]);
    expect(JSON.parse(lines.stdout)).toMatchObject({ results: [{ path: "handbook/telescopes.md" }] });
    const expand = ["--expand", "neighbours", "--max-tokens", "300", "--json"];
    const expanded = await kbsync(["search", "the heater", "--state-dir", state, ...expand]);
    const { results } = JSON.parse(expanded.stdout);
    expect(results[0]).toMatchObject({ hits: [{ id: results[0].chunkId }] });
    const texts = results.map(({ content }: { content: string }) => content);
    expect(countTokens(texts.join("\n\n"))).toBeLessThanOrEqual(300);
    const inPdf = await kbsync([
      "search",
      "oxygen alarm",
      "--state-dir",
      state,
      "--doc",
      "safety-sheet.pdf",
      "--json",
    ]);
    expect(JSON.parse(inPdf.stdout)).toMatchObject({
      results: [{ path: "safety-sheet.pdf", position: { pages: { first: 1 } } }],
    });
  });

  it("a synced folder can be searched with a filter", async () => {
    write("a.md", "# Aardvark\n");
    await sync();
    const none = await kbsync(["search", "aardvark", "--state-dir", state, "--filter", '{"kind": "none"}']);
    expect(none.stdout).toBe("nothing found with this filter\n");
    const filter = '{"not": {"kind": "none"}}';
    const found = await kbsync(["search", "aardvark", "--state-dir", state, "--filter", filter]);
    expect(found.stdout).toContain("a.md");
    const refused = await kbsync(["search", "x", "--state-dir", state, "--filter", '{"a": {"above": 1}}']);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("filter.a.above");
  });

  it.each(["moderate", "high_accuracy"])(
    "a synced folder can be searched by words while the embedding model does not answer, and the search says so",
    async (collection) => {
      write("a.md", "# Aardvark\n");
      const config = join(temporary.path, "words.json");
      const embedding = { baseUrl: "http://127.0.0.1:1/v1", model: "m" };
      const sources = [{ path: docs, collection }];
      writeFileSync(
        config,
        JSON.stringify({ stateDir: state, sources, service: { port: 0 }, kb: { embedding } }),
      );
      expect(await kbsync(["sync", "--config", config])).toMatchObject({ code: 0 });
      const found = await kbsync(["search", "aardvark", "--config", config]);
      expect(found.stdout).toContain("a.md");
      expect(found.stderr).toContain("Searched by words alone, not by meaning");
      const fresh = await kbsync(["search", "aardvark", "--fresh", "--config", config]);
      expect(fresh).toMatchObject({ code: 0 });
      expect(fresh.stderr).toContain("no daemon runs, so newer changes are unknown");
      const json = await kbsync(["search", "aardvark", "--config", config, "--json"]);
      expect(JSON.parse(json.stdout)).toMatchObject({ results: [{ path: "a.md" }], fallback: "words" });
      expect(json.stderr).not.toContain("Searched by words");
    },
  );

  it("keeps the key to its owner, and out of what it prints", async () => {
    write("a.md", "# A\n");
    const { stdout, stderr } = await kbsync(["sync", docs, "--state-dir", state], {
      env: { KBSYNC_LOG: "debug" },
    });
    const keyFile = join(state, "pauthkey");
    expect(statSync(keyFile).mode & 0o777).toBe(0o600);
    const key = readFileSync(keyFile, "utf8").trim();
    expect(key.length).toBeGreaterThan(40);
    expect(stdout + stderr).not.toContain(key);
  });

  it("sync ends with 1 when a file fails, and names it with the service's words", async () => {
    write("good.md", "# Good\n");
    writeFileSync(join(docs, "broken.pdf"), "%PDF-1.4\n%%EOF\n");
    const { code, stdout } = await sync();
    expect(code).toBe(1);
    expect(stdout).toMatch(/^synced: 1 of 2 files searchable, 1 failed, /m);
    expect(stdout).toMatch(/^ {2}broken\.pdf: .+/m);
  });

  it("skips what is empty or no document, and ends with 0 and without a warning", async () => {
    write("good.md", "# Good\n");
    write("__init__.py", "");
    write("photos.zip", "PK");
    const first = await sync();
    expect(first).toMatchObject({ code: 0, stderr: "" });
    expect(first.stdout).toMatch(
      /^synced: 1 file searchable, .*\n {2}2 skipped \(`kbsync status --skipped --state-dir \S+` lists them\)\n$/,
    );
    const again = await sync("--json");
    expect(again.code).toBe(0);
    const skipped = [
      { source: docs, path: "__init__.py", message: "the file is empty" },
      { source: docs, path: "photos.zip", message: ".zip is an archive: no text is taken from it" },
    ];
    const listed = await kbsync(["status", "--skipped", "--state-dir", state]);
    expect(listed.stdout).toMatch(
      /^skipped {5}__init__\.py: the file is empty\nskipped {5}photos\.zip: .+\nno daemon runs, .*\n$/,
    );
    expect((await kbsync(["status", "--failed", "--state-dir", state])).stdout).toMatch(/^no files failed\n/);
    // The printed path works from any folder.
    const why = await kbsync(["why", "photos.zip", "--state-dir", state]);
    expect(why.stdout).toContain(".zip is an archive");
    expect(JSON.parse(again.stdout)).toMatchObject({ changes: 0, failures: [], skipped });
    const status = await kbsync(["status", "--json", "--state-dir", state]);
    expect(JSON.parse(status.stdout)).toMatchObject({ failures: [], skipped });
    expect(parse(status.stdout)).toMatchObject({ files: 1, searchable: 1, failed: 0, skipped: 2 });
    const words = await kbsync(["status", "--state-dir", state]);
    expect(words.stdout).toContain("files    1 file searchable\nsearch   by words\nbeside   2 skipped\n");
  });

  it("sync ends with 4 when deletes are held", async () => {
    for (let index = 0; index < 60; index++) write(`file-${index}.md`, `# File ${index}\n`);
    expect((await sync()).code).toBe(0);
    for (let index = 0; index < 55; index++) rmSync(join(docs, `file-${index}.md`));
    const { code, stdout } = await sync();
    expect(code).toBe(4);
    expect(stdout).toContain("55 deletes held");
    const status = await kbsync(["status", "--json", "--state-dir", state]);
    expect(parse(status.stdout)).toMatchObject({ held: 55, searchable: 5 });
    const listed = await kbsync(["approve", "--state-dir", state]);
    expect([listed.code, listed.stdout]).toEqual([4, expect.stringMatching(/^held: .*, 55 deletes \(/)]);
    const token = /--token (\w+)/.exec(listed.stdout)?.[1] ?? "";
    const approved = await kbsync(["approve", "--token", token, "--state-dir", state]);
    expect(approved.stdout).toMatch(/^approved: .*, 55 deletes \(/);
    const last = await sync("--json");
    expect(last.code).toBe(0);
    expect(parse(last.stdout)).toMatchObject({ files: 5, searchable: 5, held: 0 });
    expect((await kbsync(["approve", "--state-dir", state])).stdout).toBe("nothing is held\n");
  });
});

describe("a folder that is missing", () => {
  const configured = (...args: string[]) => {
    const config = join(temporary.path, `missing-${count}.json`);
    writeFileSync(config, JSON.stringify({ service: { port: 0 }, sources: [{ path: docs }] }));
    return kbsync(["sync", "--config", config, "--state-dir", state, ...args]);
  };

  it("a folder that is missing ends a pass with 4 and the reason, before its first sync and after", async () => {
    rmSync(docs, { recursive: true });
    const fresh = await configured();
    expect(fresh.code).toBe(4);
    expect(fresh.stdout).toContain(`${docs}: halted, nothing is sent: the folder is missing`);
    mkdirSync(docs);
    write("a.md", "# A\n");
    expect((await configured()).code).toBe(0);
    rmSync(docs, { recursive: true });
    const gone = await configured();
    expect(gone.code).toBe(4);
    expect(gone.stdout).toMatch(
      /^1 folder halted; synced: 0 of 1 file searchable, 1 waiting, nothing to send/,
    );
    const dry = await configured("--dry-run");
    expect(dry.stdout).toMatch(/^halt +.*the folder is missing/);
    mkdirSync(docs);
    write("a.md", "# A\n");
    expect((await configured()).stdout).toBe("synced: 1 file searchable, nothing to send\n");
  });
});

it.each([
  ["the service's folder", "service"],
  ["the file of the daemon's pid", "daemon.pid"],
])("a state folder where %s cannot be made ends with 2, naming it", async (_name, entry) => {
  mkdirSync(state);
  if (entry === "service") writeFileSync(join(state, entry), "");
  else mkdirSync(join(state, entry));
  const { code, stderr } = await sync();
  expect(code).toBe(2);
  expect(stderr).toContain(`kbsync: the state folder cannot be used, at ${state}`);
  expect(stderr).toContain("--state-dir");
});

it("Ctrl-C in a pass ends it with 130 and without a word", async () => {
  const hung = createServer(() => undefined);
  hung.listen(0, "127.0.0.1");
  await once(hung, "listening");
  const address = hung.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  try {
    write("a.md", "# A\n");
    const config = join(temporary.path, "hung.json");
    const service = { apiUrl: url, dbUrl: url, resourcesUrl: url };
    writeFileSync(config, JSON.stringify({ service, stateDir: state, sources: [{ path: docs }] }));
    const asked = once(hung, "request");
    const program = startProgram(["sync", "--config", config], temporary.path, { KBSYNC_PAUTHKEY: "kb_any" });
    await asked;
    expect(await stop(program, "SIGINT")).toBe(130);
    expect(program.output.stderr).toBe("");
  } finally {
    hung.closeAllConnections();
    hung.close();
  }
});

describe("a service that runs elsewhere", () => {
  let service: Running;
  const serviceState = temporaryFolder("service");
  beforeAll(async () => {
    service = await startUp(["serve", "--port", "0"], serviceState.path);
  });
  afterAll(async () => {
    await stop(service);
    serviceState.remove();
  });
  const configFor = (url: string, key: string): string => {
    const keyFile = join(temporary.path, `key-${count}`);
    writeFileSync(keyFile, `${key}\n`);
    const config = join(temporary.path, `config-${count}.json`);
    writeFileSync(
      config,
      JSON.stringify({
        service: { apiUrl: url, dbUrl: url, resourcesUrl: url, pauthkeyFile: keyFile },
        stateDir: state,
        sources: [{ path: docs, ownerId: "elsewhere" }],
      }),
    );
    return config;
  };

  it("follows a hosted service with `run`, which ends cleanly", async () => {
    write("a.md", "# Aardvark\n");
    const config = configFor(service.url, service.key);
    const daemon = startProgram(["run", "--config", config]);
    await until("agreement", () => daemon.output.stdout.includes("synced: 1 file searchable"));
    const found = await kbsync(["search", "aardvark", "--config", config]);
    expect(found.stdout).toContain("a.md");
    expect(await stop(daemon, "SIGINT")).toBe(0);
    expect(existsSync(join(state, "service"))).toBe(false);
  });

  it("a first pass ends with 3 when the service refuses the key of the environment, whatever has to be sent", async () => {
    write("a.md", "# A\n");
    writeFileSync(join(docs, "b.pdf"), "%PDF-1.4\n%%EOF\n");
    write("empty.txt", "");
    const config = configFor(service.url, service.key);
    const { code, stdout, stderr } = await kbsync(["sync", "--config", config], {
      env: { KBSYNC_PAUTHKEY: "wrong" },
    });
    expect(code).toBe(3);
    expect(stdout).not.toContain("in agreement");
    expect(stderr).toContain("the service refuses the key");
  });

  it("a pass ends with 3 when the service needs a key and there is none", async () => {
    const config = join(temporary.path, "keyless.json");
    writeFileSync(
      config,
      JSON.stringify({
        service: { apiUrl: service.url, dbUrl: service.url, resourcesUrl: service.url },
        sources: [{ path: docs }],
      }),
    );
    const { code, stderr } = await kbsync(["sync", "--config", config, "--state-dir", state]);
    expect(code).toBe(3);
    expect(stderr).toContain("KBSYNC_PAUTHKEY");
  });
});

it("status reports each source, as JSON and in words", async () => {
  write("a.md", "# A\n");
  await sync();
  const json = await kbsync(["status", "--json", "--state-dir", state]);
  expect(JSON.parse(json.stdout)).toMatchObject({
    service: { running: false },
    sources: [
      {
        path: docs,
        files: 1,
        searchable: 1,
        waiting: 0,
        failed: 0,
        held: 0,
        collectionId: expect.stringMatching(/^[0-9a-f]{24}$/),
      },
    ],
  });
  const words = await kbsync(["status", "--state-dir", state]);
  expect(words.stdout).toContain("files    1 file searchable\n");
});

it("commands that end by themselves need no port of their own", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  const file = join(temporary.path, "taken.json");
  const service = { port };
  writeFileSync(file, JSON.stringify({ stateDir: state, service, sources: [{ path: docs }] }));
  write("a.md", "# Ferry\n");
  for (const args of [["sync", "-n"], ["sync"], ["sync", "--recover"], ["verify"]]) {
    expect(await kbsync([...args, "--config", file])).toMatchObject({ code: 0 });
  }
  taken.close();
});
