import { hash } from "node:crypto";
import { lstatSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ActionContext } from "../../../src/sync/send/context.ts";
import { findOmission } from "../../../src/sync/identity/sample.ts";
import type { ScanEntry } from "../../../src/sync/plan/model.ts";
import type { Reply } from "../../../src/sync/send/remote/answer.ts";
import type { SearchQuery } from "../../../src/sync/send/remote/remote.ts";
import { openRules } from "../../../src/sync/scan/rules/rules.ts";
import { addFiles, makeTree, removeTree, sourceAt } from "../scan/tree.ts";

const { signal } = new AbortController();
let root: string;
let queries: SearchQuery[];
/** Cheap requests that are not answered. */
let away: number;
beforeEach(() => {
  away = 0;
  root = makeTree({});
  queries = [];
});
afterEach(() => removeTree(root));

interface Service {
  readonly collectionId?: string | undefined;
  /** Chunks that every search finds. */
  readonly found?: readonly Record<string, unknown>[];
  readonly search?: Reply<unknown>;
  /** The service's record of a resource by its id; default: 404. */
  readonly read?: Reply<unknown>;
  /** Resources that the list showed. */
  readonly shown?: readonly string[];
  /** Resources that an intent of the ledger names, and that it deleted. */
  readonly owned?: string;
  readonly deleted?: string;
  /** Text of a create without an answer, and whether it is in flight. */
  readonly sent?: string;
  readonly isBusy?: boolean;
}

const chunk = (content: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  payload: { resourceId: "doc", ownerId: "owner", collectionId: "c1", title: "a.md", content, ...more },
});

/** Writes the files and searches for them. */
async function search(
  files: Record<string, string | Buffer>,
  service: Service,
  paths: readonly string[] = Object.keys(files),
): Promise<string | undefined> {
  addFiles(root, files);
  const entries = paths.map((path): ScanEntry => {
    const { size: sizeBytes, mtimeMs, ctimeMs, ino } = lstatSync(join(root, path));
    return { path, sizeBytes, mtimeMs, ctimeMs, ino };
  });
  const rules = openRules(sourceAt(root));
  const { found = [], owned, deleted, sent } = service;
  const context = {
    collections: { id: () => ("collectionId" in service ? service.collectionId : "c1") },
    ledger: {
      flush: () => undefined,
      files: { knows: (docId: string) => docId === owned || docId === deleted },
      intents: {
        allOpen: () =>
          sent === undefined ? [] : [{ source: 1, path: "a.md", observed: { hash: hash("sha256", sent) } }],
      },
    },
    remote: {
      search: async (query: SearchQuery) => {
        queries.push(query);
        return await Promise.resolve(service.search ?? { kind: "done", value: { results: found } });
      },
      read: async () => await Promise.resolve(service.read ?? { kind: "gone" }),
      collections: async () => await Promise.resolve({ kind: (away -= 1) < 0 ? "done" : "later" }),
    },
  } as unknown as ActionContext; // What a search for omissions uses.
  const source = { id: 1, root, rules, isBusy: () => service.isBusy ?? false };
  return await findOmission(context, source, { shown: new Set(service.shown), entries, signal });
}

describe("a list leaves out a resource", () => {
  it("a list omits a resource when a search finds the text of a file without one, and nothing speaks against it", async () => {
    expect(await search({ "a.md": "the text of a" }, { found: [chunk("text  of a")] })).toContain("a.md");
    expect(queries).toEqual([
      { query: "the text of a", topK: 10, where: { collectionId: "c1", ownerId: "owner" } },
    ]);
  });

  it("a list omits a resource that the service shows by its id", async () => {
    const read: Reply<unknown> = { kind: "done", value: { isDeleted: false } };
    expect(await search({ "a.md": "text" }, { found: [chunk("text")], read })).toContain("a.md");
  });

  it("a list omits a resource though another file is being sent", async () => {
    expect(await search({ "a.md": "text" }, { found: [chunk("text")], sent: "other" })).toContain("a.md");
  });

  it("a list omits a resource that a create without an answer made", async () => {
    expect(await search({ "a.md": "text" }, { found: [chunk("text")], sent: "text" })).toContain("a.md");
  });

  it("a list omits a resource whose letters are composed in another form", async () => {
    expect(await search({ "a.md": "cafe\u0301 au lait" }, { found: [chunk("caf\u00e9 au")] })).toContain(
      "a.md",
    );
  });

  it("a list omits an uploaded file when a search finds one with its title", async () => {
    const found = [chunk("what the service read", { title: "a.pdf" })];
    expect(await search({ "a.pdf": "%PDF-1.4\npages" }, { found })).toContain("a.pdf");
    expect(queries[0]?.query).toBe("a.pdf");
  });
});

describe("a list leaves out nothing", () => {
  it.each<[what: string, service: Service]>([
    ["nothing that a search finds", { found: [] }],
    ["a resource with another text", { found: [chunk("another")] }],
    ["a resource without a text", { found: [chunk(" ")] }],
    ["another owner's resource", { found: [chunk("text", { ownerId: "other" })] }],
    ["a resource in another collection", { found: [chunk("text", { collectionId: "c2" })] }],
    ["a resource that the list showed", { found: [chunk("text")], shown: ["doc"] }],
    ["a resource that a row has", { found: [chunk("text")], owned: "doc" }],
    ["a resource that this ledger deleted", { found: [chunk("text")], deleted: "doc" }],
    [
      "a resource that the service shows as deleted",
      { found: [chunk("text")], read: { kind: "done", value: { isDeleted: true } } },
    ],
    [
      "a resource of the same bytes as a create in flight",
      { found: [chunk("text")], sent: "text", isBusy: true },
    ],
    [
      "a resource of a service that cannot be searched",
      { search: { kind: "refused", code: "c", message: "no" } },
    ],
    ["a resource of an unknown collection", { collectionId: undefined, found: [chunk("text")] }],
  ])("a list does not count as omitting %s", async (_what, service) => {
    expect(await search({ "a.md": "text" }, service)).toBeUndefined();
  });

  it("a list omits nothing if there is nothing to search for", async () => {
    expect(await search({ "a.md": " \n", "b.zip": "PK" }, { found: [chunk(" ")] })).toBeUndefined();
    expect(queries).toEqual([]);
  });
});

describe("a service that answers no search", () => {
  const unanswered = { kind: "later", acted: "no", blame: "service", reason: "not the service's" } as const;

  it("counts as one that cannot be searched, once it answers something else", async () => {
    expect(await search({ "a.md": "text", "b.md": "more" }, { search: unanswered })).toBeUndefined();
    expect(queries).toHaveLength(10);
  });

  it("is searched again while it answers nothing else", async () => {
    away = 2;
    expect(await search({ "a.md": "text" }, { search: unanswered })).toBeUndefined();
    expect(queries).toHaveLength(30);
  });
});

it("searches cover the oldest files, and files from first to last, by their first three hundred characters", async () => {
  const files = Object.fromEntries(
    Array.from({ length: 12 }, (_, n) => [`${String(n).padStart(2, "0")}.md`, `${n} ${"x".repeat(400)}`]),
  );
  addFiles(root, files);
  for (const [index, path] of Object.keys(files).entries())
    utimesSync(join(root, path), 0, index < 7 ? 2000 : 1000);
  await search({}, {}, Object.keys(files));
  expect(queries.map(({ query }) => Number.parseInt(query, 10))).toEqual([7, 8, 9, 10, 11, 0, 3, 6]);
  expect(new Set(queries.map(({ query }) => query.length))).toEqual(new Set([300]));
});
