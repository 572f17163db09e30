import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "vite";
import { describe, expect, it } from "vitest";
import { ALONE, LONG_ALONE } from "../vitest.config.ts";

/** Which folders of src/sync each folder may import beside lib, wire, config and formats; daemon.ts assembles them all. */
const SYNC: Readonly<Record<string, readonly string[]>> = {
  "scan/disk": ["plan"],
  "scan/rules": ["plan", "scan/disk"],
  "send/queue": ["plan"],
  ledger: ["plan", "scan/disk", "scan/rules"],
  "send/remote": ["plan", "scan/disk"],
  watch: ["plan", "scan/rules"],
  scan: ["plan", "scan/disk", "scan/rules"],
  "scan/read": ["plan", "scan/disk", "scan/rules"],
  "daemon/agenda": ["plan", "scan/rules", "ledger"],
  "ledger/trash": ["plan", "ledger", "send/remote"],
  send: [
    "plan",
    "scan/rules",
    "send/queue",
    "ledger",
    "daemon/agenda",
    "send/remote",
    "scan/read",
    "ledger/trash",
  ],
  "daemon/pass": ["plan", "scan/disk", "scan/rules", "ledger", "scan", "scan/read", "daemon/agenda", "send"],
  identity: ["plan", "scan/disk", "scan/rules", "ledger", "send/remote", "scan", "scan/read", "send"],
  "daemon/source": [
    "plan",
    "scan/disk",
    "scan/rules",
    "send/queue",
    "ledger",
    "daemon/agenda",
    "send",
    "daemon/pass",
    "identity",
  ],
  "operate/why": ["plan", "scan/disk", "scan/rules", "ledger", "scan", "scan/read", "send", "daemon/pass"],
  operate: [
    "ledger/trash",
    "plan",
    "scan/disk",
    "scan/rules",
    "ledger",
    "send/remote",
    "scan",
    "scan/read",
    "send",
    "daemon/pass",
    "identity",
    "daemon/source",
    "operate/why",
  ],
  daemon: [
    "plan",
    "scan/disk",
    "scan/rules",
    "ledger",
    "send/remote",
    "watch",
    "scan/read",
    "ledger/trash",
    "send",
    "identity",
    "daemon/source",
    "operate",
  ],
};
const SYNC_COMMON = ["lib", "wire", "config", "formats", "formats/markup"];
const ALL_OF_SYNC = [
  "sync",
  "sync/plan",
  "sync/daemon/control",
  ...Object.keys(SYNC).map((name) => `sync/${name}`),
];

