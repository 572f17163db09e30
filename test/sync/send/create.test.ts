import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ActionSource } from "../../../src/sync/send/context.ts";
import type { Outgoing } from "../../../src/sync/send/prepare.ts";
import { send } from "../../../src/sync/send/send.ts";
import type { SourceDocument } from "../../../src/sync/scan/read/outcome.ts";
import type { Observed } from "../../../src/sync/ledger/files/observed.ts";
import type { CreateIntent } from "../../../src/sync/ledger/intents/creates.ts";
import type { Deletion } from "../../../src/sync/ledger/intents/deletes.ts";
import type { Later, Reply } from "../../../src/sync/send/remote/answer.ts";
import type { NewResource } from "../../../src/sync/send/remote/resource-requests.ts";
import { fileTag } from "../../../src/sync/plan/marker.ts";
import { observedAt, openWorkshop, type Workshop } from "./fixture.ts";

const REFUSED = { kind: "refused", code: "too_odd", message: "not this one" } as const;
const later = (more: Partial<Later> = {}): Later => ({
  kind: "later",
  acted: "no",
  blame: "request",
  reason: "busy",
  ...more,
});
const made = (docId = "made", more: Record<string, unknown> = {}): Reply<unknown> => ({
  kind: "done",
  value: { _id: docId, collectionId: "c1", isInFlight: false, record: {}, ...more },
});
const shown = (metadata: Record<string, unknown>, isDeleted = false): Reply<unknown> => ({
  kind: "done",
  value: { _id: "made", isDeleted, metadata },
});
const UNDER_WAY = { isInFlight: true };

/** When creates were planned: after the ledger began. */
const MADE_MS = Date.parse("2100-01-01");

let shop: Workshop;
let sent: { readonly body: Pick<NewResource, "content" | "url">; readonly key: string }[];
let uploads: number;
let deletions: Deletion[];
let comparisons: number;
let learned: string[];
beforeEach(() => {
  shop = openWorkshop();
  shop.nowMs = MADE_MS;
  sent = [];
  uploads = 0;
  deletions = [];
  comparisons = 0;
  learned = [];
});
afterEach(() => shop.close());

interface World {
  /** Answers to the create. The last one repeats. */
  readonly create?: readonly Reply<unknown>[];
  readonly upload?: readonly (Reply<string> | { readonly kind: "torn" })[];
  /** The service's record of the resource. */
  readonly read?: readonly Reply<unknown>[];
  /** What the list shows of a create without an answer. */
  readonly settle?: "adopted" | "absent" | "unclear";
  readonly isFile?: boolean;
  /** Earlier attempts. */
  readonly attempts?: number;
  /** Address of an earlier upload. */
  readonly fileUrl?: string;
  readonly isStale?: () => boolean;
  readonly isUp?: boolean;
  /** Number of followed resources: each rests once before it is requested. */
  readonly waitsPerSlot?: number;
}

