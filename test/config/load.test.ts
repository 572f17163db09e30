import { filesOf } from "../../src/config/schema/files.ts";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { parseConfig } from "../../src/config/config-file.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-config-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const load = (request: Partial<Parameters<typeof loadConfig>[0]> = {}) =>
  loadConfig({ cwd: folder, env: {}, ...request });

it("reads ~/ as the home folder in every path", () => {
  const service = { apiUrl: "http://a", dbUrl: "http://a", resourcesUrl: "http://a", pauthkeyFile: "~/key" };
  writeFileSync(
    join(folder, "kbsync.config.json"),
    JSON.stringify({ stateDir: "~/state", service, sources: [{ path: "~/docs" }, { path: "~docs" }] }),
  );
  expect(load()).toMatchObject({
    stateDir: join(homedir(), "state"),
    service: { pauthkeyFile: join(homedir(), "key") },
    sources: [{ absolutePath: join(homedir(), "docs") }, { absolutePath: join(folder, "~docs") }],
  });
});

describe("a refused configuration names the JSON path, what was expected and what came", () => {
  const cases: [name: string, config: unknown, message: RegExp][] = [
    ["unknown key at the top", { sorces: [] }, /sorces: unknown key, did you mean sources\?$/],
    [
      "an open bracket",
      { sources: [{ path: "a", exclude: ["[abc"] }] },
      /exclude\[0\]: expected a glob: Missing closing: "]"/,
    ],
    [
      "a glob that leads out",
      { sources: [{ path: "a", include: ["../b"] }] },
      /include\[0\]: .* without `\.\.`/,
    ],
    ...["secret\\*", "secret\\a.md", "b\\"].map((glob): [string, unknown, RegExp] => [
      `the separator of Windows in ${glob}`,
      { sources: [{ path: "a", exclude: [glob] }] },
      /exclude\[0\]: expected `\/` between folders/,
    ]),
    ...[" b", "b ", "b\t"].map((glob): [string, unknown, RegExp] => [
      `blanks at the ends of ${JSON.stringify(glob)}`,
      { sources: [{ path: "a", exclude: [glob] }] },
      /exclude\[0\]: .* without blanks/,
    ]),
    ...["b//c", "b/./c", "/", ".", "./", "~/b"].map((glob): [string, unknown, RegExp] => [
      `what is no path below the source: ${glob}`,
      { sources: [{ path: "a", exclude: [glob] }] },
      /exclude\[0\]: expected (?:names with one|a path below)/,
    ]),
    ["a negated glob", { sources: [{ path: "a", exclude: ["!b"] }] }, /exclude\[0\]: .* negates nothing/],
    [
      "unknown key in a source",
      { sources: [{ path: "a", colection: "fastest" }] },
      /sources\[0\]\.colection: unknown key, did you mean collection\?$/,
    ],
    [
      "unknown key in a source's settings",
      { sources: [{ path: "a", settings: { size: 3 } }] },
      /sources\[0\]\.settings\.size: unknown key, expected one of strategy, chunkSize, chunkOverlap/,
    ],
    [
      "metadata that kbsync sends itself",
      { sources: [{ path: "a", rules: [{ match: "*", metadata: { path: "b" } }] }] },
      /rules\[0\]\.metadata\.path: expected another name: kbsync sends path itself/,
    ],
    [
      "a list as metadata other than tags",
      { sources: [{ path: "a", rules: [{ match: "*", metadata: { team: ["b"] } }] }] },
      /rules\[0\]\.metadata\.team: expected a string, a number, true or false/,
    ],
    [
      "wrong tier",
      { sources: [{ path: "a", collection: "fast" }] },
      /sources\[0\]\.collection: expected one of "fastest".*got "fast"/,
    ],
    [
      "chunk too large",
      { sources: [{ path: "a", settings: { chunkSize: 4001 } }] },
      /sources\[0\]\.settings\.chunkSize: .*<=4000, got 4001/,
    ],
    [
      "overlap not below the size",
      { sources: [{ path: "a", settings: { chunkSize: 100, chunkOverlap: 100 } }] },
      /sources\[0\]\.settings\.chunkOverlap: expected a number below chunkSize, got 100/,
    ],
    ["missing path", { sources: [{}] }, /sources\[0\]\.path: missing, expected string/],
    ["port as text", { service: { port: "80" } }, /service\.port: expected number, got "80"/],
    [
      "hosted service with an address that is none",
      { service: { apiUrl: "ftp://x", dbUrl: "http://x", resourcesUrl: "http://x" } },
      /service\.apiUrl: expected an http or https address, got "ftp:\/\/x"/,
    ],
    ["not an object", [], /the file: expected object, got \[\]/],
    [
      "an exposed service without publicUrl",
      { service: { host: "0.0.0.0", requireKey: true } },
      /service\.publicUrl: missing, expected the address by which clients reach the service, because service\.host is 0\.0\.0\.0/,
    ],
    [
      "an exposed service without requireKey",
      { service: { host: "10.0.0.1", publicUrl: "https://kb.example" } },
      /service\.requireKey: missing, expected true .* or false .*, because service\.host is 10\.0\.0\.1/,
    ],
    [
      "a public address that is none",
      { service: { publicUrl: "kb" } },
      /service\.publicUrl: expected an http or https address, got "kb"$/m,
    ],
    [
      "a service behind a proxy without requireKey",
      { service: { publicUrl: "https://kb.example" } },
      /service\.requireKey: missing, expected true .* or false .*, because service\.publicUrl is https:\/\/kb\.example/,
    ],
  ];
  it.each(cases)("refuses a configuration: %s", (_name, config, message) => {
    expect(() => parseConfig(JSON.stringify(config), "kbsync.config.json")).toThrow(message);
  });

  it("accepts an exposed service with publicUrl and requireKey, and a loopback one without", () => {
    const open = {
      service: { host: "::", publicUrl: "https://kb.example/", requireKey: false },
    };
    expect(parseConfig(JSON.stringify(open), "c.json")).toMatchObject({
      service: { host: "::", publicUrl: "https://kb.example" },
    });
    for (const host of ["127.0.0.1", "localhost", "::1"])
      expect(parseConfig(JSON.stringify({ service: { host } }), "c.json").service).toMatchObject({ host });
  });

  it("refuses text that is not JSON, and names the line, comments before it or not", () => {
    expect(() => parseConfig("{ sources: 1 }", "x.json")).toThrow(/x\.json is not JSON: .*position 2/);
    const text = '{ // one\n /* two\n three */ "stateDir": "a//b", }';
    expect(parseConfig(text, "x.json").stateDir).toBe("a//b");
    expect(() => parseConfig(text.replace(":", " "), "x.json")).toThrow(/is not JSON: .*line 3/);
  });
});

