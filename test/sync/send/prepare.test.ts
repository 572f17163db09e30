import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { labelOf } from "../../../src/sync/send/observe.ts";
import { type Prepared, prepareFile } from "../../../src/sync/send/prepare.ts";
import type { ReadOutcome, SourceDocument } from "../../../src/sync/scan/read/outcome.ts";
import { bytesTag, fileTag, markedDescription } from "../../../src/sync/plan/marker.ts";
import { versionsOf } from "../../../src/sync/plan/versions.ts";
import type { FileState, Candidate } from "../../../src/sync/plan/model.ts";
import { observedAt, openWorkshop, type Workshop } from "./fixture.ts";

let shop: Workshop;
beforeEach(() => {
  shop = openWorkshop();
});
afterEach(() => shop.close());

/** What is read of `a.md`. The title is its path, so that names are equal only where the label is. */
function document(
  more: { kind?: "content" | "file"; sizeBytes?: number; hash?: string; title?: string } = {},
): ReadOutcome {
  const { kind = "content", sizeBytes = 4, hash = "hash", title = "a.md" } = more;
  const { entry, shape, extractorVersion, digest } = observedAt("a.md");
  const recipe = { title, description: "d", extractorVersion, ...shape };
  const read = { ...entry, sizeBytes };
  const facts = { kind, content: "text", digest, hash, sizeBytes, entry: read, recipe };
  return { kind: "document", document: facts as unknown as SourceDocument };
}
const prepare = async (
  outcome: ReadOutcome,
  candidate: Candidate = shop.candidate("a.md"),
): Promise<Prepared | undefined> =>
  await prepareFile(
    shop.context({ read: async () => await Promise.resolve(outcome) }),
    shop.source,
    candidate,
  );
/** The label of `document()`, whose description ends with the marker of its file and version. */
const sentLabel = (): string => {
  const marker = { ...shop.source.signature, file: fileTag("a.md"), bytes: bytesTag("hash", 1) };
  return labelOf("a.md", markedDescription("d", marker));
};
/** A row whose title and description are those of `document()`. */
const add = async (state: FileState, docId: string | null = "doc", label = sentLabel()): Promise<number> => {
  await shop.write(() =>
    shop.ledger.files.insert(shop.source.id, docId, state, { ...observedAt("a.md"), label }),
  );
  return shop.ledger.files.living(shop.source.id, "a.md")?.id ?? 0;
};
const troubles = (): unknown[] => {
  shop.ledger.flush();
  return shop.ledger.files.troubled({});
};

describe("files that cannot be read to the end", () => {
  it.each<[what: string, outcome: ReadOutcome, checks: string[]]>([
    ["a file that changes while it is read is checked again when it rests", { kind: "torn" }, ["a.md torn"]],
    [
      "a file that disappears while it is read is checked as one that changes",
      { kind: "gone" },
      ["a.md torn"],
    ],
    [
      "a file that was emptied since is checked as one that changes",
      document({ sizeBytes: 0 }),
      ["a.md torn"],
    ],
  ])("%s", async (_what, outcome, checks) => {
    expect(await prepare(outcome)).toBeUndefined();
    expect([shop.checks, shop.state("a.md"), shop.reports]).toEqual([checks, undefined, []]);
  });

  it("a file that cannot be read is parked for a minute, and longer with each further failure", async () => {
    await prepare({ kind: "unreadable", code: "EACCES" });
    expect(shop.state("a.md")).toBe("parked");
    expect(troubles()).toMatchObject([
      { path: "a.md", code: "EACCES", message: "cannot be read: permission denied (EACCES)" },
    ]);
    await prepare({ kind: "unreadable", code: "EACCES" });
    expect(shop.checks).toEqual([`a.md at ${shop.nowMs + 60_000}`, `a.md at ${shop.nowMs + 120_000}`]);
    expect(shop.reports).toMatchObject([
      { action: "read", outcome: "parked", docId: undefined },
      { action: "read", outcome: "parked" },
    ]);
  });

  it("a file that cannot be read keeps its resource", async () => {
    const id = await add("agreed");
    await prepare({ kind: "unreadable", code: "EIO" });
    expect(shop.get(id)).toMatchObject({ state: "parked", docId: "doc" });
    expect(shop.reports).toMatchObject([{ docId: "doc" }]);
  });
});

describe("files that must not leave", () => {
  it("a file with an objection fails, and keeps its resource", async () => {
    const id = await add("agreed", "doc", "other label");
    await shop.write(() => shop.ledger.files.setState(id, "failed"));
    const read = async (): Promise<ReadOutcome> => await Promise.resolve(document());
    const secretCheck = async (): Promise<string> => await Promise.resolve("line 3 looks like a secret");
    const context = shop.context({ read, secretCheck });
    expect(await prepareFile(context, shop.source, shop.candidate("a.md"))).toBeUndefined();
    expect(shop.get(id)).toMatchObject({ state: "failed", docId: "doc" });
    expect(shop.checks).toEqual([]);
    expect(troubles()).toMatchObject([
      { code: "secret", message: "line 3 looks like a secret; the service still has the version before" },
    ]);
  });
});