/** Which folders below src/ each folder may import. A folder may always import itself; see docs/ARCHITECTURE.md. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  wire: ["lib"],
  config: ["lib", "wire"],
  "formats/markup": ["lib"],
  formats: ["lib", "wire", "formats/markup"],
  "sync/plan": ["lib", "wire", "config"],
  ...Object.fromEntries(
    Object.entries(SYNC).map(([name, others]) => [
      `sync/${name}`,
      [...SYNC_COMMON, ...others.map((other) => `sync/${other}`)],
    ]),
  ),
  "sync/daemon/control": [...SYNC_COMMON, "sync", "sync/operate"],
  sync: [...SYNC_COMMON, ...ALL_OF_SYNC.filter((name) => name !== "sync/daemon/control")],
  "kb/lexical": ["lib"],
  "kb/embed": ["lib", "formats/markup", "kb/models"],
  "kb/fetch": ["lib"],
  "kb/index": ["kb/lexical"],
  "kb/queue": ["lib"],
  "kb/store": ["lib", "wire", "formats/markup", "kb/queue", "kb/index", "kb/lexical"],
  "kb/uploads": ["lib", "wire", "kb/store"],
  "kb/jobs": ["lib", "wire", "kb/queue", "kb/store", "kb/ingest", "kb/resources"],
  "kb/ingest/chunk": ["lib", "wire", "kb/store"],
  "kb/ingest": ["lib", "wire", "formats/markup", "kb/store", "kb/embed", "kb/models", "kb/ingest/chunk"],
  "kb/search": ["lib", "wire", "kb/store", "kb/embed", "kb/models", "kb/lexical"],
  "kb/resources": [
    "lib",
    "wire",
    "formats/markup",
    "kb/fetch",
    "kb/queue",
    "kb/store",
    "kb/uploads",
    "kb/ingest",
    "kb/search",
  ],
  "kb/keys": ["lib", "wire", "kb/store", "kb/resources"],
  "kb/console": ["lib", "wire", "kb/store", "kb/resources"],
  "kb/webhooks": ["lib", "wire", "kb/queue", "kb/store", "kb/resources"],
  "kb/models": ["lib"],
  "kb/agents": ["lib", "wire", "kb/store", "kb/resources"],
  "kb/chat": [
    "lib",
    "wire",
    "kb/agents",
    "kb/models",
    "kb/fetch",
    "kb/queue",
    "kb/uploads",
    "kb/store",
    "kb/lexical",
    "kb/ingest",
    "kb/ingest/chunk",
    "kb/resources",
    "kb/search",
    "kb/webhooks",
  ],
  "kb/http": [
    "lib",
    "wire",
    "kb/agents",
    "kb/chat",
    "kb/console",
    "kb/jobs",
    "kb/keys",
    "kb/uploads",
    "kb/webhooks",
    "kb/resources",
    "kb/store",
    "kb/ingest",
    "kb/search",
  ],
  kb: [
    "lib",
    "wire",
    "kb/chat",
    "kb/console",
    "kb/models",
    "kb/webhooks",
    "kb/fetch",
    "kb/http",
    "kb/jobs",
    "kb/queue",
    "kb/keys",
    "kb/uploads",
    "kb/resources",
    "kb/store",
    "kb/embed",
    "kb/ingest",
    "kb/search",
  ],
  console: ["wire"],
  mcp: ["lib", "wire"],
  backup: ["lib"],
  metrics: ["lib", "kb", "sync/send/remote", "sync/daemon"],
  system: ["lib"],
  cli: [
    "lib",
    "wire",
    "config",
    "formats",
    ...ALL_OF_SYNC,
    "kb",
    "kb/chat",
    "kb/console",
    "kb/http",
    "kb/lexical",
    "kb/embed",
    "kb/fetch",
    "kb/ingest",
    "kb/resources",
    "kb/keys",
    "kb/uploads",
    "kb/store",
    "mcp",
    "backup",
    "metrics",
    "system",
  ],
  "": ["cli"],
};

interface Import {
  readonly file: string;
  readonly specifier: string;
  readonly typeOnly: boolean;
}

const src = join(dirname(fileURLToPath(import.meta.url)), "..", "src");
const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));
const imports = files.flatMap((file) => importsOf(file, readFileSync(join(src, file), "utf8")));

function importsOf(file: string, text: string): Import[] {
  const statements = text.matchAll(
    /^(?:import|export)\s+(type\s)?[^;]*?from\s+"([^"]+)"|^import\s+"([^"]+)"/gm,
  );
  const dynamic = text.matchAll(/\bimport\(\s*"([^"]+)"/g);
  return [
    ...[...statements].map((match) => ({
      file,
      specifier: match[2] ?? match[3] ?? "",
      typeOnly: match[1] !== undefined,
    })),
    ...[...dynamic].map((match) => ({ file, specifier: match[1] ?? "", typeOnly: false })),
  ];
}

/** The layer of a file: the longest folder in the table that holds it. */
function layerOf(file: string): string {
  const folder = dirname(file) === "." ? "" : dirname(file);
  const layer = Object.keys(ALLOWED)
    .filter((name) => name !== "" && (folder === name || folder.startsWith(`${name}/`)))
    .toSorted((a, b) => b.length - a.length)[0];
  if (layer !== undefined) return layer;
  expect(folder, `src/${file} lies in a folder that the architecture does not know`).toBe("");
  return "";
}