describe("where the configuration comes from", () => {
  it("uses the defaults without a configuration file", () => {
    const config = load({ env: { XDG_STATE_HOME: "/x" } });
    expect(config).toMatchObject({
      file: undefined,
      stateDir: "/x/kbsync",
      sources: [],
      service: { port: 7411 },
    });
  });

  it("uses the state folder of --state-dir, else of KBSYNC_STATE_DIR, else of the file", () => {
    writeFileSync(join(folder, "kbsync.config.json"), '{"stateDir": "/file"}');
    const env = { KBSYNC_STATE_DIR: "named", XDG_STATE_HOME: "/x" };
    expect(load({ env, stateDir: "/asked" }).stateDir).toBe("/asked");
    expect(load({ env }).stateDir).toBe(join(folder, "named"));
    expect(load({ env: { ...env, KBSYNC_STATE_DIR: "" } }).stateDir).toBe("/file");
  });

  it("uses the port of --port, else of KBSYNC_PORT, else of the file; KBSYNC_PORT=0 only where the file has none", () => {
    let env = { KBSYNC_PORT: "7002", XDG_STATE_HOME: "/x" };
    const port = (text: string, asked?: number): unknown => {
      writeFileSync(join(folder, "kbsync.config.json"), text);
      return load({ env, ...(asked !== undefined && { port: asked }) }).service;
    };
    expect(port('{"service": {"port": 7000}}')).toMatchObject({ port: 7002 });
    expect(port("{}", 7001)).toMatchObject({ port: 7001 });
    env = { ...env, KBSYNC_PORT: "0" };
    expect(port("{}")).toMatchObject({ port: 0 });
    expect(port('{"service": {}}')).toMatchObject({ port: 0 });
    expect(port('{"service": {"port": 7000}}')).toMatchObject({ port: 7000 });
    expect(port("{}", 7001)).toMatchObject({ port: 7001 });
    const hosted = {
      apiUrl: "https://a.example",
      dbUrl: "https://a.example",
      resourcesUrl: "https://a.example",
    };
    expect(port(JSON.stringify({ service: hosted }))).not.toHaveProperty("port");
    writeFileSync(join(folder, "kbsync.config.json"), "{}");
    expect(() => load({ env: { KBSYNC_PORT: "70000" } })).toThrow("KBSYNC_PORT: expected a port");
  });

  it("takes the database of KBSYNC_DATABASE, with a password, before the one of the file, which may have none", () => {
    const service = (text: string, database = ""): unknown => {
      writeFileSync(join(folder, "kbsync.config.json"), text);
      return load({ env: { KBSYNC_DATABASE: database, XDG_STATE_HOME: "/x" } }).service;
    };
    const file = '{"service": {"database": "postgres://a@db.example/kb", "databasePasswordFile": "pw"}}';
    const databasePasswordFile = join(folder, "pw");
    expect(service(file)).toMatchObject({ database: "postgres://a@db.example/kb", databasePasswordFile });
    expect(service(file, "postgresql://b:secret@h/kb")).toMatchObject({
      database: "postgresql://b:secret@h/kb",
    });
    expect(service("{}", "postgres://b@h/kb")).toMatchObject({ database: "postgres://b@h/kb" });
    expect(service("{}")).not.toHaveProperty("database");
  });

  it.each([
    ["mysql://a:hush@h/kb", "expected an address such as postgres://"],
    ["hush", "expected an address such as postgres://"],
    ["postgres://a:hush@h", "expected the name of the database"],
    ["postgres://a:hush@h,i/db", "expected one host"],
    ["postgres://a@h/db?target_session_attrs=read-write&host=h,i", "expected one host"],
    ["postgres://a:hush@h/%zz", "expected two hexadecimal digits"],
    ["postgres://a:hush@h/kb", "expected no password in the address"],
    ["postgres://a@h/kb?password=hush", "expected no password in the address"],
  ])("refuses the database %s without repeating it", (database, words) => {
    writeFileSync(join(folder, "kbsync.config.json"), JSON.stringify({ service: { database } }));
    expect(() => load()).toThrow(words);
    expect(() => load()).not.toThrow("hush");
    if (words.includes("password")) return;
    writeFileSync(join(folder, "kbsync.config.json"), "{}");
    const given = { env: { KBSYNC_DATABASE: database } };
    expect(() => load(given)).toThrow(`KBSYNC_DATABASE: ${words}`);
    expect(() => load(given)).not.toThrow("hush");
  });

  it("takes a folder or a bucket for uploaded files", () => {
    const files = (service: object) => {
      writeFileSync(join(folder, "kbsync.config.json"), JSON.stringify({ service: { ...service } }));
      return filesOf(load().service);
    };
    expect(files({})).toBeUndefined();
    expect(files({ files: "shared/files" })).toEqual({ kind: "folder", path: join(folder, "shared/files") });
    expect(files({ files: "/mnt/files" })).toEqual({ kind: "folder", path: "/mnt/files" });
    expect(files({ files: "s3://my.bucket" })).toEqual({ kind: "bucket", bucket: "my.bucket", prefix: "" });
    for (const path of ["a/b", "a/b/"])
      expect(files({ files: `s3://bucket/${path}` })).toEqual({
        kind: "bucket",
        bucket: "bucket",
        prefix: "a/b/",
      });
  });

  it.each<[{ files?: string; sources?: object[] }, string]>([
    [{ files: "https://bucket.example" }, "service.files: expected a folder, or a bucket"],
    [{ files: "s3://Bucket" }, "service.files: expected a folder, or a bucket"],
    [{ files: "s3://key:secret@bucket" }, "service.files: expected a folder, or a bucket"],
    [{ files: "s3://bucket/a b" }, "service.files: expected a folder, or a bucket"],
    [{ files: "s3://bucket/a//b" }, "service.files: expected a prefix without empty parts"],
    [{ files: "s3://bucket/../b" }, "service.files: expected a prefix without empty parts"],
    [{ files: "s3://bucket//" }, "service.files: expected a prefix without empty parts"],
    [{ files: "" }, "service.files"],
    [{ files: "watched/files", sources: [{ path: "watched" }] }, "lies inside the source"],
  ])("refuses the files %j", ({ sources = [], ...service }, words) => {
    writeFileSync(join(folder, "kbsync.config.json"), JSON.stringify({ service: { ...service }, sources }));
    expect(() => load()).toThrow(words);
  });

  it("refuses the password of no database, and checks files for secrets if the database is elsewhere", () => {
    const blocks = (service: object, env = {}): boolean => {
      writeFileSync(join(folder, "kbsync.config.json"), JSON.stringify({ service: { ...service } }));
      return load({ env }).sync.blockSecrets === true;
    };
    expect(() => blocks({ databasePasswordFile: "pw" })).toThrow("expected service.database");
    expect(blocks({ database: "postgres://a@db.example/kb" })).toBe(true);
    expect(blocks({ database: "postgres://a@127.0.0.1/kb" })).toBe(false);
    expect(blocks({ files: "s3://bucket" })).toBe(true);
    expect(blocks({ files: "s3://bucket" }, { AWS_ENDPOINT_URL_S3: "http://127.0.0.1:9000" })).toBe(false);
    expect(blocks({ database: "postgres://a@%2Frun%2Fpostgresql/kb" })).toBe(false);
    expect(blocks({ database: "postgres:///kb?host=/run/postgresql" })).toBe(false);
    expect(blocks({ database: "postgres:///kb?host=db.example" })).toBe(true);
  });

  it("prefers --config to KBSYNC_CONFIG to the file in the working folder", () => {
    writeFileSync(join(folder, "kbsync.config.json"), '{"stateDir": "here"}');
    writeFileSync(join(folder, "env.json"), '{"stateDir": "env"}');
    writeFileSync(join(folder, "flag.json"), '{"stateDir": "flag"}');
    expect(load().stateDir).toBe(join(folder, "here"));
    expect(load({ env: { KBSYNC_CONFIG: "env.json" } }).stateDir).toBe(join(folder, "env"));
    expect(load({ env: { KBSYNC_CONFIG: "env.json" }, file: "flag.json" }).stateDir).toBe(
      join(folder, "flag"),
    );
  });

  it("names a configuration file that is missing", () => {
    expect(() => load({ file: "none.json" })).toThrow(/there is no configuration file .*none\.json$/);
  });

  it("resolves paths relative to the file, and prefers systemd's state folder to the user's", () => {
    writeFileSync(join(folder, "c.json"), '{"sources": [{"path": "docs"}]}');
    const config = load({
      cwd: "/",
      file: join(folder, "c.json"),
      env: { STATE_DIRECTORY: "/var/lib/kbsync:/b" },
    });
    expect(config.sources[0]?.absolutePath).toBe(join(folder, "docs"));
    expect(config.stateDir).toBe("/var/lib/kbsync");
  });

  it("uses a folder on the command line as the only source, with its configured settings if any", () => {
    writeFileSync(
      join(folder, "kbsync.config.json"),
      '{"sources": [{"path": "a", "ownerId": "me"}, {"path": "b", "collection": "moderate"}]}',
    );
    expect(load({ folders: [{ path: "b" }] }).sources).toMatchObject([
      { absolutePath: join(folder, "b"), collection: "moderate" },
    ]);
    expect(load({ folders: [{ path: "c" }] }).sources).toMatchObject([
      { absolutePath: join(folder, "c"), collection: "fastest" },
    ]);
  });
});

