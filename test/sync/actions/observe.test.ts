import { describe, expect, it } from "vitest";
import { holds, labelOf, labelsOf, storedAs, storedOf, topicOf } from "../../../src/sync/actions/observe.ts";
import { digestOf } from "../../../src/sync/document/digest.ts";
import { observedAt } from "./fixture.ts";

const observed = { ...observedAt("a.md"), label: labelOf("a", "d"), digest: digestOf("text") };
const upload = {
  ...observed,
  shape: { ...observed.shape, kind: "file" as const },
  fileUrl: "https://kb/u/1",
};
const record = { title: "a", description: "d", content: "text", url: "https://kb/u/1" };

describe("a label", () => {
  it("stands for title and description together, however their letters are composed", () => {
    expect(labelOf("e\u0301", "d")).toBe(labelOf("\u00e9", "d"));
    expect(new Set([labelOf("a", "b"), labelOf("b", "a"), labelOf("ab", ""), labelOf("", "ab")]).size).toBe(
      4,
    );
    expect(topicOf("d")).toBe(labelOf("", "d"));
  });

  it("as rows from before have it is named where it is another", () => {
    expect(labelsOf("a", "d")).toEqual({ label: labelOf("a", "d") });
    const { label, plainLabel } = labelsOf("e\u0301", "d");
    expect(label).toBe(labelOf("\u00e9", "d"));
    expect(plainLabel).toMatch(/^.+$/);
    expect(plainLabel).not.toBe(label);
  });
});

describe("what a service stored is learned from its answer", () => {
  it.each([
    ["nothing where it is what was sent", record, {}],
    ["the title and description as it has them", { ...record, title: "A" }, { label: labelOf("A", "d") }],
    ["the text as it has it", { ...record, content: "other" }, { digest: digestOf("other") }],
    ["nothing of what it does not show", { title: "A", content: "" }, {}],
    ["nothing of an empty description", { ...record, title: "A", description: "" }, {}],
    ["when it stored it", { ...record, updatedAt: "1970-01-01T00:00:01Z" }, { atMs: 1000 }],
    ["no time that is none", { ...record, updatedAt: "soon" }, {}],
  ])("%s", (_what, answer, stored) => {
    expect(storedOf(answer, observed)).toEqual(stored);
  });

  it("but no text of an upload, which is the service's own", () => {
    expect(storedOf({ ...record, content: "what it read" }, upload)).toEqual({});
  });

  it("and the label from a list", () => {
    expect([storedAs(observed.label, observed), storedAs("other", observed)]).toEqual([
      {},
      { label: "other" },
    ]);
  });
});

describe("a resource holds what is to be sent", () => {
  it.each([
    ["when names and text are the same", record, observed, null, true],
    ["not when it has another title", { ...record, title: "b" }, observed, null, false],
    ["not when it has another text", { ...record, content: "other" }, observed, null, false],
    ["not when it shows no text", { ...record, content: "" }, observed, null, false],
    ["when it has the upload's address", record, upload, null, true],
    [
      "when it has the address of an upload before",
      record,
      { ...upload, fileUrl: undefined },
      record.url,
      true,
    ],
    ["not when it has another address", record, { ...upload, fileUrl: "https://kb/u/2" }, record.url, false],
    [
      "not when neither has an address",
      { ...record, url: "" },
      { ...upload, fileUrl: undefined },
      null,
      false,
    ],
  ])("%s", (_what, found, sent, fileUrl, expected) => {
    expect(holds(found, sent, fileUrl)).toBe(expected);
  });
});
