import { describe, expect, it } from "vitest";
import type { ActionContext } from "../../../src/sync/actions/context.ts";
import type { AskedId } from "../../../src/sync/actions/collections.ts";
import { labelOf } from "../../../src/sync/actions/observe.ts";
import {
  compareWithService,
  resourceOf,
  type Compared,
} from "../../../src/sync/reconcile-service/compare.ts";
import { digestOf } from "../../../src/formats/digest.ts";
import type { Reply } from "../../../src/sync/remote/answer.ts";
import type { ListEnd } from "../../../src/sync/remote/collection-requests.ts";
import type { ResourceRecord } from "../../../src/wire/resource.ts";

const DONE: Reply<ListEnd> = { kind: "done", value: { clockOffsetMs: 5, isPaged: true } };
const LATER: Reply<ListEnd> = { kind: "later", acted: "no", blame: "service", reason: "busy" };
const record = (more: Partial<ResourceRecord> = {}): ResourceRecord => ({
  _id: "a",
  title: "A",
  description: "d",
  content: "text",
  isDeleted: false,
  ...more,
});

interface Service {
  /** Results of requesting the collection's id; the last one repeats. */
  readonly ids?: readonly AskedId[];
  readonly lists: readonly Reply<ListEnd>[];
  readonly records?: readonly ResourceRecord[];
  readonly renewed?: string;
  /** Default: the service does not name its collections. */
  readonly isNamed?: boolean;
  /** For each list, how many pages of any list the service has answered by its end. */
  readonly pages?: readonly number[];
  /** The resource that the ledger knows. Default: none. */
  readonly known?: string;
}

/**
 * Lists a scope of such a service. Returns how it ended, what was seen in the last attempt, and which collections were
 * listed.
 */
async function list(
  service: Service,
): Promise<{ end: Compared | undefined; seen: string[]; asked: string[] }> {
  const { ids = [{ id: "c1" }], lists, records = [record()], renewed = "c1" } = service;
  const { isNamed = false, pages = [], known } = service;
  const asked: string[] = [];
  let questions = 0;
  const context = {
    collections: {
      ask: async () => await Promise.resolve(ids[Math.min(questions++, ids.length - 1)]),
      renew: async () => await Promise.resolve({ id: renewed, isNamed }),
    },
    remote: {
      list: async ({ collectionId }: { collectionId: string }, see: (found: ResourceRecord) => void) => {
        for (const found of records) see(found);
        asked.push(collectionId);
        return await Promise.resolve(lists[Math.min(asked.length, lists.length) - 1]);
      },
      listedPages: () => pages[asked.length - 1] ?? pages.at(-1) ?? 0,
    },
    ledger: { drift: { ownerOf: (id: string) => (id === known ? "deleted" : undefined) } },
    random: () => 0,
    timing: { missingAgainMs: [1, 1, 1, 1] },
    signal: new AbortController().signal,
  } as unknown as ActionContext; // What listing uses.
  let seen: string[] = [];
  const end = await compareWithService(context, { tier: "fastest", ownerId: "o" }, () => {
    seen = [];
    return ({ record: { _id } }) => seen.push(_id);
  });
  return { end, seen, asked };
}

