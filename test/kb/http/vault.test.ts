import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBody, createMany, openRunning, type Running } from "../service/running.ts";

const NOTES = 500;
/** Notes are searched a shard at a time, because a search returns at most 100 results. */
const SHARDS = 10;
const OWNER = "vault";

type Value = string | number | boolean | null;
/** Metadata of a note, as a client sends it. */
type Note = Readonly<Record<string, Value | readonly Value[] | Readonly<Record<string, Value>>>>;

const DAY_MS = 24 * 3600 * 1000;
const FIRST_MS = Date.parse("2024-01-01T00:00:00Z");
const FOLDERS = [
  "",
  "work",
  "work/plans",
  "work/plans/2026",
  "home",
  "home/garden & yard",
  "日記",
  "a/b/c/d",
];
const TAGS = ["sea", "moon", "project/alpha", "project/beta", "draft", "Draft", "überblick", "2024", "to do"];

/** Returns a pseudo-random whole number below `below`, the same for the same arguments. */
function pick(seed: number, below: number): number {
  return (Math.imul(seed * 2 + 1, 0x9e3779b1) >>> 9) % below;
}

/** Formats a time in one of the forms that clients and front matter use. */
function dateOf(ms: number, form: number): string {
  const hours = ["+02:00", "-07:30"][form - 2];
  if (hours === undefined)
    return form === 0 ? new Date(ms).toISOString() : new Date(ms).toISOString().slice(0, 10);
  const offsetMs = form === 2 ? 2 * 3_600_000 : -7.5 * 3_600_000;
  return `${new Date(ms + offsetMs).toISOString().slice(0, 19)}${hours}`;
}

function noteOf(at: number): Note {
  const folder = FOLDERS[pick(at, FOLDERS.length)] ?? "";
  const name = `note ${at}.md`;
  const parts = folder === "" ? [] : folder.split("/");
  const tags = TAGS.filter((_, tag) => pick(at * 31 + tag, 3) === 0);
  const ms = FIRST_MS + pick(at + 7, 900) * DAY_MS + pick(at + 13, 86_400) * 1000;
  return {
    shard: at % SHARDS,
    path: [...parts, name].join("/"),
    folder: parts.map((_, end) => parts.slice(0, end + 1).join("/")),
    name,
    kind: at % 9 === 0 ? "pdf" : "md",
    modified: dateOf(ms, pick(at + 3, 4)),
    size: pick(at + 5, 20_000),
    ...(at % 3 === 0 && { language: at % 2 === 0 ? "en" : "de" }),
    ...(tags.length > 0 && { tags }),
    ...(at % 4 === 0 && { done: at % 8 === 0 }),
    ...(at % 5 === 0 && { priority: at % 10 === 0 ? "1" : 1 + pick(at, 3) / 2 }),
    ...(at % 7 === 0 && { fm: { status: at % 2 === 0 ? "open" : null } }),
  };
}

const notes = Array.from({ length: NOTES }, (_, at) => noteOf(at));

/** Returns the values of a note at a path, each item of a list by itself. */
function valuesAt(note: Note, path: string): readonly Value[] {
  const value = path.split(".").reduce<unknown>((object, key) => (object as Note | undefined)?.[key], note);
  return value === undefined ? [] : ([value].flat() as Value[]);
}

let running: Running;
let collectionId: string;
let ids: string[];
beforeAll(async () => {
  running = await openRunning();
  ids = [
    ...(await createMany(
      running,
      notes.map((metadata, at) =>
        createBody({ owner_id: OWNER, title: `Entry ${at}`, content: "The harbour.", metadata }),
      ),
    )),
  ];
  assert.equal(ids.length, NOTES);
  const { json } = await running.send("GET", "/api/rag/collections");
  collectionId = json.data.collections.find(({ resources }: { resources: number }) => resources > 0)._id;
}, 60_000);
afterAll(() => running.close());

/** Returns the numbers of the notes that a search with a filter finds, ascending. */
async function found(filter: object): Promise<number[]> {
  const shards = await Promise.all(
    Array.from({ length: SHARDS }, async (_, shard) => {
      const and = { and: [filter, { shard }] };
      const query = {
        query: "harbour",
        collection_id: collectionId,
        owner_id: OWNER,
        top_k: 100,
        filter: and,
      };
      const { status, json } = await running.send("POST", "/rag/query", { body: query });
      expect(status).toBe(200);
      return json.results.map((result: { payload: { resourceId: string } }) =>
        ids.indexOf(result.payload.resourceId),
      );
    }),
  );
  return shards.flat().toSorted((a, b) => a - b);
}

