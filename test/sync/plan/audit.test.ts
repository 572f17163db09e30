import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  alterationsOf,
  gatherUnowned,
  LOSS_FILES_MIN,
  lossReason,
  UNOWNED_MAX,
  type Acknowledged,
} from "../../../src/sync/plan/audit.ts";
import type { ListedResource } from "../../../src/sync/plan/model.ts";
import { normalizedAddress } from "../../../src/sync/plan/address.ts";

const row = (more: Partial<Acknowledged> = {}): Acknowledged => ({
  state: "agreed",
  kind: "content",
  digest: "d",
  label: "l",
  fileUrl: null,
  storedDigest: null,
  storedLabel: null,
  ...more,
});
const listed = (more: Partial<ListedResource> = {}): ListedResource => ({
  docId: "x",
  createdMs: 1000,
  url: undefined,
  digest: "d",
  label: "l",
  title: "t",
  ...more,
});
const UPLOAD = { kind: "file", digest: "", fileUrl: "https://files/token" } as const;

describe("differences between a row and its resource", () => {
  it.each<{ name: string; row: Acknowledged; listed: ListedResource; expected: string[] }>([
    { name: "nothing", row: row(), listed: listed(), expected: [] },
    { name: "the text", row: row(), listed: listed({ digest: "e" }), expected: ["text"] },
    { name: "the label", row: row(), listed: listed({ label: "m" }), expected: ["title or description"] },
    {
      name: "both",
      row: row(),
      listed: listed({ digest: "e", label: "m" }),
      expected: ["text", "title or description"],
    },
    {
      name: "the metadata that somebody changed",
      row: row({ metadataHash: "m", storedMs: 1000 }),
      listed: listed({ metadataHash: "n", updatedMs: 2000 }),
      expected: ["metadata"],
    },
    {
      name: "not metadata that the service stored in a form of its own",
      row: row({ metadataHash: "m", storedMs: 1000 }),
      listed: listed({ metadataHash: "n", updatedMs: 1000 }),
      expected: [],
    },
    {
      name: "not metadata that the list does not show",
      row: row({ metadataHash: "m" }),
      listed: listed(),
      expected: [],
    },
    {
      name: "not metadata that was never sent",
      row: row(),
      listed: listed({ metadataHash: "n" }),
      expected: [],
    },
    {
      name: "not a text that was found before and sent again without effect",
      row: row({ storedDigest: "e" }),
      listed: listed({ digest: "e" }),
      expected: [],
    },
    {
      name: "a text that is neither ours nor the one found before",
      row: row({ storedDigest: "f" }),
      listed: listed({ digest: "e" }),
      expected: ["text"],
    },
    {
      name: "not an upload at its address, whatever text the service extracted from it",
      row: row(UPLOAD),
      listed: listed({ url: UPLOAD.fileUrl, digest: "whatever" }),
      expected: [],
    },
    {
      name: "an upload at another address",
      row: row(UPLOAD),
      listed: listed({ url: "https://files/other" }),
      expected: ["address"],
    },
    {
      name: "an upload whose text the service has not processed",
      row: row(UPLOAD),
      listed: listed({ url: UPLOAD.fileUrl, isUnfinished: true }),
      expected: ["text"],
    },
    { name: "an upload without any address", row: row(UPLOAD), listed: listed(), expected: ["address"] },
    {
      name: "not a link in another spelling",
      row: row({ kind: "link", digest: "", fileUrl: "https://Example.com" }),
      listed: listed({ url: "https://example.com/", digest: "" }),
      expected: [],
    },
    {
      name: "not an upload at a service on this machine that has another port by now",
      row: row({ ...UPLOAD, fileUrl: "http://127.0.0.1:7411/files/token/a.pdf" }),
      listed: listed({ url: "http://localhost:9000/files/token/a.pdf" }),
      expected: [],
    },
    ...(["unsure", "failed", "parked", "held", "doomed", "skipped"] as const).map((state) => ({
      name: `nothing of a row that is ${state}, because its content is unknown`,
      row: row({ state }),
      listed: listed({ digest: "e", label: "m" }),
      expected: [],
    })),
  ])("a row and its resource differ in $name", (each) => {
    expect(alterationsOf(each.row, each.listed)).toEqual(each.expected);
  });
});

it("identifies an upload by its random bits, whatever its host and port", () => {
  const bits = "k".repeat(43);
  const spelled = [
    `http://127.0.0.1:7411/files/${bits}/a.pdf`,
    `http://localhost:9/files/${bits}/a.pdf`,
    `https://kb.example/files/${bits}/a.pdf`,
    `https://kb.example/below/files/${bits}/a.pdf`,
  ].map(normalizedAddress);
  expect(new Set(spelled)).toEqual(new Set([`upload/files/${bits}/a.pdf`]));
  const others = [
    `https://kb.example/files/${bits}/b.pdf`,
    `https://kb.example/files/${"m".repeat(43)}/a.pdf`,
    `https://kb.example/files/${bits}/a.pdf?x`,
    `https://kb.example/files/short/a.pdf`,
  ].map(normalizedAddress);
  expect(new Set([...spelled, ...others]).size).toBe(5);
});

