import { expect, it } from "vitest";
import type { Conditions, Hostility, OddFields } from "./history.ts";
import { openClock } from "./virtual/clock.ts";
import { openRandom } from "./virtual/random.ts";
import { PUT_ID } from "./world/hostility.ts";
import { openService, SERVICE_KEY, type SentRequest, type Service } from "./world/service.ts";

const CONDITIONS: Conditions = {
  collections: true,
  pages: false,
  keys: false,
  strictList: false,
  skewMs: 0,
  settleMs: 0,
  concurrency: 1,
  rescanMinutes: 60,
  requestTimeoutMs: 1000,
  slowDiskMs: 0,
  slowNetMs: 0,
  auditHours: 0,
  mode: "run",
  strangers: false,
  reads: true,
};
type Json = Record<string, unknown>;
interface Hostile {
  readonly service: Service;
  readonly pass: (ms: number) => Promise<void>;
  /** Status and data of an answer. */
  readonly ask: (
    operation: SentRequest["operation"],
    fields?: Json,
    docId?: unknown,
    headers?: SentRequest["headers"],
  ) => { readonly status: number; readonly data: Json };
  readonly create: (title: string, more?: Json) => Json;
  readonly list: (ownerId?: string) => readonly Json[];
}

function open(hostility: Hostility, more: Partial<Conditions> = {}): Hostile {
  const clock = openClock(async () => await Promise.resolve());
  const service = openService(clock, openRandom("hostile"), { ...CONDITIONS, ...more, hostility });
  const send = (
    operation: SentRequest["operation"],
    fields: Json,
    docId?: unknown,
    query = "",
    headers = {},
  ) => {
    const { status, text } = service.serve({
      operation,
      method: "",
      path: "",
      query: new URLSearchParams(query),
      docId: docId === undefined ? undefined : `${docId as string | number}`,
      headers: { pauthkey: SERVICE_KEY, ...headers },
      body: Buffer.from(JSON.stringify(fields)),
      begunMs: 0,
      process: 1,
    });
    const { data = {} } = JSON.parse(text) as { data?: Json };
    return { status, data };
  };
  return {
    service,
    pass: async (ms) => await clock.run(clock.nowMs() + ms, () => true),
    ask: (operation, fields = {}, docId, headers = {}) => send(operation, fields, docId, "", headers),
    create: (title, fields = {}) => {
      const resource = { title, description: "About it", content: `text of ${title}` };
      return send("create", { ...resource, collection_details: "fastest", owner_id: "us", ...fields }).data;
    },
    list: (ownerId = "us") => {
      const query = `collectionId=${"c".repeat(23)}1&ownerId=${ownerId}`;
      return send("list", {}, undefined, query).data["resources"] as readonly Json[];
    },
  };
}

const ASYNC = { prefer: "respond-async" };
const titles = (records: readonly Json[]): unknown[] => records.map(({ title }) => title);

it("a service without hostility shows what it was sent", () => {
  const { create, list, ask } = open({});
  const { _id } = create("a");
  expect(ask("update", { content: "new" }, _id)).toMatchObject({
    status: 200,
    data: { _id, content: "new" },
  });
  expect(list()).toMatchObject([{ _id, title: "a", description: "About it", content: "new", ownerId: "us" }]);
  expect(ask("delete", {}, _id).status).toBe(200);
  expect(list()).toEqual([]);
});

it.each([true, false])("a capped list shows the oldest, with pages %s", (pages) => {
  const { create, list } = open({ listMax: 2 }, { pages });
  for (const title of ["a", "b", "c"]) create(title);
  expect(new Set(titles(list()))).toEqual(new Set(["a", "b"]));
});

it("a stale list shows what was minutes ago", async () => {
  const { create, list, pass } = open({ listStaleMs: 60_000 });
  create("a");
  expect(list()).toEqual([]);
  await pass(60_000);
  create("b");
  expect(titles(list())).toEqual(["a"]);
});

it("a list that ignores the owner shows all", () => {
  const { create, list } = open({ ignoresOwner: true });
  create("a", { owner_id: "others" });
  create("b");
  expect(titles(list())).toEqual(["a", "b"]);
});

it.each<[odd: OddFields, shown: Json]>([
  ["nulls", { title: null, description: null, isDeleted: null, ownerId: null, createdAt: null }],
  [
    "texts",
    { settings: { strategy: "recursive", chunkSize: "800", chunkOverlap: "80" }, isDeleted: "false" },
  ],
  ["numbers", { createdAt: Date.UTC(2026, 0, 1), metadata: { status: 3 } }],
  ["numeric-ids", { _id: expect.any(Number) as unknown }],
  ["no-collection", { collectionId: "" }],
])("answers and lists have odd values: %s", (odd, shown) => {
  const { create, list, ask } = open({ odd });
  const settings = { strategy: "recursive", chunkSize: 800, chunkOverlap: 80 };
  const { _id } = create("a", { settings });
  expect(list()).toMatchObject([shown]);
  expect(ask("update", { content: "new" }, _id)).toMatchObject({ status: 200, data: shown });
  expect(list()).toMatchObject([{ content: "new" }]);
});

