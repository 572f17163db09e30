import { describe, expect, it } from "vitest";
import { holds, labelOf, storedAs, storedOf, withListedMetadata } from "../../../src/sync/actions/observe.ts";
import { digestOf } from "../../../src/formats/digest.ts";
import { observedAt } from "./fixture.ts";

const observed = { ...observedAt("a.md"), label: labelOf("a", "d"), digest: digestOf("text") };
const upload = {
  ...observed,
  shape: { ...observed.shape, kind: "file" as const },
  fileUrl: "https://kb/u/1",
};
const record = { title: "a", description: "d", content: "text", url: "https://kb/u/1" };

describe("labels", () => {
  it("a label stands for title and description together, however their letters are composed", () => {
    expect(labelOf("e\u0301", "d")).toBe(labelOf("\u00e9", "d"));
    expect(new Set([labelOf("a", "b"), labelOf("b", "a"), labelOf("ab", ""), labelOf("", "ab")]).size).toBe(
      4,
    );
  });
});

describe("learning the stored form from an answer", () => {
  it.each([
    ["nothing if it is what was sent", record, {}],
    ["the title and description as stored", { ...record, title: "A" }, { label: labelOf("A", "d") }],
    ["the text as stored", { ...record, content: "other" }, { digest: digestOf("other") }],
    ["nothing of what it does not show", { title: "A", content: "" }, {}],
    ["nothing of an empty description", { ...record, title: "A", description: "" }, {}],
    ["when it stored it", { ...record, updatedAt: "1970-01-01T00:00:01Z" }, { atMs: 1000 }],
    ["no time from an invalid one", { ...record, updatedAt: "soon" }, {}],
  ])("an answer shows %s", (_what, answer, stored) => {
    expect(storedOf(answer, observed)).toEqual(stored);
  });

  it("an answer shows no text of an upload, which is the service's own", () => {
    expect(storedOf({ ...record, content: "what it read" }, upload)).toEqual({});
  });

  it("a list shows the stored label", () => {
    expect([storedAs(observed.label, observed), storedAs("other", observed)]).toEqual([
      {},
      { label: "other" },
    ]);
  });
});

describe("comparing a resource with what would be sent", () => {
  it.each([
    ["a resource with the same names and text is equal", record, observed, null, true],
    ["a resource with another title is not equal", { ...record, title: "b" }, observed, null, false],
    ["a resource with another text is not equal", { ...record, content: "other" }, observed, null, false],
    ["a resource that shows no text is not equal", { ...record, content: "" }, observed, null, false],
    ["a resource with the upload's address is equal", record, upload, null, true],
    [
      "a resource with the address of the previous upload is equal",
      record,
      { ...upload, fileUrl: undefined },
      record.url,
      true,
    ],
    [
      "a resource with another address is not equal",
      record,
      { ...upload, fileUrl: "https://kb/u/2" },
      record.url,
      false,
    ],
    [
      "a resource without an address is not equal to an upload without one",
      { ...record, url: "" },
      { ...upload, fileUrl: undefined },
      null,
      false,
    ],
  ])("%s", (_what, found, sent, fileUrl, expected) => {
    expect(holds(found, sent, fileUrl)).toBe(expected);
  });
});

describe("a file whose resource a list shows", () => {
  const sent = { ...observedAt("a.md"), metadataHash: "m" };

  it("a file whose resource a list shows has the metadata that was sent if the list shows that", () => {
    expect(withListedMetadata(sent, "m")).toBe(sent);
  });

  it.each([["n"], [undefined]])(
    "a file whose resource a list shows is read again if the list shows other metadata or none: %s",
    (listed) => {
      const found = withListedMetadata(sent, listed);
      expect([found.metadataHash, found.rulesKey]).toEqual([listed, 0]);
    },
  );

  it("a file whose resource a list shows is as it was observed at a service that takes no metadata", () => {
    expect(withListedMetadata(observedAt("a.md"), "n")).toEqual(observedAt("a.md"));
  });
});
