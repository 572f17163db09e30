import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sendChange } from "../../../src/sync/actions/change.ts";
import { labelOf } from "../../../src/sync/actions/observe.ts";
import type { Departure } from "../../../src/sync/actions/prepare.ts";
import { digestOf } from "../../../src/sync/document/digest.ts";
import type { SourceDocument } from "../../../src/sync/read/read.ts";
import type { Later, Reply } from "../../../src/sync/remote/answer.ts";
import type { ResourceChange } from "../../../src/sync/remote/remote.ts";
import { observedAt, openWorkshop, type Workshop } from "./fixture.ts";

const GONE = { kind: "gone" } as const;
const REFUSED = { kind: "refused", code: "too_odd", message: "not this one" } as const;
const later = (more: Partial<Later> = {}): Later => ({
  kind: "later",
  acted: "no",
  blame: "request",
  reason: "busy",
  ...more,
});
const RECORD = { title: "a.md", description: "d", content: "new text" };
const done = (value: Record<string, unknown> = {}) =>
  ({ kind: "done", value: { isInFlight: false, record: {}, ...value } }) as const;

let shop: Workshop;
let row: number;
let sent: ResourceChange[];
/** Keys of the updates, and of the uploads. */
let keys: (string | undefined)[];
let uploadKeys: string[];
let uploads: number;
let stale: boolean;
/** The file changes while its update waits at the gate. */
let changesAtGate: boolean;
let remakes: boolean;
beforeEach(async () => {
  shop = openWorkshop();
  row = await shop.add("a.md", "agreed");
  sent = [];
  keys = [];
  uploadKeys = [];
  uploads = 0;
  stale = false;
  changesAtGate = false;
  remakes = true;
});
afterEach(() => shop.close());

interface Answers {
  readonly update?: readonly Reply<unknown>[];
  /** What the service shows of the resource by its id. */
  readonly read?: readonly Reply<unknown>[];
  readonly isUp?: boolean;
  /** Makes it an uploaded file. */
  readonly upload?: readonly (Reply<string> | { readonly kind: "torn" })[];
}

/** Sends a change of `a.md`, whose text is new, against a service that answers so, the last answer again and again. */
async function change(
  answers: Answers,
  more: Partial<Pick<Departure, "action" | "mayBeThere">> & { state?: "agreed" | "unsure" } = {},
): Promise<void> {
  const { state = "agreed", action = "update", mayBeThere = false } = more;
  const known = shop.get(row);
  if (known === undefined) throw new Error("no row");
  const observed = {
    ...observedAt("a.md"),
    hash: "new",
    digest: digestOf("new text"),
    label: labelOf("a.md", "d"),
  };
  const recipe = { title: "a.md", description: "d", extractorVersion: 1, ...observed.shape };
  const body =
    answers.upload === undefined
      ? { kind: "content", content: "new text" }
      : { kind: "file", mediaType: "image/png" };
  const document = { ...body, recipe, entry: observed.entry };
  const departure: Departure = {
    action,
    candidate: shop.candidate("a.md"),
    document: document as unknown as SourceDocument, // What a change uses of it.
    observed,
    row: { ...known, state },
    startedMs: shop.nowMs,
    intent: undefined,
    mayBeThere,
  };
  await shop.write(() => shop.ledger.files.setState(row, "unsure"));
  const counts = { update: 0, read: 0 };
  const next = async (name: "update" | "read"): Promise<Reply<unknown>> => {
    const of = answers[name] ?? [GONE];
    const answer = of[Math.min(counts[name]++, of.length - 1)];
    return await Promise.resolve(answer ?? GONE);
  };
  const remote = {
    upload: async (_file: unknown, key: string) => {
      uploadKeys.push(key);
      const of = answers.upload ?? [];
      return await Promise.resolve(of[Math.min(uploads++, of.length - 1)]);
    },
    update: async (
      _docId: string,
      given: ResourceChange,
      _signal: AbortSignal,
      key?: string,
      mayLeave?: () => boolean,
    ) => {
      stale ||= changesAtGate;
      if (mayLeave?.() === false) return later({ blame: "service" });
      sent.push(given);
      keys.push(key);
      return await next("update");
    },
    read: async () => await next("read"),
    collections: async () => await Promise.resolve(answers.isUp === false ? later() : done()),
  };
  const context = shop.context({ remote });
  const source = { ...shop.source, isStale: () => stale, mayRemake: () => remakes };
  await sendChange(context, source, departure);
}
const readInPart = (): number => {
  shop.ledger.flush();
  return shop.ledger.sources.get(shop.source.id).readInPart;
};
const trouble = (): unknown => {
  shop.ledger.flush();
  return shop.ledger.files.troubledAt(shop.source.id, undefined)[0];
};