it("leaves a string that is not an address unchanged", () => {
  expect([
    normalizedAddress("not an address"),
    normalizedAddress(null),
    normalizedAddress(undefined),
  ]).toEqual(["not an address", undefined, undefined]);
});

describe("a loss of most resources", () => {
  it.each([
    [{ acknowledged: 1000, missing: 0, altered: 0 }, undefined],
    [{ acknowledged: 1000, missing: 500, altered: 0 }, undefined],
    [{ acknowledged: 1000, missing: 501, altered: 0 }, "has lost 501 of 1,000 resources"],
    [{ acknowledged: 1000, missing: 0, altered: 501 }, "another version of 501 of 1,000"],
    [{ acknowledged: 1000, missing: 251, altered: 250 }, "lost 251 and holds another version of 250"],
    [{ acknowledged: 4, missing: 4, altered: 0 }, undefined],
    [{ acknowledged: 5, missing: 5, altered: 0 }, "has lost 5 of 5"],
  ])("%o: %s", (counts, words) => {
    const reason = lossReason(counts) ?? "nothing is held";
    expect(reason).toContain(words ?? "nothing is held");
  });

  it("keeps a source held until all but a few resources are back, however many others exist", () => {
    const among = (missing: number): string | undefined =>
      lossReason({ acknowledged: 1000, missing, altered: 0 }, true);
    expect(among(LOSS_FILES_MIN)).toContain("has lost 5 of 1,000");
    expect(among(LOSS_FILES_MIN - 1)).toBe(undefined);
  });

  it("never holds a few or at most half, and always holds more", () => {
    const counts = fc
      .tuple(fc.nat(2000), fc.nat(2000), fc.nat(2000))
      .map(([sound, missing, altered]) => ({ acknowledged: sound + missing + altered, missing, altered }));
    fc.assert(
      fc.property(counts, ({ acknowledged, missing, altered }) => {
        const drifted = missing + altered;
        const isHeld = lossReason({ acknowledged, missing, altered }) !== undefined;
        expect(isHeld).toBe(drifted >= LOSS_FILES_MIN && drifted > acknowledged - drifted);
      }),
    );
  });
});

