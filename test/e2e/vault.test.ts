import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AGES, connected } from "../mcp/fixture.ts";
import {
  agreed,
  kbsync,
  list,
  repositoryRoot,
  type Running,
  send,
  type SourceLine,
  startUp,
  stop,
  temporaryFolder,
} from "./program.ts";

const NOTES = 500;
/** A search returns at most 100 results, so notes are searched a shard at a time. */
const SHARDS = 10;
const FOLDERS = ["", "work", "work/plans", "work/plans/2026", "home/garden & yard", "日記", "a/b/c/d"];
const TAGS = ["sea", "project/alpha", "Draft", "überblick", "2024"];
const DAY_MS = 24 * 3600 * 1000;
const FIRST_MS = Date.parse("2024-01-01T00:00:00Z");

/** A note as a person keeps it. */
interface Note {
  readonly path: string;
  readonly shard: number;
  readonly tags: readonly string[];
  readonly language: string | undefined;
  readonly done: boolean | undefined;
  readonly priority: number | string | undefined;
  readonly status: string | undefined;
  readonly modifiedMs: number;
}

/** Returns a pseudo-random whole number below `below`, the same for the same arguments. */
function pick(seed: number, below: number): number {
  return (Math.imul(seed * 2 + 1, 0x9e3779b1) >>> 9) % below;
}

const notes = Array.from({ length: NOTES }, (_, at): Note => {
  const folder = FOLDERS[pick(at, FOLDERS.length)] ?? "";
  return {
    path: folder === "" ? `note ${at}.md` : `${folder}/note ${at}.md`,
    shard: at % SHARDS,
    tags: TAGS.filter((_tag, index) => pick(at * 31 + index, 3) === 0),
    language: at % 3 === 0 ? (at % 2 === 0 ? "en" : "de") : undefined,
    done: at % 4 === 0 ? at % 8 === 0 : undefined,
    priority: at % 5 === 0 ? (at % 10 === 0 ? "1" : 1 + pick(at, 3) / 2) : undefined,
    status: at % 7 === 0 ? "open" : undefined,
    modifiedMs: FIRST_MS + pick(at + 7, 700) * DAY_MS + pick(at + 13, 86_400) * 1000,
  };
});

/** The front matter of a note, its tags in one of the forms that Obsidian takes. */
function frontMatter({ shard, tags, language, done, priority, status }: Note, at: number): string {
  const forms = [
    `tags: [${tags.map((tag) => JSON.stringify(tag)).join(", ")}]`,
    `tags:\n${tags.map((tag) => `  - "#${tag}"`).join("\n")}`,
    `tags: "${tags.join(", ")}"`,
    `tags: "${tags.map((tag) => `#${tag}`).join(" ")}"`,
  ];
  return [
    "---",
    "aliases: [Another name]",
    `shard: ${shard}`,
    ...(tags.length === 0 ? [] : [forms[at % forms.length]]),
    ...(language === undefined ? [] : [`lang: ${language}`]),
    ...(done === undefined ? [] : [`done: ${done}`]),
    ...(priority === undefined ? [] : [`priority: ${JSON.stringify(priority)}`]),
    ...(status === undefined ? [] : [`status: ${status}`]),
    "---",
  ].join("\n");
}

const temporary = temporaryFolder("vault");
const vault = join(temporary.path, "vault");
const state = join(temporary.path, "state");
let up: Running;
let source: SourceLine;
let pathOf: ReadonlyMap<string, string>;