/** Which files below src/ each file imports. */
function importedFiles(): ReadonlyMap<string, ReadonlySet<string>> {
  const graph = new Map(files.map((file) => [file, new Set<string>()]));
  for (const { file, specifier } of imports) {
    if (specifier.startsWith(".")) graph.get(file)?.add(normalize(join(dirname(file), specifier)));
  }
  return graph;
}

/** The circles of a graph, each as the nodes that reach each other. */
function circlesOf(graph: ReadonlyMap<string, ReadonlySet<string>>): readonly (readonly string[])[] {
  const reachedFrom = new Map(
    [...graph.keys()].map((start) => {
      const reached = new Set<string>();
      const next = [...(graph.get(start) ?? [])];
      for (let node = next.pop(); node !== undefined; node = next.pop()) {
        if (reached.has(node)) continue;
        reached.add(node);
        next.push(...(graph.get(node) ?? []));
      }
      return [start, reached] as const;
    }),
  );
  const reaches = (from: string, to: string): boolean => reachedFrom.get(from)?.has(to) === true;
  const circular = [...graph.keys()].filter((node) => reaches(node, node));
  return circular
    .filter((node) => !circular.some((other) => other < node && reaches(node, other) && reaches(other, node)))
    .map((first) => circular.filter((node) => reaches(first, node) && reaches(node, first)));
}