describe("files that cannot become a resource", () => {
  it.each<[what: string, outcome: ReadOutcome, docId: string | null, state: FileState, reported: string]>([
    ["a refused file failed", { kind: "refused", reason: "damaged" }, null, "failed", "refused"],
    [
      "a skipped file without a resource is left out",
      { kind: "skipped", reason: "damaged" },
      null,
      "skipped",
      "skipped",
    ],
    [
      "a skipped file with a resource keeps it and failed",
      { kind: "skipped", reason: "damaged" },
      "doc",
      "failed",
      "refused",
    ],
  ])("%s", async (_what, outcome, docId, state, reported) => {
    const id = await add("agreed", docId);
    await prepare(outcome);
    expect(shop.state("a.md")).toBe(state);
    expect(shop.get(id)).toMatchObject({ docId, rulesKey: shop.source.rulesKey("a.md") });
    expect(shop.reports).toMatchObject([{ action: "read", outcome: reported, message: "damaged" }]);
  });

  it("a file that cannot become a resource has a row from then on", async () => {
    await prepare({ kind: "refused", reason: "damaged" });
    expect(troubles()).toMatchObject([{ path: "a.md", code: "not_accepted", message: "damaged" }]);
  });

  it("a file that is empty, and was when it was checked, is left out", async () => {
    await prepare(document({ sizeBytes: 0 }), shop.candidate("a.md", 0));
    expect([shop.state("a.md"), shop.checks]).toEqual(["skipped", []]);
  });

  it("what is known of a resource's text stays only if its update was acknowledged", async () => {
    const [sure] = [await add("agreed")];
    await prepare({ kind: "refused", reason: "damaged" });
    expect(shop.get(sure)?.hash).toBe("hash");
    await shop.write(() => shop.ledger.files.setState(sure, "unsure"));
    await prepare({ kind: "refused", reason: "damaged" });
    expect(shop.get(sure)?.hash).toBe("");
  });
});

describe("files that need no request", () => {
  it("a file of which only the times changed is in agreement, and nothing is reported", async () => {
    const id = await add("failed");
    const candidate = shop.candidate("a.md");
    expect(
      await prepare(document(), { ...candidate, entry: { ...candidate.entry, mtimeMs: 9 } }),
    ).toBeUndefined();
    expect([shop.state("a.md"), shop.reports]).toEqual(["agreed", []]);
    expect(shop.get(id)?.docId).toBe("doc");
  });
});

describe("files that must be sent", () => {
  it("a new file is created under a key of its own, stored before the request leaves", async () => {
    const prepared = await prepare(document());
    expect(prepared?.bytes).toBe(4);
    expect(shop.ledger.intents.creates(shop.source.id)).toEqual([]);
    const departures = await shop.write(() => prepared?.write());
    const [intent] = shop.ledger.intents.creates(shop.source.id);
    expect(departures).toMatchObject({ action: "create", intent });
    expect(intent).toMatchObject({ path: "a.md", attempts: 1 });
    expect(intent?.key).toMatch(/^[0-9a-f-]{36}$/);
    const marker = { ...shop.source.signature, file: fileTag("a.md"), bytes: bytesTag("hash", 1) };
    expect(departures?.document.recipe.description).toBe(markedDescription("d", marker));
  });

  it.each([
    ["has other bytes", document({ hash: "other" }), undefined, "update", ["hash", "other"]],
    ["has another title", document({ title: "Other" }), undefined, "retitle", ["hash"]],
    ["moved", document(), "old.md", "move", ["hash"]],
  ] as const)(
    "a file that %s counts as unsure until that is acknowledged, and its versions are remembered",
    async (_what, outcome, from, action, hashes) => {
      const id = await add("agreed", "doc", from === undefined ? undefined : "label of the old path");
      const prepared = await prepare(outcome, {
        ...shop.candidate("a.md"),
        ...(from !== undefined && { from }),
      });
      expect(shop.state("a.md")).toBe("agreed");
      const departure = await shop.write(() => prepared?.write());
      expect(departure).toMatchObject({ action, intent: undefined });
      expect(shop.get(id)?.state).toBe("unsure");
      expect(versionsOf(shop.get(id)?.sent ?? "")).toEqual(
        hashes.map((hash) => ({ file: fileTag("a.md"), bytes: bytesTag(hash, 1) })),
      );
    },
  );

  it("a file is sent again under the old key if its create is in doubt and equal", async () => {
    const first = await prepare(document());
    const departed = await shop.write(() => first?.write());
    await shop.write(() => shop.ledger.intents.doubt(departed?.intent?.id ?? 0, null));
    const second = await prepare(document());
    const again = await shop.write(() => second?.write());
    expect(again?.intent).toMatchObject({ key: departed?.intent?.key, attempts: 2 });
  });
});