describe("a change that is acknowledged", () => {
  it("brings the row into agreement with what was sent", async () => {
    await change({ update: [done({ record: RECORD, warning: "page 2" })] });
    expect(sent).toEqual([{ title: "a.md", description: "d", content: "new text" }]);
    expect(shop.get(row)).toMatchObject({ state: "agreed", hash: "new" });
    expect(readInPart()).toBe(1);
    expect(shop.reports).toMatchObject([{ action: "update", outcome: "done", docId: "doc" }]);
  });

  it("sends title and description alone where no more changed, and leaves what is known of the text", async () => {
    await change({ update: [done({ warning: "page 2" })] });
    await change({ update: [done()] }, { action: "retitle" });
    expect(sent[1]).toEqual({ title: "a.md", description: "d" });
    expect(readInPart()).toBe(1);
    await change({ update: [done()] });
    expect(readInPart()).toBe(0);
  });

  it("before the work on it is followed to its end", async () => {
    const record = { ...RECORD, isDeleted: false, metadata: { status: "chunked", warning: "page 2" } };
    await change({
      update: [done({ isInFlight: true })],
      read: [done(record)].map(({ value }) => ({ kind: "done", value })),
    });
    expect([sent.length, shop.state("a.md")]).toEqual([1, "agreed"]);
    expect(readInPart()).toBe(1);
  });
});

it.each([
  ["is taken for the service's form of what was sent", "agreed", digestOf("older text")],
  ["is no form of what was sent where an update before it may have acted late", "unsure", null],
  ["is no form of what was sent where it is the text before, of an update that acted late", "agreed", null],
] as const)(
  "another text that is found when the service's work on a change is over %s",
  async (what, before, stored) => {
    if (what.includes("the text before"))
      await shop.write(() =>
        shop.ledger.files.agree(row, "doc", { ...observedAt("a.md"), digest: digestOf("older text") }),
      );
    const record = { ...RECORD, content: "older text", isDeleted: false, metadata: { status: "chunked" } };
    await change(
      { update: [done({ isInFlight: true })], read: [{ kind: "done", value: record }] },
      { state: before },
    );
    shop.ledger.flush();
    expect(shop.ledger.drift.byDoc("doc")).toMatchObject({ state: "agreed", storedDigest: stored });
  },
);

describe("a change that is not sent", () => {
  it("because something happened to its file leaves the row unsure", async () => {
    stale = true;
    await change({});
    expect([sent, shop.state("a.md"), shop.reports]).toEqual([[], "unsure", []]);
  });

  it("because something happened to its file while it waited at the gate leaves the row unsure", async () => {
    changesAtGate = true;
    await change({});
    expect([sent, shop.state("a.md"), shop.reports]).toEqual([[], "unsure", []]);
  });

  it("because the service has it already, from a request without an answer, is no news to it", async () => {
    await change({ read: [{ kind: "done", value: { ...RECORD, isDeleted: false } }] }, { mayBeThere: true });
    expect([sent, shop.state("a.md")]).toEqual([[], "agreed"]);
    expect(shop.reports).toMatchObject([{ action: "adopt", docId: "doc" }]);
  });

  it.each([
    ["has another text", { kind: "done", value: { ...RECORD, content: "old", isDeleted: false } }],
    ["is not shown", GONE],
  ] as const)("is sent all the same where the resource %s", async (_what, read) => {
    await change({ read: [read], update: [done()] }, { mayBeThere: true });
    expect([sent.length, shop.state("a.md")]).toEqual([1, "agreed"]);
  });
});