/** Creates `a.md` in such a world. */
async function create(world: World): Promise<void> {
  const { isFile = false, attempts = 1, fileUrl } = world;
  const { shape, ...rest } = observedAt("a.md");
  const kind = isFile ? ("file" as const) : ("content" as const);
  const observed: Observed = { ...rest, shape: { ...shape, kind }, fileUrl };
  const id = await shop.write(() => shop.ledger.intents.create(shop.source.id, "key", MADE_MS, observed));
  for (let count = 1; count < attempts; count += 1) await shop.write(() => shop.ledger.intents.again(id));
  const intent = shop.ledger.intents.creates(shop.source.id).find((each) => each.id === id) as CreateIntent;
  const candidate = shop.candidate("a.md");
  const recipe = { title: "a.md", description: "d", extractorVersion: 1, ...shape, kind };
  const body = isFile ? { kind, mediaType: "image/png" } : { kind, content: "text" };
  const outgoing: Outgoing = {
    action: candidate.known === undefined ? "create" : "replace",
    candidate,
    document: { ...body, recipe, entry: observed.entry } as unknown as SourceDocument, // What a create uses.
    observed,
    row: candidate.known === undefined ? undefined : shop.get(candidate.known.id),
    startedMs: shop.nowMs,
    intent,
  };
  const counts = { create: 0, upload: 0, read: 0 };
  const next = async <T>(name: keyof typeof counts, of: readonly T[]): Promise<T> => {
    const answer = of[Math.min(counts[name]++, of.length - 1)];
    if (answer === undefined) throw new Error(`no answer to ${name}`);
    return await Promise.resolve(answer);
  };
  const remote = {
    create: async (resource: NewResource, key: string, _signal: AbortSignal, mayLeave: () => boolean) => {
      if (!mayLeave()) return later({ blame: "service" });
      const { content, url } = resource;
      sent.push({
        body: { ...(content !== undefined && { content }), ...(url !== undefined && { url }) },
        key,
      });
      return await next("create", world.create ?? [made()]);
    },
    upload: async () => {
      uploads += 1;
      return await next("upload", world.upload ?? [{ kind: "done" as const, value: `upload ${uploads}` }]);
    },
    read: async () => await next("read", world.read ?? [shown({})]),
    collections: async () => await Promise.resolve(world.isUp === false ? later() : { kind: "done" }),
  };
  const collections = {
    learn: (tier: string, collection: string) => learned.push(`${tier} ${collection}`),
  };
  const source: ActionSource = {
    ...shop.source,
    isStale: world.isStale ?? (() => false),
    agenda: { ...shop.source.agenda, isOutdated: world.isStale ?? (() => false) },
    findCreated: async () => await Promise.resolve(world.settle ?? "absent"),
    compareLater: () => void (comparisons += 1),
    deleteLater: (deletion) => void deletions.push(deletion),
  };
  const yieldSlot = async (wait: (waitsPerSlot: () => number) => Promise<unknown>): Promise<unknown> =>
    wait.length === 0 ? undefined : await wait(() => world.waitsPerSlot ?? 0);
  await send(shop.context({ remote, collections, yieldSlot }), source, outgoing);
  shop.ledger.flush();
}
const rows = (): unknown[] => [...shop.ledger.files.all(shop.source.id)];
/** Creates and doubts that are open, with their attempts. */
const open = (): string[] => {
  shop.ledger.flush();
  const creates = shop.ledger.intents.creates(shop.source.id).map(({ attempts }) => `create ${attempts}`);
  return [
    ...creates,
    ...shop.ledger.intents.doubts(shop.source.id).map(({ attempts }) => `doubt ${attempts}`),
  ];
};

describe("answered creates", () => {
  it("an answered create gives its file the resource, and leaves nothing open", async () => {
    await create({ create: [made("made", { warning: "page 2" })] });
    expect(sent).toEqual([{ body: { content: "text" }, key: "key" }]);
    expect(rows()).toMatchObject([{ path: "a.md", docId: "made", state: "agreed" }]);
    expect([open(), comparisons, learned]).toEqual([[], 0, ["fastest c1"]]);
    expect(shop.ledger.sources.get(shop.source.id).readInPart).toBe(1);
    expect(shop.reports).toMatchObject([{ action: "create", outcome: "done", docId: "made" }]);
  });

  it("an answered create replaces the previous resource, which is deleted after it, and its warning is forgotten", async () => {
    await shop.add("a.md", "agreed", "old");
    await shop.write(() => shop.ledger.files.warn("old", "page 2"));
    await create({});
    expect(rows()).toMatchObject([{ docId: "made", state: "agreed" }]);
    expect(deletions).toMatchObject([{ docId: "old", path: "a.md" }]);
    expect(shop.ledger.sources.get(shop.source.id).readInPart).toBe(0);
    expect(shop.reports).toMatchObject([{ action: "replace" }]);
  });

  it("a create answered with another file's resource failed, and leaves nothing open", async () => {
    await shop.add("b.md", "agreed", "made");
    await create({});
    expect(shop.state("a.md")).toBe("failed");
    expect(shop.ledger.files.troubled({ below: "a.md" })).toMatchObject([{ code: "not_its_own" }]);
    expect(open()).toEqual([]);
  });

  it.each(["agreed", "unsure"] as const)(
    "a create answered with the resource of a file in the state %s is part of what was written to that",
    async (state) => {
      const other = await shop.add("b.md", state, "made");
      await create({});
      expect(shop.get(other)).toMatchObject({
        state: "unsure",
        sent: expect.stringContaining(fileTag("a.md")),
      });
    },
  );

  it("a repeated create has the list compared later", async () => {
    await create({ attempts: 2 });
    expect([open(), comparisons]).toEqual([["doubt 2"], 1]);
  });

  it.each([
    ["this ledger deleted", async () => await shop.write(() => shop.ledger.intents.deleted(0, "past"))],
    ["is another file's", async () => await shop.add("b.md", "agreed", "past")],
  ])(
    "a create whose used key returns a resource that %s is sent under another key, once",
    async (_what, prepare) => {
      await prepare();
      await create({ attempts: 2, create: [made("past"), made("made")] });
      expect(sent).toHaveLength(2);
      expect(sent[1]?.key).not.toBe("key");
      expect(rows()).toContainEqual(expect.objectContaining({ path: "a.md", docId: "made" }));
      sent = [];
    },
  );

  it("a first create that returns a resource which this ledger deleted is believed", async () => {
    await shop.write(() => shop.ledger.intents.deleted(0, "past"));
    await create({ create: [made("past")] });
    expect([sent.length, rows()]).toMatchObject([1, [{ docId: "past" }]]);
  });
});