describe("overlapping folders are refused", () => {
  const cases: [name: string, config: object, message: RegExp][] = [
    ["one source twice", { sources: [{ path: "a" }, { path: "./a" }] }, /are one folder/],
    [
      "state inside a source",
      { stateDir: "a/state", sources: [{ path: "a" }] },
      /state folder .*\/a\/state lies inside/,
    ],
    ["state as a source", { stateDir: "a", sources: [{ path: "a" }] }, /lies inside/],
  ];
  it.each(cases)("refuses the sources of a configuration: %s", (_name, config, message) => {
    writeFileSync(join(folder, "kbsync.config.json"), JSON.stringify(config));
    expect(() => load()).toThrow(message);
  });

  it("refuses folders that overlap through a symbolic link", () => {
    mkdirSync(join(folder, "real"));
    symlinkSync(join(folder, "real"), join(folder, "link"));
    const config = (value: object): void =>
      writeFileSync(join(folder, "kbsync.config.json"), JSON.stringify(value));
    config({ sources: [{ path: "real" }, { path: "link" }] });
    expect(() => load()).toThrow(/sources .*\/real and .*\/link are one folder/);
    config({ stateDir: "real/state/not/there/yet", sources: [{ path: "link" }] });
    expect(() => load()).toThrow(/lies inside the source .*\/link/);
  });

  it("accepts a source inside another one, and knows it by its path and through a link", () => {
    mkdirSync(join(folder, "real", "inner"), { recursive: true });
    symlinkSync(join(folder, "real"), join(folder, "link"));
    const sources = [{ path: "real" }, { path: "link/inner" }, { path: "real/gone" }];
    writeFileSync(join(folder, "kbsync.config.json"), JSON.stringify({ sources }));
    expect(load().sources.map(({ innerFolders }) => innerFolders)).toEqual([["inner", "gone"], [], []]);
  });

  it("accepts siblings with a common prefix, and a hidden state folder", () => {
    writeFileSync(
      join(folder, "kbsync.config.json"),
      '{"stateDir": "a/.kbsync", "sources": [{"path": "a"}, {"path": "ab"}, {"path": "..c"}]}',
    );
    expect(load().sources).toHaveLength(3);
  });
});

it("reduces the default overlap of small chunks", () => {
  const [source] = parseConfig(
    '{"sources": [{"path": "a", "settings": {"chunkSize": 50}}]}',
    "c.json",
  ).sources;
  expect(source?.settings).toEqual({ strategy: "recursive", chunkSize: 50, chunkOverlap: 5 });
});

it("gives two folders of the same name different owners, and one folder a stable owner", () => {
  const owner = (folderPath: string): string | undefined =>
    load({ folders: [{ path: folderPath }] }).sources[0]?.ownerId;
  expect(owner("/a/docs")).toMatch(/^docs-[0-9a-f]{8}$/);
  expect(owner("/a/docs")).toBe(owner("/a/docs/"));
  expect(owner("/a/docs")).not.toBe(owner("/b/docs"));
});
