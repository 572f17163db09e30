import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { labelOf } from "../../../src/sync/send/observe.ts";
import type { Outgoing } from "../../../src/sync/send/prepare.ts";
import { send } from "../../../src/sync/send/send.ts";
import { digestOf } from "../../../src/formats/digest.ts";
import { markedDescription } from "../../../src/sync/plan/marker.ts";
import type { SourceDocument } from "../../../src/sync/scan/read/outcome.ts";
import type { Later, Reply } from "../../../src/sync/send/remote/answer.ts";
import type { DocumentFields } from "../../../src/sync/send/remote/resource-requests.ts";
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
const MARKER = markedDescription("", {
  source: "docs7q2x",
  file: "7f3k2mqx4ab5",
  bytes: "h2k4m7p6qa2c",
  writer: "x7f2k5wd",
});
const OTHER_MARKER = MARKER.replace("h2k4m7p6qa2c", "a2k4m7p6qa2c");
const RECORD = { title: "a.md", description: "d", content: "new text" };
const done = (value: Record<string, unknown> = {}) =>
  ({ kind: "done", value: { isInFlight: false, record: {}, ...value } }) as const;

let shop: Workshop;
let row: number;
let sent: DocumentFields[];
/** Keys of the updates, and of the uploads. */
let keys: (string | undefined)[];
let uploadKeys: string[];
let uploads: number;
/** Comparisons that follow. */
let comparisons: number;
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
  comparisons = 0;
  stale = false;
  changesAtGate = false;
  remakes = true;
});
afterEach(() => shop.close());

interface Answers {
  readonly update?: readonly Reply<unknown>[];
  /** The service's record of the resource. */
  readonly read?: readonly Reply<unknown>[];
  readonly isUp?: boolean;
  /** Makes it an uploaded file. */
  readonly upload?: readonly (Reply<string> | { readonly kind: "torn" })[];
}