describe("a scope of the service", () => {
  it("a scope is listed from beginning to end, without deleted resources", async () => {
    const records = [record(), record({ _id: "b", isDeleted: true }), record({ _id: "c" })];
    expect(await list({ lists: [DONE], records })).toEqual({
      end: { clockOffsetMs: 5, isPaged: true },
      seen: ["a", "c"],
      asked: ["c1"],
    });
  });

  it("a resource of another owner or collection is passed over, unless the ledger knows it", async () => {
    const records = [
      record({ ownerId: "o", collectionId: "c1" }),
      record({ _id: "b", ownerId: "other" }),
      record({ _id: "c", collectionId: "c2" }),
      record({ _id: "d", ownerId: "O" }),
    ];
    expect(await list({ lists: [DONE], records, known: "d" })).toMatchObject({ seen: ["a", "d"] });
  });

  it("a list that broke off starts again, and what was seen of it does not count", async () => {
    expect(await list({ lists: [LATER, DONE] })).toMatchObject({ seen: ["a"], asked: ["c1", "c1"] });
  });

  it("a scope is unknown while its collection's id is", async () => {
    const unsupported = { id: undefined, why: "unsupported" } as const;
    expect(await list({ lists: [DONE], ids: [unsupported] })).toMatchObject({ end: undefined, asked: [] });
  });

  it("a scope is listed after its id becomes known, which nothing answered at first", async () => {
    const unanswered = { id: undefined, why: "unanswered" } as const;
    expect(await list({ lists: [DONE], ids: [unanswered, unanswered, { id: "c1" }] })).toMatchObject({
      asked: ["c1"],
    });
  });

  it("a collection that the service no longer knows is listed under its new id", async () => {
    const lists: Reply<ListEnd>[] = [{ kind: "gone" }, DONE];
    expect(await list({ lists, renewed: "c2", ids: [{ id: "c1" }, { id: "c2" }] })).toMatchObject({
      asked: ["c1", "c2"],
    });
  });

  it("a collection that the service does not know under any id holds nothing", async () => {
    expect(await list({ lists: [{ kind: "gone" }], records: [] })).toMatchObject({
      end: { clockOffsetMs: undefined, isPaged: false },
      asked: Array.from({ length: 5 }, () => "c1"),
    });
    expect((await list({ lists: [{ kind: "gone" }], renewed: "c2" })).asked).toHaveLength(6);
  });

  it("a scope is listed although its second page gets more 404s than are believed in a row", async () => {
    const gone: Reply<ListEnd> = { kind: "gone" };
    const lists = [...Array.from({ length: 6 }, () => gone), DONE];
    expect(await list({ lists, pages: [0, 1, 1, 1, 2, 2] })).toMatchObject({
      end: { clockOffsetMs: 5 },
      asked: Array.from({ length: 7 }, () => "c1"),
    });
  });

  it("a scope is listed although 404s came first", async () => {
    const gone: Reply<ListEnd> = { kind: "gone" };
    expect(await list({ lists: [gone, gone, gone, gone, DONE] })).toMatchObject({
      end: { clockOffsetMs: 5 },
      seen: ["a"],
    });
  });

  it.each<[string, Service]>([
    ["a collection that the service names and does not list", { lists: [{ kind: "gone" }], isNamed: true }],
    [
      "a collection that the service refuses to list",
      { lists: [{ kind: "refused", code: "c", message: "no" }] },
    ],
  ])("%s is an error", async (_what, service) => {
    await expect(list(service)).rejects.toMatchObject({ code: "list_refused", subject: "c1" });
  });
});

describe("a resource of a list", () => {
  it("a listed resource is reduced to what is compared: the digest of its text, or its address", () => {
    const at = { createdAt: "1970-01-01T00:00:01Z", updatedAt: "1970-01-01T00:00:02Z" };
    expect(resourceOf(record(at))).toMatchObject({
      docId: "a",
      title: "A",
      createdMs: 1000,
      updatedMs: 2000,
      url: undefined,
      digest: digestOf("text"),
      label: labelOf("A", "d"),
    });
    const upload = resourceOf(record({ url: "https://kb/u/1", createdAt: "soon" }));
    expect(upload).toMatchObject({ url: "https://kb/u/1", digest: "", createdMs: undefined });
    expect(upload).not.toHaveProperty("isUnfinished");
  });

  it.each([
    ["queued", true],
    ["error", true],
    ["chunked", false],
    [undefined, false],
  ])("a listed resource with the state %s is unfinished: %s", (status, expected) => {
    const found = record({ metadata: { status } });
    expect(resourceOf(found).isUnfinished ?? false).toBe(expected);
  });

  it("a listed resource may omit some settings, or have unknown ones", () => {
    const settings = { strategy: "recursive", chunkSize: 1, chunkOverlap: 0 } as const;
    expect(resourceOf(record({ settings })).settings).toEqual(settings);
    expect(resourceOf(record({ settings: { strategy: "other" } })).settings).toEqual({});
    expect(resourceOf(record({ settings: { chunkSize: 5 } })).settings).toEqual({ chunkSize: 5 });
    expect(resourceOf(record()).settings).toEqual({});
  });
});