it.each<[descriptions: NonNullable<Hostility["descriptions"]>, stored: string]>([
  ["lower-case", ` the "last" <part> & more than 40 characters `],
  ["escaped", ` The &quot;last&quot; &lt;part&gt; &amp; more than 40 characters `],
  ["trimmed", `The "last" <part> & more than 40 characters`],
  ["cut", ` The "last" <part> & more than 40 charact`.slice(0, 40)],
  ["dropped", ""],
])("descriptions are stored %s, by creates and updates", (descriptions, stored) => {
  const { create, list, ask } = open({ descriptions });
  const description = ` The "last" <part> & more than 40 characters `;
  const { _id } = create("a", { description });
  expect(list()).toMatchObject([{ description: stored }]);
  ask("update", { description: "x" }, _id);
  ask("update", { description }, _id);
  expect(list()).toMatchObject([{ description: stored }]);
});

it("titles are stored as Untitled", () => {
  const { create, list, ask } = open({ untitled: true });
  const { _id } = create("a");
  ask("update", { title: "b" }, _id);
  expect(list()).toMatchObject([{ title: "Untitled" }]);
});

it("an ignored update is answered with the old text", () => {
  const { create, list, ask } = open({ puts: "ignored" });
  const { _id } = create("a");
  expect(ask("update", { content: "new" }, _id)).toMatchObject({
    status: 200,
    data: { _id, content: "text of a" },
  });
  expect(list()).toMatchObject([{ _id, content: "text of a" }]);
});

it("an update makes another resource in place of the old one", () => {
  const { create, list, ask } = open({ puts: "copied" });
  const { _id } = create("a");
  const { data } = ask("update", { content: "new" }, _id);
  expect(data["_id"]).not.toBe(_id);
  expect(list()).toMatchObject([{ _id: data["_id"], title: "a", content: "new" }]);
  expect(ask("update", { content: "newer" }, _id).status).toBe(404);
});

it("every update is answered with one _id", () => {
  const { create, list, ask } = open({ puts: "one-id" });
  const [a, b] = [create("a"), create("b")];
  for (const { _id } of [a, b]) expect(ask("update", { content: "new" }, _id).data["_id"]).toBe(PUT_ID);
  expect(list()).toMatchObject([
    { _id: a["_id"], content: "new" },
    { _id: b["_id"], content: "new" },
  ]);
});

it.each([
  ["forbidden", 403],
  ["ignored", 200],
] as const)("deletes are %s", (deletes, status) => {
  const { create, list, ask } = open({ deletes });
  const { _id } = create("a");
  expect(ask("delete", {}, _id).status).toBe(status);
  expect(titles(list())).toEqual(["a"]);
});

it("a create with the title of a resource of that owner changes that one", () => {
  const { create, list } = open({ upserts: true });
  const [first, other] = [create("a"), create("a", { owner_id: "others" })];
  expect(other["_id"]).not.toBe(first["_id"]);
  expect(create("a", { content: "another text" })["_id"]).toBe(first["_id"]);
  expect(list()).toMatchObject([{ _id: first["_id"], content: "another text" }]);
});

it("a restored service has what it had then", async () => {
  const { service, create, list, ask, pass } = open({});
  const [kept, removed] = [create("kept"), create("removed")];
  await pass(60_000);
  ask("update", { content: "new" }, kept["_id"]);
  ask("delete", {}, removed["_id"]);
  const late = create("late");
  await pass(1000);
  expect(service.restore(30_000).map(({ id }) => id)).toEqual([late["_id"]]);
  expect(list()).toMatchObject([
    { _id: kept["_id"], content: "text of kept" },
    { _id: removed["_id"], content: "text of removed" },
  ]);
});

it("a restored service does what it still had to do then", async () => {
  const { service, list, pass, ask, create } = open({}, { workMs: 1000 });
  const made = create("kept");
  await pass(60_000);
  ask("update", { content: "new" }, made["_id"], ASYNC);
  await pass(2000);
  service.restore(2000);
  expect(list()).toMatchObject([{ content: "text of kept", metadata: { status: "queued" } }]);
  await pass(1000);
  expect(list()).toMatchObject([{ content: "new", metadata: { status: "chunked" } }]);
});
