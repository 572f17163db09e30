import { describe, expect, it } from "vitest";
import { labelOf, storedAs, storedOf } from "../../../src/sync/send/observe.ts";
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