describe("resources that no row owns", () => {
  const never = (): boolean => false;
  it.each<{
    name: string;
    unowned: [ListedResource, boolean][];
    rows: (Acknowledged & { docId: string })[];
    bornMs?: number;
    travelling?: string;
    expected: [string, string][];
    foreign: number;
  }>([
    { name: "are foreign", unowned: [[listed(), false]], rows: [], expected: [], foreign: 1 },
    {
      name: "a resource with the address of our upload is ours, however old",
      unowned: [[listed({ url: UPLOAD.fileUrl, createdMs: 0 }), false]],
      rows: [{ ...row(UPLOAD), docId: "a" }],
      bornMs: 500,
      expected: [["x", "upload"]],
      foreign: 0,
    },
    {
      name: "a resource that only has the address of our link is not ours",
      unowned: [[listed({ url: "https://example.com/", label: "other", digest: "" }), false]],
      rows: [{ ...row({ kind: "link", digest: "", fileUrl: "https://example.com/" }), docId: "a" }],
      expected: [],
      foreign: 1,
    },
    {
      name: "a resource with equal text, title and description seems ours",
      unowned: [[listed(), false]],
      rows: [{ ...row(), docId: "a" }],
      expected: [["x", "twin"]],
      foreign: 0,
    },
    {
      name: "a resource with an equal title alone does not seem ours",
      unowned: [[listed({ digest: "e" }), false]],
      rows: [{ ...row(), docId: "a" }],
      expected: [],
      foreign: 1,
    },
    {
      name: "an equal resource older than the ledger does not seem ours",
      unowned: [[listed({ createdMs: 499 }), false]],
      rows: [{ ...row(), docId: "a" }],
      bornMs: 500,
      expected: [],
      foreign: 1,
    },
    {
      name: "an equal resource of unknown age does not seem ours",
      unowned: [[listed({ createdMs: undefined }), false]],
      rows: [{ ...row(), docId: "a" }],
      expected: [],
      foreign: 1,
    },
    {
      name: "a resource that we deleted is ours",
      unowned: [[listed(), true]],
      rows: [],
      expected: [["x", "deleted"]],
      foreign: 0,
    },
    {
      name: "a resource that a create in flight may have made is not counted yet",
      unowned: [[listed(), false]],
      rows: [{ ...row(), docId: "a" }],
      travelling: "x",
      expected: [],
      foreign: 0,
    },
  ])("$name", ({ unowned, rows, bornMs = 0, travelling, expected, foreign }) => {
    const gathered = gatherUnowned();
    for (const [resource, isDeleted] of unowned) gathered.add(resource, isDeleted);
    for (const each of rows) gathered.show(each);
    const claims = gathered.finish(
      bornMs,
      travelling === undefined ? never : ({ docId }) => docId === travelling,
    );
    expect(claims.claimed.map(({ resource, claim }) => [resource.docId, claim])).toEqual(expected);
    expect(claims.foreign.count).toBe(foreign);
  });

  it("counts an unowned resource once however often a list shows it, in any order of rows and resources", () => {
    const word = fc.constantFrom("a", "b", "c");
    const resources = fc.array(
      fc.record({ docId: fc.constantFrom("1", "2", "3", "4"), digest: word, label: word }),
    );
    const rows = fc.array(fc.record({ digest: word, label: word }));
    fc.assert(
      fc.property(resources, rows, (all, known) => {
        const finish = (list: typeof all): unknown => {
          const gathered = gatherUnowned();
          for (const each of list) gathered.add(listed(each), false);
          for (const each of known) gathered.show({ ...row(each), docId: "row" });
          const { claimed, foreign } = gathered.finish(0, never);
          return [claimed.map(({ resource }) => resource.docId).toSorted(), foreign.count];
        };
        const first = new Map(all.toReversed().map((each) => [each.docId, each]));
        const unique = [...first.values()];
        expect(finish(unique)).toEqual(finish(unique.toReversed()));
        const [claimed, foreign] = finish(all) as [string[], number];
        expect(claimed.length + foreign).toBe(unique.length);
      }),
    );
  });

  it("does not count a resource that this ledger deleted as an older one, whatever claims it", () => {
    const gathered = gatherUnowned();
    gathered.add(listed({ docId: "deleted" }), true);
    gathered.add(listed({ docId: "older" }), false);
    gathered.show({ ...row(), docId: "row" });
    const older = gathered.olderThan({ ...row(), docId: "row" }, 2000);
    expect(older.map(({ docId }) => docId)).toEqual(["older"]);
  });

  it("finds older resources of a file, oldest first, if they were made before the bound", () => {
    const gathered = gatherUnowned();
    for (const [docId, createdMs] of [
      ["middle", 1500],
      ["oldest", 1000],
      ["at the bound", 2000],
      ["undated", undefined],
      ["youngest", 1999],
    ] as const)
      gathered.add(listed({ docId, createdMs }), false);
    const older = gathered.olderThan({ ...row(), docId: "row" }, 2000);
    expect(older.map(({ docId }) => docId)).toEqual(["oldest", "middle", "youngest"]);
  });

  it("finds older resources of an upload by its title and description, as sent or as stored, and an address", () => {
    const gathered = gatherUnowned();
    const url = "https://files/other";
    gathered.add(listed({ docId: "as sent", url, label: "l", createdMs: 1 }), false);
    gathered.add(listed({ docId: "as stored", url, label: "stored", createdMs: 2 }), false);
    gathered.add(listed({ docId: "a text", label: "l", createdMs: 3 }), false);
    gathered.add(listed({ docId: "of another title", url, label: "m", createdMs: 4 }), false);
    const upload = { ...row({ ...UPLOAD, storedLabel: "stored" }), docId: "row" };
    expect(gathered.olderThan(upload, 2000).map(({ docId }) => docId)).toEqual(["as sent", "as stored"]);
  });

  it("keeps the claim by an upload's address when another file's content is equal too", () => {
    const gathered = gatherUnowned();
    gathered.add(listed({ url: UPLOAD.fileUrl, digest: "" }), false);
    gathered.show({ ...row(UPLOAD), docId: "upload" });
    gathered.show({ ...row({ kind: "link", digest: "", fileUrl: UPLOAD.fileUrl }), docId: "link" });
    const { claimed } = gathered.finish(0, never);
    expect(claimed.map(({ claim, by }) => [claim, by])).toEqual([["upload", "upload"]]);
  });

  it("recognises a duplicate in the form in which the service stored the first", () => {
    const gathered = gatherUnowned();
    gathered.add(listed({ label: "stored", digest: "stored" }), false);
    gathered.show({ ...row({ storedLabel: "stored", storedDigest: "stored" }), docId: "row" });
    expect(gathered.finish(0, never).claimed.map(({ claim, by }) => [claim, by])).toEqual([["twin", "row"]]);
  });

  it("names up to twenty foreign resources, by title, and counts all", () => {
    const gathered = gatherUnowned();
    const count = UNOWNED_MAX + 3;
    for (let at = 0; at < count; at += 1) {
      const title = String(count - at).padStart(6, "0");
      gathered.add(listed({ docId: `doc${at}`, title }), false);
    }
    const { claimed, foreign } = gathered.finish(0, never);
    expect([claimed, foreign.count]).toEqual([[], count]);
    // Those beyond the bound, which have the first titles, are not remembered.
    expect(foreign.first.map(({ title }) => Number(title))).toEqual(
      Array.from({ length: 20 }, (_, at) => 4 + at),
    );
  });
});
