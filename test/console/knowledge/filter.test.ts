import { expect, it } from "vitest";
import { filtered } from "../../../src/console/knowledge/filter.ts";
import type { Filter } from "../../../src/console/knowledge/filter.ts";
import { listed } from "../../../src/console/knowledge/listed-document.ts";

const document = (title: string, metadata: object, updatedAt = "2026-01-01T00:00:00.000Z") =>
  listed({ _id: title, title, description: "", isDeleted: false, metadata: { ...metadata }, updatedAt });
const DOCUMENTS = [
  document("Pump 10", { status: "chunked", path: "manuals/pump.md" }, "2026-01-03T00:00:00.000Z"),
  document("Pump 9", { status: "error", message: "damaged" }, "2026-01-01T00:00:00.000Z"),
  document("Valve", { status: "queued", lang: "de" }, "2026-01-02T00:00:00.000Z"),
];
const ALL: Filter = { text: "", status: "all", sort: "updated", isDescending: true };

it.each<[string, Partial<Filter>, readonly string[]]>([
  ["the newest first", {}, ["Pump 10", "Valve", "Pump 9"]],
  ["titles by their numbers", { sort: "title", isDescending: false }, ["Pump 9", "Pump 10", "Valve"]],
  ["what failed first", { sort: "status", isDescending: false }, ["Pump 9", "Valve", "Pump 10"]],
  ["by status", { status: "failed" }, ["Pump 9"]],
  ["by words of the path, whatever their case", { text: "MANUALS pump" }, ["Pump 10"]],
  ["by metadata", { text: "de" }, ["Valve"]],
  ["nothing that lacks a word", { text: "pump valve" }, []],
])("lists %s", (_name, change, titles) => {
  expect(filtered(DOCUMENTS, { ...ALL, ...change }).map(({ title }) => title)).toEqual(titles);
});

it.each([
  [undefined, "content"],
  ["http://127.0.0.1:1/files/TrPvcDIViQI9N-PTBIfgI8AulPvWfIBGGkG3og7PPnY/a.pdf", "file"],
  ["https://example.com/files/a", "link"],
])("calls a document with the address %s a %s", (url, kind) => {
  expect(listed({ _id: "a", title: "a", description: "", isDeleted: false, url }).kind).toBe(kind);
});