describe("imports run one way", () => {
  it("finds the sources", () => {
    expect(files.length).toBeGreaterThan(20);
    expect(imports.length).toBeGreaterThan(50);
  });

  it("imports run one way between folders", () => {
    const breaches = imports
      .filter(({ specifier }) => specifier.startsWith("."))
      .filter(({ file, specifier }) => {
        const from = layerOf(file);
        const to = layerOf(relative(src, normalize(join(src, dirname(file), specifier))));
        return from !== to && !(ALLOWED[from] ?? []).includes(to);
      })
      .map(({ file, specifier }) => `src/${file} imports ${specifier}`);
    expect(breaches).toEqual([]);
  });

  it("sync and kb never meet", () => {
    const breaches = imports.filter(
      ({ file, specifier }) =>
        (file.startsWith("sync/") && /(^|\/)kb\//.test(specifier)) ||
        (file.startsWith("kb/") && /(^|\/)sync\//.test(specifier)),
    );
    expect(breaches).toEqual([]);
  });

  it.each([
    ["sqlite", "cli/state/embedded-store.ts"],
    ["postgres", "cli/compose/store.ts"],
  ])("only the store's own folder and one file of the program name %s", (store, only) => {
    const breaches = imports.filter(
      ({ file, specifier }) =>
        specifier.split("/").includes(store) && !file.startsWith(`kb/store/${store}/`) && file !== only,
    );
    expect(breaches).toEqual([]);
  });

  it.each(["sync/plan/", "kb/ingest/chunk/", "kb/lexical/"])(
    "%s imports no package and no node: module",
    (folder) => {
      const breaches = imports.filter(
        ({ file, specifier, typeOnly }) => file.startsWith(folder) && !specifier.startsWith(".") && !typeOnly,
      );
      expect(breaches).toEqual([]);
    },
  );

  it("the plan takes only types from outside, so that nothing comes in by a back door", () => {
    const breaches = imports.filter(
      ({ file, specifier, typeOnly }) =>
        file.startsWith("sync/plan/") &&
        specifier.startsWith("../") &&
        !typeOnly &&
        !specifier.includes("/lib/") &&
        // Takes a text apart, as the service does.
        !specifier.endsWith("/wire/marker.ts"),
    );
    expect(breaches).toEqual([]);
  });

  it("threads of the store and of watching load no schema library, which would double their start", () => {
    const loaded = new Set([
      "kb/store/sqlite/writer-worker.ts",
      "kb/store/sqlite/reader-worker.ts",
      "sync/watch/worker.ts",
    ]);
    // A set also yields what is added while it is iterated.
    const breaches: string[] = [];
    for (const at of loaded) {
      for (const { file, specifier, typeOnly } of imports) {
        if (file !== at || typeOnly) continue;
        if (specifier.startsWith(".")) loaded.add(normalize(join(dirname(file), specifier)));
        else if (specifier === "zod") breaches.push(file);
      }
    }
    expect(loaded.size).toBeGreaterThan(50);
    expect(breaches).toEqual([]);
  });

  it("imports run in no circle of files", () => {
    expect(circlesOf(importedFiles())).toEqual([]);
  });

  it("imports run in no circle of folders", () => {
    const folders = new Map<string, Set<string>>();
    for (const [file, imported] of importedFiles()) {
      const folder = dirname(file);
      const others = [...imported].map(dirname).filter((other) => other !== folder);
      folders.set(folder, new Set([...(folders.get(folder) ?? []), ...others]));
    }
    expect(circlesOf(folders)).toEqual([]);
  });

  it("the console takes only types of the contract, and values that load no schema library", () => {
    const values = ["routes", "constants", "file-state", "marker"].map((name) => `../wire/${name}.ts`);
    const breaches = imports.filter(
      ({ file, specifier, typeOnly }) =>
        file.startsWith("console/") &&
        !typeOnly &&
        !/^\.\.?\/(?!.*wire\/)|^preact(?:\/hooks)?$|^@preact\/signals$|^marked$/.test(specifier) &&
        !values.some((value) => specifier.endsWith(value)),
    );
    expect(breaches).toEqual([]);
  });

  it("every relative import ends in .ts or .tsx", () => {
    const breaches = imports.filter(
      ({ specifier }) => specifier.startsWith(".") && !/\.tsx?$/.test(specifier),
    );
    expect(breaches).toEqual([]);
  });
});

/** Lines of a screen: the most that a function has beside the functions within it. */
const OWN_LINES_MAX = 70;
/** Most lines of a function with those within it: a factory of short functions that share its state may be longer. */
const LINES_MAX = 100;
/** Functions that may be longer, with the reason. */
const LONG: Readonly<Record<string, string>> = {
  "sync/daemon/agenda/agenda.ts openAgenda": "the table of states, with all its transitions",
  "sync/identity/apply.ts openWork": "one case for each verdict of a comparison",
  "sync/identity/contact.ts openContact": "short steps that share one state",
  "sync/send/remote/list-stream.ts splitList": "a scanner whose state changes with every byte",
  "sync/send/remote/pacer.ts openPacer": "a gate whose transitions all depend on its whole state",
  "sync/daemon/source/parts.ts openSourceParts": "wires parts that refer to each other",
};

interface SourceFunction {
  /** File and name. */
  readonly at: string;
  readonly lines: number;
  /** Without the lines of the functions within it. */
  ownLines: number;
}

/** Returns all functions of a file. One without a name has that of the variable or property that holds it. */
function functionsOf(file: string): readonly SourceFunction[] {
  const text = readFileSync(join(src, file), "utf8");
  const linesIn = ({ start, end }: { start: number; end: number }): number =>
    text.slice(start, end).split("\n").length;
  const found: SourceFunction[] = [];
  const visit = (node: unknown, name: string, outer: SourceFunction | undefined): void => {
    if (Array.isArray(node)) for (const each of node) visit(each, name, outer);
    if (!isNode(node)) return;
    const named = node.id?.name ?? node.key?.name ?? name;
    let inner = outer;
    if (/Function(?:Declaration|Expression)$/.test(node.type)) {
      const lines = linesIn(node);
      inner = { at: `${file} ${named}`, lines, ownLines: lines };
      if (outer !== undefined) outer.ownLines -= lines - 1;
      found.push(inner);
    }
    for (const each of Object.values(node)) visit(each, named, inner);
  };
  visit(parseSync(file, text).program.body, "", undefined);
  return found;
}

interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly id?: { readonly name?: string } | null;
  readonly key?: { readonly name?: string };
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

it("a function fits a screen, except those with a reason", { timeout: 60_000 }, () => {
  const long = files
    // In the console, markup takes most lines of a component.
    .filter((file) => file.endsWith(".ts"))
    .flatMap(functionsOf)
    .filter(({ lines, ownLines }) => lines > LINES_MAX || ownLines > OWN_LINES_MAX);
  expect(long.filter(({ at }) => LONG[at] === undefined)).toEqual([]);
  const at = new Set(long.map((each) => each.at));
  expect(
    Object.keys(LONG).filter((each) => !at.has(each)),
    "these need no exception any more",
  ).toEqual([]);
});

/** The folders of each part of the table in docs/ARCHITECTURE.md, in its order, named as in `ALLOWED`. */
function foldersInDocs(): ReadonlyMap<string, readonly string[]> {
  const text = readFileSync(join(src, "..", "docs", "ARCHITECTURE.md"), "utf8");
  const rows = text.matchAll(/^\| (?:\*\*\w+\*\*, `src\/?(?<part>\w*)`|(?<names>`[^|]+`)) \|/gm);
  const parts = new Map<string, string[]>();
  let part = "";
  for (const { groups } of rows) {
    if (groups?.["names"] === undefined) part = groups?.["part"] ?? "";
    const names = [...(groups?.["names"] ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
    const folders = names.map((name) =>
      name.endsWith(".ts") ? part : part === "" ? name : `${part}/${name}`,
    );
    parts.set(part, [...(parts.get(part) ?? []), ...folders]);
  }
  return parts;
}

it("docs/ARCHITECTURE.md names each folder before those of its half that it may import", () => {
  const parts = foldersInDocs();
  expect([...parts.values()].flat().toSorted()).toEqual(Object.keys(ALLOWED).toSorted());
  const breaches = ["sync", "kb"].flatMap((part) => {
    const order = parts.get(part) ?? [];
    return order.flatMap((folder, at) =>
      order
        .slice(0, at)
        .filter((earlier) => ALLOWED[folder]?.includes(earlier))
        .map((earlier) => `${folder} imports ${earlier}`),
    );
  });
  expect(breaches).toEqual([]);
});

it("docs/INVARIANTS.md names tests that exist", () => {
  const test = join(src, "..", "test");
  const text = readFileSync(join(src, "..", "docs", "INVARIANTS.md"), "utf8");
  const named = [...text.matchAll(/`([\w./-]+\.ts)`/g)].map(([, path]) => path ?? "");
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((path) => !existsSync(join(test, path)))).toEqual([]);
});

it("forms are sent by a dispatcher of the package that creates them", () => {
  // The global one may be that of the undici inside Node.js. It sends no byte of such a form, and no timeout ends the request.
  const root = join(src, "..");
  const sending = globSync("{src,test,bench}/**/*.ts", { cwd: root }).filter((path) => {
    const [imported = ""] =
      /^import [^;]* from "undici";$/m.exec(readFileSync(join(root, path), "utf8")) ?? [];
    return imported.includes("FormData") && imported.includes("request");
  });
  expect(sending.length).toBeGreaterThan(2);
  const hasOwn = (path: string): boolean =>
    /\bdispatcher\b|\bsetGlobalDispatcher\(/.test(readFileSync(join(root, path), "utf8"));
  expect(sending.filter((path) => !hasOwn(path))).toEqual([]);
});

it("test files that mock a module run without modules that other files have loaded", () => {
  const root = join(src, "..");
  const alone = new Set(globSync([...ALONE, ...LONG_ALONE], { cwd: root }));
  const mocking = globSync("test/**/*.test.ts", { cwd: root }).filter((path) =>
    /^vi\.(do)?[mM]ock\(/m.test(readFileSync(join(root, path), "utf8")),
  );
  expect(mocking.length).toBeGreaterThan(5);
  expect(mocking.filter((path) => !alone.has(path))).toEqual([]);
});
