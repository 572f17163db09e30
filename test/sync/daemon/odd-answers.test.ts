import { afterEach, describe, expect, it } from "vitest";
import { openWorld, type World } from "./harness.ts";

let world: World;
afterEach(async () => {
  await world.end();
});

type Shown = (record: Record<string, unknown>) => unknown;
const CREATED = { action: "create", outcome: "done" };
const without = (field: string, record: Record<string, unknown>): unknown => ({
  ...record,
  [field]: undefined,
});
const numberOf = (id: unknown): number => parseInt(String(id).slice(0, 12), 16);

describe("a service whose answers have fields that cannot be used", () => {
  it.each<[what: string, shown: Shown, named: string]>([
    ["null as description", (record) => ({ ...record, description: null }), "null as description"],
    ["null as title", (record) => ({ ...record, title: null }), "null as title"],
    ["null as isDeleted", (record) => ({ ...record, isDeleted: null }), "null as isDeleted"],
    ["null as ownerId", (record) => ({ ...record, ownerId: null }), "null as ownerId"],
    ["a numeric createdAt", (record) => ({ ...record, createdAt: 1_700_000_000 }), "a number as createdAt"],
    [
      "a text as chunkSize",
      (record) => ({ ...record, settings: { chunkSize: "800", chunkOverlap: null } }),
      "a text as settings.chunkSize",
    ],
    ["a list as settings", (record) => ({ ...record, settings: ["800"] }), "a list as settings"],
    ["a text as metadata", (record) => ({ ...record, metadata: "none" }), "a text as metadata"],
    ["an empty collectionId", (record) => ({ ...record, collectionId: "" }), "an empty text as collectionId"],
  ])("creates each file once and updates it, with %s", async (_, shown, named) => {
    const notices: string[] = [];
    world = await openWorld({ shown });
    for (const name of ["a.txt", "b.txt", "c.txt"]) world.write(name, `the text of ${name}`);
    await world.sync({ onNotice: (words) => notices.push(words) });
    expect(world.service.count("create")).toBe(3);
    expect(world.activity).toMatchObject([CREATED, CREATED, CREATED]);
    expect(notices.filter((words) => words.includes(named))).toHaveLength(1);
    world.write("a.txt", "another text");
    await world.sync();
    expect(world.service.count("create")).toBe(3);
    expect(world.service.live().map(({ content }) => content)).toContain("another text");
  });

  it.each<[what: string, shown: Shown]>([
    ["no collectionId", (record) => without("collectionId", record)],
    ["an unknown status", (record) => ({ ...record, metadata: { status: "READY" } })],
    ["nothing but the _id", ({ _id }) => ({ _id })],
  ])("creates each file once, with %s", async (_, shown) => {
    world = await openWorld({ shown });
    for (const name of ["a.txt", "b.txt", "c.txt"]) world.write(name, `the text of ${name}`);
    await world.sync();
    await world.sync();
    expect(world.service.count("create")).toBe(3);
    expect(world.activity).toMatchObject([CREATED, CREATED, CREATED]);
  });

  it("uses a numeric _id as its decimal text", async () => {
    world = await openWorld({ shown: ({ _id, ...record }) => ({ ...record, _id: numberOf(_id) }) });
    world.write("a.txt", "one");
    await world.sync();
    world.write("a.txt", "two, longer");
    const updates: (string | undefined)[] = [];
    world.service.fault = ({ operation, docId }) => {
      if (operation !== "update") return undefined;
      updates.push(docId);
      return { kind: "answer", status: 200, body: '{"success":true}' };
    };
    await world.sync();
    expect(updates).toEqual([String(numberOf(world.service.live()[0]?._id))]);
    expect(world.service.count("create")).toBe(1);
  });

  it.each<[what: string, shown: Shown]>([
    ["no _id", (record) => without("_id", record)],
    ["null as _id", (record) => ({ ...record, _id: null })],
    ["an empty _id", (record) => ({ ...record, _id: "" })],
    ["an _id that JSON cannot hold", (record) => ({ ...record, _id: 2 ** 60 })],
  ])("fails each file by name and creates no more, with %s", async (_, shown) => {
    world = await openWorld({ collections: true, shown });
    const notices: string[] = [];
    world.write("a.txt", "one");
    world.write("b.txt", "two");
    await world.sync({ onNotice: (words) => notices.push(words) });
    const daemon = world.daemon();
    await daemon.syncOnce();
    const failed = { state: "failed", message: "the service's answer names no _id" };
    expect(daemon.files({ limit: 10 })).toMatchObject([
      { path: "a.txt", ...failed },
      { path: "b.txt", ...failed },
    ]);
    expect(world.service.count("create")).toBe(2);
    expect(notices.filter((words) => words.includes("as _id"))).not.toEqual([]);
  });

  it("takes from the list what an answer did not name", async () => {
    let isCreate = true;
    world = await openWorld({
      collections: true,
      shown: (record) => {
        const { _id, ...nameless } = record;
        return isCreate && !("content" in record) ? nameless : { ...nameless, _id };
      },
    });
    world.write("a.txt", "one");
    await world.sync();
    isCreate = false;
    world.write("a.txt", "two, longer");
    await world.sync();
    expect(world.service.count("create")).toBe(1);
    expect(world.service.live()).toMatchObject([{ content: "two, longer" }]);
  });

  it("lists the other resources when one has no _id", async () => {
    let nameless = "";
    world = await openWorld({
      collections: true,
      shown: (record) => (record["title"] === nameless ? { ...record, _id: null } : record),
    });
    world.write("a.txt", "one");
    world.write("b.txt", "two");
    await world.sync();
    nameless = "b.txt";
    const notices: string[] = [];
    const { url, key } = world.service;
    const daemon = world.daemon({
      onNotice: (words) => notices.push(words),
      service: { apiUrl: url, dbUrl: url, pauthkey: key, listLagMs: 0 },
    });
    const report = await daemon.audit({ repair: true });
    await daemon.syncOnce();
    // A list that lacks a resource decides nothing while the service has it.
    expect(report).toMatchObject({ findings: [], sources: [{ unjudged: 1 }] });
    expect(notices).toEqual([expect.stringContaining("1 resource")]);
    expect(world.service.count("create")).toBe(2);
  });
});