describe("creates that are answered before they are processed", () => {
  it.each<[what: string, world: World, expected: unknown]>([
    [
      "a create that is processed later is done after that",
      { read: [shown({ status: "chunked" })] },
      [{ docId: "made", state: "agreed" }],
    ],
    [
      "a create that is processed later is left to the next check when something happens to its file",
      { isStale: once(2), read: [shown({ status: "queued" })], waitsPerSlot: 1 },
      [{ docId: "made", state: "unsure" }],
    ],
  ])("%s", async (_what, world, expected) => {
    await create({ create: [made("made", UNDER_WAY)], ...world });
    expect(rows()).toMatchObject(expected as unknown[]);
  });

  it("a create that cannot be processed is refused, and the resource without a text is deleted", async () => {
    await create({
      create: [made("made", UNDER_WAY)],
      read: [shown({ status: "error", message: "damaged" })],
    });
    expect(shop.state("a.md")).toBe("failed");
    expect([deletions, open()]).toMatchObject([[{ docId: "made" }], []]);
    expect(shop.reports).toMatchObject([{ outcome: "refused", message: "damaged" }]);
  });

  it("a create whose resource is deleted during processing is settled by the list", async () => {
    await create({ create: [made("made", UNDER_WAY)], read: [shown({}, true)], settle: "adopted" });
    expect([sent.length, shop.reports]).toEqual([1, []]);
  });

  it("a create whose resource is deleted during processing is sent again under another key, because its own returns the deleted one", async () => {
    await create({
      create: [made("lost", UNDER_WAY), made("made", UNDER_WAY)],
      read: [shown({}, true), shown({ status: "chunked" })],
    });
    expect(sent.map(({ key }) => key === "key")).toEqual([true, false]);
    expect([rows(), open(), comparisons]).toMatchObject([[{ docId: "made" }], ["doubt 2"], 1]);
  });
});

describe("creates without an answer", () => {
  it("a create without an answer that the list shows is done", async () => {
    await create({ create: [later({ acted: "maybe" })], settle: "adopted" });
    expect([sent.length, comparisons, open()]).toEqual([1, 0, ["create 1"]]);
  });

  it("a create without an answer that the list does not show is sent again under its key, and a later list may show a second resource", async () => {
    await create({ create: [later({ acted: "maybe" }), made()] });
    expect(sent.map(({ key }) => key)).toEqual(["key", "key"]);
    expect([rows(), open(), comparisons]).toMatchObject([[{ docId: "made" }], ["doubt 2"], 1]);
  });

  it.each([1, 2])(
    "a create without an answer is held where lists are incomplete, after %i attempts",
    async (attempts) => {
      await create({ create: [later({ acted: "maybe" })], settle: "unclear", attempts });
      expect([sent.length, shop.state("a.md"), open()]).toEqual([
        attempts === 1 ? 1 : 0,
        "parked",
        ["doubt 2"],
      ]);
      expect(shop.ledger.files.troubled({ below: "a.md" })).toMatchObject([{ code: "list_incomplete" }]);
    },
  );

  it("a create without an answer that the list shows after it was repeated has the list compared later", async () => {
    await create({ create: [later({ acted: "maybe" })], settle: "adopted", attempts: 2 });
    expect(comparisons).toBe(1);
  });

  it("a create that certainly had no effect is sent again without a list", async () => {
    await create({ create: [later(), later(), made()], settle: "adopted" });
    expect([sent.length, open(), comparisons]).toEqual([3, [], 0]);
  });

  it("a create waits while an earlier one is in flight", async () => {
    const reply = later({ acted: "maybe", isInFlight: true, retryAfterMs: 0 });
    await create({ create: [reply, reply, reply, reply, made()], settle: "adopted" });
    expect([sent.length, rows()]).toMatchObject([5, [{ docId: "made" }]]);
  });

  it("a create that fails three times while the service answers otherwise is parked, and stays in doubt if it may have taken effect", async () => {
    await create({ create: [later()] });
    expect([sent.length, shop.state("a.md"), open()]).toEqual([3, "parked", []]);
    await create({ create: [later({ acted: "maybe" })] });
    expect([open(), comparisons]).toEqual([["doubt 4"], 1]);
  });

  it("a create is sent again while the service answers nothing else either", async () => {
    await create({ create: [later(), later(), later(), later(), made()], isUp: false });
    expect([sent.length, rows()]).toMatchObject([5, [{ docId: "made" }]]);
  });
});