beforeAll(async () => {
  const put = (path: string, text: string): string => {
    const file = join(vault, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  };
  for (const [at, note] of notes.entries()) {
    const body = `# Entry ${at}\n\nThe harbour, see [[note ${at + 1}]].`;
    const file = put(note.path, `${frontMatter(note, at)}\n${body}\n`);
    utimesSync(file, note.modifiedMs / 1000, note.modifiedMs / 1000);
  }
  put(".obsidian/app.json", "{}");
  put(".trash/gone.md", "The harbour of before.");
  up = await startUp(["up", vault, "--port", "0", "--tier", "fastest"], state);
  source = await agreed(vault, state, NOTES);
  const resources = await list(up, source.collectionId ?? "", source.ownerId);
  pathOf = new Map(resources.map(({ _id, metadata }) => [_id, String(metadata?.["path"])]));
}, 180_000);
afterAll(async () => {
  await stop(up);
  temporary.remove();
});

/** Returns the paths of the notes that a filter finds. */
async function found(filter: object): Promise<string[]> {
  const shards = await Promise.all(
    Array.from({ length: SHARDS }, async (_, shard) => {
      const body = {
        query: "harbour",
        collection_id: source.collectionId,
        owner_id: source.ownerId,
        top_k: 100,
        filter: { and: [filter, { shard }] },
      };
      const { status, json } = await send(up, "POST", "/rag/query", { body: JSON.stringify(body) });
      expect(status).toBe(200);
      const { results } = json as { results: { payload: { resourceId: string } }[] };
      return results.map(({ payload }) => pathOf.get(payload.resourceId) ?? "unknown");
    }),
  );
  return shards.flat().toSorted();
}

const wanted = (fits: (note: Note) => boolean): string[] =>
  notes
    .filter(fits)
    .map(({ path }) => path)
    .toSorted();
const isBelow =
  (folder: string) =>
  ({ path }: Note): boolean =>
    path.startsWith(`${folder}/`);

/** A filter, and which notes it has to find. */
type Case = [name: string, filter: object, fits: (note: Note) => boolean];

const CASES: readonly Case[] = [
  ...TAGS.map((tag): Case => [`the tag ${tag}`, { tags: tag }, (note) => note.tags.includes(tag)]),
  ...["work", "work/plans", "home", "home/garden & yard", "日記", "a/b", "a/b/c/d"].map((folder): Case => [
    `the folder ${folder}`,
    { folder },
    isBelow(folder),
  ]),
  ...(["en", "de"] as const).map((language): Case => [
    `the language ${language}`,
    { language },
    (note) => note.language === language,
  ]),
  ["a name", { name: "note 77.md" }, ({ path }) => path.endsWith("note 77.md")],
  ["no tag", { not: { tags: { in: TAGS } } }, ({ tags }) => tags.length === 0],
  [
    "two tags",
    { and: [{ tags: "sea" }, { tags: "Draft" }] },
    ({ tags }) => tags.includes("sea") && tags.includes("Draft"),
  ],
  ["a true property", { done: true }, ({ done }) => done === true],
  ["a false property", { done: false }, ({ done }) => done === false],
  [
    "a property of the name of one of the service's",
    { "fm.status": "open" },
    ({ status }) => status === "open",
  ],
  ["a number", { priority: { gte: 1.5 } }, ({ priority }) => typeof priority === "number" && priority >= 1.5],
  ["a number as a text", { priority: "1" }, ({ priority }) => priority === "1"],
  [
    "a time of change",
    { modified: { gte: "2024-06-01", lt: "2025-03-01T02:00:00+02:00" } },
    ({ modifiedMs }) => modifiedMs >= Date.parse("2024-06-01") && modifiedMs < Date.parse("2025-03-01"),
  ],
  [
    "one condition or another",
    { or: [{ folder: "日記" }, { language: "en", done: false }] },
    (note) => isBelow("日記")(note) || (note.language === "en" && note.done === false),
  ],
];

describe("a vault of 500 notes, synced from its files", () => {
  it.each(CASES)("answers a filter by %s exactly", async (_name, filter, fits) => {
    expect(wanted(fits)).not.toEqual([]);
    expect(await found(filter)).toEqual(wanted(fits));
  });

  it("answers filters on the command line and over MCP as over HTTP", async () => {
    const filter = { and: [{ folder: "work/plans" }, { tags: "sea" }, { shard: 3 }] };
    const fits = (note: Note): boolean =>
      isBelow("work/plans")(note) && note.tags.includes("sea") && note.shard === 3;
    expect(wanted(fits)).not.toEqual([]);
    const asked = ["--filter", JSON.stringify(filter), "-k", "100"];
    const { stdout } = await kbsync(["search", "harbour", "--json", ...asked, "--state-dir", state]);
    const { results } = JSON.parse(stdout) as { results: { path: string }[] };
    expect(results.map(({ path }) => path).toSorted()).toEqual(wanted(fits));

    const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: AGES[0] } });
    const args = [join(repositoryRoot, "dist", "main.js"), "mcp", "--state-dir", state];
    await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: "inherit" }));
    const input = { query: "harbour", filter, top_k: 100, max_tokens: 25_000 };
    const { data } = await connected(client).call("search", input);
    expect(data.results.map(({ path }: { path: string }) => path).toSorted()).toEqual(wanted(fits));
    await client.close();
  });
});