/** Returns the numbers of the notes that fit, ascending. */
function wanted(fits: (note: Note) => boolean): number[] {
  return notes.flatMap((note, at) => (fits(note) ? [at] : []));
}

const has =
  (path: string, ...values: Value[]) =>
  (note: Note) =>
    valuesAt(note, path).some((value) => values.includes(value));
const moment = (note: Note): number => Date.parse(note["modified"] as string);

describe("a vault of 500 notes", () => {
  it.each(["folder", "tags", "kind", "language", "done", "priority", "fm.status"])(
    "answers a filter by each value of %s exactly",
    async (field) => {
      const values = [...new Set(notes.flatMap((note) => valuesAt(note, field)))];
      for (const value of values) {
        expect({ value, found: await found({ [field]: value }) }).toEqual({
          value,
          found: wanted(has(field, value)),
        });
      }
    },
  );

  it.each<[string, object, (note: Note) => boolean]>([
    ["a path", { path: "work/plans/note 8.md" }, has("path", "work/plans/note 8.md")],
    ["a name", { name: "note 77.md" }, has("name", "note 77.md")],
    ["one of some tags", { tags: { in: ["sea", "to do"] } }, has("tags", "sea", "to do")],
    ["no tag", { not: { tags: { in: TAGS } } }, (note) => note["tags"] === undefined],
    [
      "all of some tags",
      { and: [{ tags: "sea" }, { tags: "moon" }] },
      (note) => has("tags", "sea")(note) && has("tags", "moon")(note),
    ],
    [
      "a folder but not one below it",
      { folder: "work", not: { folder: "work/plans" } },
      (note) => has("folder", "work")(note) && !has("folder", "work/plans")(note),
    ],
    [
      "a size",
      { size: { gte: 5000, lt: 12_000 } },
      (note) => Number(note["size"]) >= 5000 && Number(note["size"]) < 12_000,
    ],
    ["a priority that is a number", { priority: { gt: 0 } }, (note) => typeof note["priority"] === "number"],
    [
      "modified since a day",
      { modified: { gte: "2025-06-01" } },
      (note) => moment(note) >= Date.parse("2025-06-01"),
    ],
    [
      "modified before a moment in another zone",
      { modified: { lt: "2025-03-01T02:00:00+02:00" } },
      (note) => moment(note) < Date.parse("2025-03-01"),
    ],
    [
      "modified in a month",
      { modified: { gte: "2024-02-01", lt: "2024-03-01" } },
      (note) => moment(note) >= Date.parse("2024-02-01") && moment(note) < Date.parse("2024-03-01"),
    ],
    [
      "one condition or another",
      { or: [{ language: "de" }, { done: true }] },
      (note) => has("language", "de")(note) || has("done", true)(note),
    ],
  ])("answers a filter by %s exactly", async (_name, filter, fits) => {
    expect(await found(filter)).toEqual(wanted(fits));
  });

  it("finds each folder, name and tag by its words", async () => {
    const words = async (query: string): Promise<number[]> => {
      const shards = Array.from({ length: SHARDS }, async (_, shard) => {
        const body = { query, collection_id: collectionId, owner_id: OWNER, top_k: 100, filter: { shard } };
        const { json } = await running.send("POST", "/rag/query", { body });
        return json.results.map((result: { payload: { resourceId: string } }) =>
          ids.indexOf(result.payload.resourceId),
        );
      });
      return (await Promise.all(shards)).flat().toSorted((a, b) => a - b);
    };
    expect(await words("plans")).toEqual(wanted(has("folder", "work/plans")));
    expect(await words("garden yard")).toEqual(wanted(has("folder", "home/garden & yard")));
    expect(await words("uberblick")).toEqual(wanted(has("tags", "überblick")));
    expect(await words("alpha")).toEqual(wanted(has("tags", "project/alpha")));
    expect(await words("drafts")).toEqual(wanted(has("tags", "draft", "Draft")));
    expect(await words("日記")).toEqual(wanted(has("folder", "日記")));
  });

  it("follows a changed tag after one small update", async () => {
    const id = ids[0];
    const path = `/api/rag/resource/${id}`;
    const body = { metadata: { ...notes[0], tags: ["brand new"] } };
    expect(JSON.stringify(body).length).toBeLessThan(1000);
    expect((await running.send("PUT", path, { body })).status).toBe(200);
    expect(await found({ tags: "brand new" })).toEqual([0]);
    await running.send("PUT", path, { body: { metadata: notes[0] } });
    expect(await found({ tags: "brand new" })).toEqual([]);
  });
});