/** Sends a change of `a.md`, whose text is new, to a service that gives these answers and repeats the last one. */
async function change(
  answers: Answers,
  more: Partial<Pick<Outgoing, "action" | "metadata">> & {
    state?: "agreed" | "unsure";
    description?: string;
  } = {},
): Promise<void> {
  const { state = "agreed", action = "update", metadata, description = "d" } = more;
  const known = shop.get(row);
  if (known === undefined) throw new Error("no row");
  const observed = {
    ...observedAt("a.md"),
    hash: "new",
    digest: digestOf("new text"),
    label: labelOf("a.md", "d"),
  };
  const recipe = { title: "a.md", description, extractorVersion: 1, ...observed.shape };
  const body =
    answers.upload === undefined
      ? { kind: "content", content: "new text" }
      : { kind: "file", mediaType: "image/png" };
  const document = { ...body, recipe, entry: observed.entry };
  const outgoing: Outgoing = {
    action,
    candidate: shop.candidate("a.md"),
    metadata,
    document: document as unknown as SourceDocument, // What a change uses.
    observed,
    row: { ...known, state },
    startedMs: shop.nowMs,
    intent: undefined,
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
      given: DocumentFields,
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
  const capabilities = { takesLocations: () => false };
  const context = shop.context({ remote, capabilities });
  const source = {
    ...shop.source,
    isStale: () => stale,
    isOutdated: () => stale,
    mayRecreate: () => remakes,
    compareLater: () => void (comparisons += 1),
  };
  await send(context, source, outgoing);
}
const readInPart = (): number => {
  shop.ledger.flush();
  return shop.ledger.sources.get(shop.source.id).readInPart;
};
const trouble = (): unknown => {
  shop.ledger.flush();
  return shop.ledger.files.troubled({})[0];
};

describe("acknowledged changes", () => {
  it("an acknowledged change brings the row into agreement with what was sent", async () => {
    await change({ update: [done({ record: RECORD, warning: "page 2" })] });
    expect(sent).toEqual([{ title: "a.md", description: "d", content: "new text" }]);
    expect(shop.get(row)).toMatchObject({ state: "agreed", hash: "new" });
    expect(readInPart()).toBe(1);
    expect(shop.reports).toMatchObject([{ action: "update", outcome: "done", docId: "doc" }]);
  });

  it("a change of title and description is sent alone, and what is known of the text stays", async () => {
    await change({ update: [done({ warning: "page 2" })] });
    await change({ update: [done()] }, { action: "retitle" });
    expect(sent[1]).toEqual({ title: "a.md", description: "d" });
    expect(readInPart()).toBe(1);
    await change({ update: [done()] });
    expect(readInPart()).toBe(0);
  });

  it("another text in the answer to a change of the title alone is no stored form of the file's", async () => {
    const storedDigest = (): unknown => shop.ledger.files.acknowledged("doc")?.storedDigest;
    const record = { ...RECORD, content: "an older text" };
    await change({ update: [done()] });
    await change({ update: [done({ record })] }, { action: "retitle" });
    shop.ledger.flush();
    expect(storedDigest()).toBeNull();
    await change({ update: [done({ record: { ...RECORD, content: "new text, in a form" } })] });
    await change({ update: [done({ record })] }, { action: "retitle" });
    shop.ledger.flush();
    expect(storedDigest()).toBe(digestOf("new text, in a form"));
  });

  it("an answer that names another resource without its marker changes nothing and commits nothing by itself", async () => {
    const flush = vi.spyOn(shop.ledger, "flush");
    let before = Infinity;
    const record = {
      ...RECORD,
      get _id(): string {
        before = Math.min(before, flush.mock.calls.length);
        return "another";
      },
    };
    await change({ update: [done({ record })] }, { description: `d ${MARKER}` });
    expect(flush.mock.calls.length).toBe(before);
    expect(shop.get(row)).toMatchObject({ state: "agreed", docId: "doc" });
  });

  it("an answer that names another resource with the marker is followed only if the one that was asked for is gone", async () => {
    const description = `d ${MARKER}`;
    const answer = done({ record: { ...RECORD, description, _id: "another" } });
    await change({ update: [answer, done()] }, { description });
    expect(shop.get(row)).toMatchObject({ state: "agreed", docId: "doc" });
    await change({ update: [answer, GONE] }, { description });
    expect(shop.get(row)).toMatchObject({ state: "agreed", docId: "another" });
  });

  it("a change that is acknowledged before it is processed is followed to its end", async () => {
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
  ["counts as the service's form of what was sent", "agreed", "d", digestOf("older text")],
  ["is not a form of what was sent if an earlier update may have taken effect late", "unsure", "d", null],
  [
    "is a form of what was sent if it has the marker that was sent",
    "unsure",
    `d ${MARKER}`,
    digestOf("older text"),
  ],
  ["is not a form of what was sent if it has another marker", "agreed", `d ${OTHER_MARKER}`, null],
] as const)(
  "another text found after the service processed a change %s",
  async (_what, before, description, stored) => {
    const metadata = { status: "chunked" };
    const record = { ...RECORD, description, content: "older text", isDeleted: false, metadata };
    await change(
      { update: [done({ isInFlight: true })], read: [{ kind: "done", value: record }] },
      { state: before, ...(description !== "d" && { description: `d ${MARKER}` }) },
    );
    shop.ledger.flush();
    expect(shop.ledger.files.acknowledged("doc")).toMatchObject({ state: "agreed", storedDigest: stored });
  },
);

describe("changes that are not sent", () => {
  it("a change is not sent if something happened to its file, and the row stays unsure", async () => {
    stale = true;
    await change({});
    expect([sent, shop.state("a.md"), shop.reports]).toEqual([[], "unsure", []]);
  });

  it("a change is not sent if something happened to its file while it waited at the gate, and the row stays unsure", async () => {
    changesAtGate = true;
    await change({});
    expect([sent, shop.state("a.md"), shop.reports]).toEqual([[], "unsure", []]);
  });
});

describe("changes of a resource that is reported gone", () => {
  it("a changed resource is gone after four 404s, and the file is created again", async () => {
    await change({ update: [GONE] });
    expect([sent.length, shop.checks]).toEqual([4, ["a.md"]]);
    expect(shop.get(row)?.shape).not.toEqual(observedAt("a.md").shape);
    expect(shop.reports).toEqual([]);
  });

  it("a changed resource that is gone with many others leaves the row unsure", async () => {
    remakes = false;
    await change({ update: [GONE] });
    expect([shop.state("a.md"), shop.checks]).toEqual(["unsure", []]);
    expect(shop.get(row)?.shape).toEqual(observedAt("a.md").shape);
  });

  it("a change that was falsely answered with 404 is sent again, and done", async () => {
    await change({ update: [GONE, done()], read: [{ kind: "done", value: { isDeleted: false } }] });
    expect([sent.length, shop.state("a.md")]).toEqual([2, "agreed"]);
    // Under the first key some services would repeat the refusal.
    expect(new Set(keys).size).toBe(2);
  });

  it("a change answered with 404 is parked if the service still shows the resource", async () => {
    await change({ update: [GONE], read: [{ kind: "done", value: { isDeleted: false } }] });
    expect(shop.state("a.md")).toBe("parked");
    expect(trouble()).toMatchObject({ message: expect.stringContaining("shows the resource") as string });
  });
});

describe("failed changes", () => {
  it("a refused change records the service's words, and what its resource certainly has", async () => {
    await change({ update: [REFUSED] });
    expect(trouble()).toMatchObject({ path: "a.md", code: "too_odd", message: "not this one" });
    expect(shop.get(row)).toMatchObject({ state: "failed", docId: "doc", hash: "hash" });
    expect(shop.reports).toMatchObject([{ action: "update", outcome: "refused", docId: "doc" }]);
  });

  it("a refused change after one without an answer leaves its resource's content unknown", async () => {
    await change({ update: [REFUSED] }, { state: "unsure" });
    expect(shop.get(row)).toMatchObject({ state: "failed", hash: "" });
  });

  it("a change that fails three times while the service answers otherwise is parked, and checked again in a minute", async () => {
    await change({ update: [later()] });
    expect([sent.length, shop.state("a.md"), shop.checks]).toEqual([
      3,
      "parked",
      [`a.md at ${shop.nowMs + 60_000}`],
    ]);
    expect(shop.get(row)?.hash).toBe("hash");
    expect(shop.reports).toMatchObject([{ outcome: "parked", message: "busy" }]);
  });

  it("a failed change that may have taken effect leaves its resource's content unknown", async () => {
    await change({ update: [later({ acted: "maybe" }), later()] });
    expect(shop.get(row)).toMatchObject({ state: "parked", hash: "" });
    // It may take effect after the next version.
    expect(comparisons).toBe(1);
  });

  it.each([
    ["the service is to blame", later({ blame: "service" })],
    ["an earlier one is in flight", later({ isInFlight: true, retryAfterMs: 0 })],
  ])("a change is sent again while %s", async (_what, reply) => {
    await change({ update: [reply, reply, reply, reply, done()] });
    expect([sent.length, shop.state("a.md")]).toEqual([5, "agreed"]);
  });

  it("a change is sent again while the service answers nothing else either", async () => {
    await change({ update: [later(), later(), later(), later(), done()], isUp: false });
    expect([sent.length, shop.state("a.md")]).toEqual([5, "agreed"]);
  });
});

describe("changes of an uploaded file", () => {
  const at = (...urls: string[]): Reply<string>[] => urls.map((value) => ({ kind: "done", value }));

  it("a changed upload uploads its bytes, and sends their address", async () => {
    await change({ upload: at("new"), update: [done()] });
    expect([uploads, sent]).toEqual([1, [{ title: "a.md", description: "d", url: "new" }]]);
    expect(shop.get(row)).toMatchObject({ state: "agreed", fileUrl: "new" });
  });

  it("a changed upload uploads nothing if only its title changed", async () => {
    await change({ upload: at("new"), update: [done()] }, { action: "retitle" });
    expect([uploads, sent]).toEqual([0, [{ title: "a.md", description: "d" }]]);
  });

  it("a changed upload uploads its bytes once, however often the address is sent", async () => {
    await change({ upload: at("new", "newer"), update: [later(), later(), done()] });
    expect([uploads, sent.map(({ url }) => url)]).toEqual([1, ["new", "new", "new"]]);
    expect(new Set(keys).size).toBe(1);
  });

  it("a changed upload uploads its bytes once more when an address that was sent before is refused", async () => {
    await change({ upload: at("new", "newer"), update: [later(), REFUSED, done()] });
    expect([uploads, sent.map(({ url }) => url)]).toEqual([2, ["new", "new", "newer"]]);
    expect(shop.get(row)?.fileUrl).toBe("newer");
    expect([keys[0] === keys[1], keys[1] === keys[2]]).toEqual([true, false]);
    expect(new Set(uploadKeys).size).toBe(2);
  });

  it("a changed upload that the service works on since an earlier process has the address that it shows", async () => {
    const shown = (status: string): Reply<object> => ({
      kind: "done",
      value: { title: "a.md", description: "d", url: "new", metadata: { status } },
    });
    const read = [shown("queued"), shown("chunked")];
    await change({ upload: at("newer"), read }, { state: "unsure" });
    expect([uploads, sent, shop.get(row)?.fileUrl]).toEqual([0, [], "new"]);
  });

  it("a changed upload is sent where the service has another version when it has ended its work", async () => {
    const shown = (status: string, description: string): Reply<object> => ({
      kind: "done",
      value: { title: "a.md", description, url: "new", metadata: { status } },
    });
    const read = [shown("queued", "d"), shown("chunked", "of another name")];
    await change({ upload: at("newer"), read, update: [done()] }, { state: "unsure" });
    expect([sent.map(({ url }) => url), shop.get(row)?.fileUrl]).toEqual([["newer"], "newer"]);
  });

  it("a file that changes while it is uploaded is checked again", async () => {
    await change({ upload: [{ kind: "torn" }] });
    expect([sent, shop.state("a.md"), shop.checks]).toEqual([[], "unsure", ["a.md torn"]]);
  });
});

describe("metadata", () => {
  const metadata = { path: "a.md" };

  it("metadata is sent with the text, and alone with title and description", async () => {
    await change({ update: [done()] }, { metadata });
    await change({ update: [done()] }, { metadata, action: "retitle" });
    expect(sent).toEqual([
      { title: "a.md", description: "d", metadata, content: "new text" },
      { title: "a.md", description: "d", metadata },
    ]);
  });
});