describe("creates that are given up", () => {
  it.each([
    [1, [], 0],
    [2, ["doubt 2"], 1],
  ])(
    "a create that is given up after %i attempts because something happened to its file leaves exactly what it must",
    async (attempts, left, doubts) => {
      await create({ isStale: () => true, attempts });
      expect([sent, open(), comparisons, shop.checks]).toEqual([[], left, doubts, []]);
    },
  );

  it("a create that is given up because something happened to its file while it waited at the gate leaves nothing", async () => {
    await create({ isStale: once(1) });
    expect([sent, open(), rows()]).toEqual([[], [], []]);
  });

  it.each([
    [1, []],
    [2, ["doubt 2"]],
  ])(
    "a create that is given up after %i attempts because it is refused leaves exactly what it must",
    async (attempts, left) => {
      await create({ create: [REFUSED], attempts });
      expect([shop.state("a.md"), open()]).toEqual(["failed", left]);
      expect(shop.reports).toMatchObject([{ action: "create", outcome: "refused", message: "not this one" }]);
    },
  );

  it("a create whose collection is gone failed, in words", async () => {
    await create({ create: [{ kind: "gone" }] });
    expect(shop.ledger.files.troubled({})).toMatchObject([{ code: "gone" }]);
  });

  it("a file that changed while it was uploaded is checked again", async () => {
    await create({ isFile: true, upload: [{ kind: "torn" }] });
    expect([sent, open(), shop.checks]).toEqual([[], [], ["a.md torn"]]);
  });
});

describe("creates of an uploaded file", () => {
  it("a create of an upload stores the address before it leaves, and continues with it", async () => {
    await create({ isFile: true, create: [later({ acted: "maybe" }), later(), made()] });
    expect([uploads, sent.map(({ body }) => body)]).toEqual([
      1,
      [{ url: "upload 1" }, { url: "upload 1" }, { url: "upload 1" }],
    ]);
    const [row] = [...shop.ledger.files.all(shop.source.id)];
    expect(shop.get(row?.id ?? 0)?.fileUrl).toBe("upload 1");
  });

  it("a create of an upload requests no list after an upload without an answer: nothing was created", async () => {
    await create({
      isFile: true,
      upload: [later({ acted: "maybe" }), { kind: "done", value: "upload" }],
      settle: "adopted",
    });
    expect([uploads, sent.length, open()]).toEqual([2, 1, []]);
  });

  it("a create of an upload uploads the file once more when an old address is refused", async () => {
    await create({ isFile: true, fileUrl: "old", create: [REFUSED, made()] });
    expect([uploads, sent.map(({ body }) => body)]).toEqual([1, [{ url: "old" }, { url: "upload 1" }]]);
  });

  it("a repeated create of an upload uploads the file once more when an old address is refused, and has the list compared later", async () => {
    await create({ isFile: true, fileUrl: "old", create: [REFUSED, made()], attempts: 2 });
    expect([uploads, sent.map(({ body }) => body)]).toEqual([1, [{ url: "old" }, { url: "upload 1" }]]);
    expect(new Set(sent.map(({ key }) => key)).size).toBe(2);
    expect([rows(), open(), comparisons]).toMatchObject([[{ docId: "made" }], ["doubt 2"], 1]);
  });

  it("a create of an upload failed when its old and fresh addresses are refused, and is not sent a third time", async () => {
    await create({ isFile: true, fileUrl: "old", create: [REFUSED], attempts: 2 });
    expect([uploads, sent.length, shop.state("a.md"), open()]).toEqual([1, 2, "failed", ["doubt 2"]]);
  });

  it("a create of an upload failed when its fresh address is refused", async () => {
    await create({ isFile: true, create: [REFUSED] });
    expect([uploads, sent.length, shop.state("a.md")]).toEqual([1, 1, "failed"]);
  });
});

/** Returns false this many times, then true. */
function once(times: number): () => boolean {
  let count = 0;
  return () => count++ >= times;
}