describe("a change of a resource that is said to be gone", () => {
  it("loses it for good after three answers, so that the file is made again", async () => {
    await change({ update: [GONE] });
    expect([sent.length, shop.checks]).toEqual([3, ["a.md"]]);
    expect(shop.get(row)?.shape).not.toEqual(observedAt("a.md").shape);
    expect(shop.reports).toEqual([]);
  });

  it("leaves the row unsure where many are gone", async () => {
    remakes = false;
    await change({ update: [GONE] });
    expect([shop.state("a.md"), shop.checks]).toEqual(["unsure", []]);
    expect(shop.get(row)?.shape).toEqual(observedAt("a.md").shape);
  });

  it("is sent again, and done, where that was false", async () => {
    await change({ update: [GONE, done()], read: [{ kind: "done", value: { isDeleted: false } }] });
    expect([sent.length, shop.state("a.md")]).toEqual([2, "agreed"]);
    // Under the first key some services would refuse it again.
    expect(new Set(keys).size).toBe(2);
  });

  it("is parked where the service shows the resource all the time", async () => {
    await change({ update: [GONE], read: [{ kind: "done", value: { isDeleted: false } }] });
    expect(shop.state("a.md")).toBe("parked");
    expect(trouble()).toMatchObject({ message: expect.stringContaining("shows the resource") as string });
  });
});

describe("a change that fails", () => {
  it("because it is refused keeps the service's words, and what its resource surely has", async () => {
    await change({ update: [REFUSED] });
    expect(trouble()).toMatchObject({ path: "a.md", code: "too_odd", message: "not this one" });
    expect(shop.get(row)).toMatchObject({ state: "failed", docId: "doc", hash: "hash" });
    expect(shop.reports).toMatchObject([{ action: "update", outcome: "refused", docId: "doc" }]);
  });

  it("after another one without an answer is not sure of what its resource has", async () => {
    await change({ update: [REFUSED] }, { state: "unsure" });
    expect(shop.get(row)).toMatchObject({ state: "failed", hash: "" });
  });

  it("three times while the service answers otherwise is parked, and looked at again in a minute", async () => {
    await change({ update: [later()] });
    expect([sent.length, shop.state("a.md"), shop.checks]).toEqual([
      3,
      "parked",
      [`a.md at ${shop.nowMs + 60_000}`],
    ]);
    expect(shop.get(row)?.hash).toBe("hash");
    expect(shop.reports).toMatchObject([{ outcome: "parked", message: "busy" }]);
  });

  it("and may have acted all the same is not sure of what its resource has", async () => {
    await change({ update: [later({ acted: "maybe" }), later()] });
    expect(shop.get(row)).toMatchObject({ state: "parked", hash: "" });
  });

  it.each([
    ["the service is to blame", later({ blame: "service" })],
    ["an earlier one is under way", later({ isInFlight: true, retryAfterMs: 0 })],
  ])("as long as %s is sent again", async (_what, reply) => {
    await change({ update: [reply, reply, reply, reply, done()] });
    expect([sent.length, shop.state("a.md")]).toEqual([5, "agreed"]);
  });

  it("while nothing else is answered either is sent again", async () => {
    await change({ update: [later(), later(), later(), later(), done()], isUp: false });
    expect([sent.length, shop.state("a.md")]).toEqual([5, "agreed"]);
  });
});

describe("a change of an uploaded file", () => {
  const at = (...urls: string[]): Reply<string>[] => urls.map((value) => ({ kind: "done", value }));

  it("uploads its bytes, and sends their address", async () => {
    await change({ upload: at("new"), update: [done()] });
    expect([uploads, sent]).toEqual([1, [{ title: "a.md", description: "d", url: "new" }]]);
    expect(shop.get(row)).toMatchObject({ state: "agreed", fileUrl: "new" });
  });

  it("uploads nothing where its title alone is another", async () => {
    await change({ upload: at("new"), update: [done()] }, { action: "retitle" });
    expect([uploads, sent]).toEqual([0, [{ title: "a.md", description: "d" }]]);
  });

  it("uploads its bytes once, however often the address is sent", async () => {
    await change({ upload: at("new", "newer"), update: [later(), later(), done()] });
    expect([uploads, sent.map(({ url }) => url)]).toEqual([1, ["new", "new", "new"]]);
    expect(new Set(keys).size).toBe(1);
  });

  it("uploads its bytes once more when an address that was sent before is refused", async () => {
    await change({ upload: at("new", "newer"), update: [later(), REFUSED, done()] });
    expect([uploads, sent.map(({ url }) => url)]).toEqual([2, ["new", "new", "newer"]]);
    expect(shop.get(row)?.fileUrl).toBe("newer");
    expect([keys[0] === keys[1], keys[1] === keys[2]]).toEqual([true, false]);
    expect(new Set(uploadKeys).size).toBe(2);
  });

  it("that changes while it is uploaded is looked at again", async () => {
    await change({ upload: [{ kind: "torn" }] });
    expect([sent, shop.state("a.md"), shop.checks]).toEqual([[], "unsure", ["a.md torn"]]);
  });
});
