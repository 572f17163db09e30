import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withModel, withoutSource, withSource } from "../../src/config/edit.ts";
import { parseConfig, parseJson } from "../../src/config/config-file.ts";
import { configText } from "../../src/config/template.ts";

const paths = (text: string): string[] => parseConfig(text, "c.json").sources.map(({ path }) => path);
const added = (text: string): string => withSource(text, { path: "/new" });

describe("a source that is added", () => {
  it.each([
    ["to no configuration", "{}", ["/new"]],
    ["to one without sources", '{ "stateDir": "/s" }', ["/new"]],
    ["to an empty list", '{ "sources": [] }', ["/new"]],
    ["after another one", '{ "sources": [{ "path": "/a" }] }', ["/a", "/new"]],
    ["after a trailing comma", '{\n  "sources": [\n    { "path": "/a" },\n  ],\n}', ["/a", "/new"]],
    [
      "although another key has that name",
      '{ "service": {}, "sources": [{"path": "sources"}] }',
      ["sources", "/new"],
    ],
    [
      "although a comment looks like a list",
      '{ // "sources": [\n "sources": [ /* ] */ {"path": "/a"} ] }',
      ["/a", "/new"],
    ],
  ])("adds a folder %s", (_name, text, expected) => expect(paths(added(text))).toEqual(expected));

  it("leaves comments and layout as they are", () => {
    const text =
      '{\n  // mine\n  "sources": [\n    { "path": "/a" }, // the first\n    // the end\n  ],\n}\n';
    expect(added(text)).toBe(
      '{\n  // mine\n  "sources": [\n    { "path": "/a" }, // the first\n    { "path": "/new" },\n    // the end\n  ],\n}\n',
    );
  });
});

describe("a source that is removed", () => {
  const three =
    '{\n  "sources": [\n    {"path": "/a"}, // first\n    {"path": "/b"},\n    {"path": "/c"}\n  ]\n}\n';
  it.each([
    [0, ["/b", "/c"]],
    [1, ["/a", "/c"]],
    [2, ["/a", "/b"]],
  ])("leaves the others (%i)", (index, expected) => {
    const text = withoutSource(three, index);
    expect(paths(text)).toEqual(expected);
    // No trailing comma comes in where there was none.
    expect(() => JSON.parse(text.replace("// first", "")) as unknown).not.toThrow();
  });

  it("a source that is removed can be the only one", () =>
    expect(paths(withoutSource('{"sources": [{"path": "/a"}]}', 0))).toEqual([]));
});

it("undoes an addition, whatever the configuration looks like", () => {
  const source = fc.record({ path: fc.string({ minLength: 1 }) });
  const layout = fc.constantFrom(undefined, 1, 2, "\t");
  fc.assert(
    fc.property(fc.array(source, { maxLength: 4 }), layout, fc.boolean(), (sources, space, isLast) => {
      const fields = { stateDir: '/a"[{', ...(isLast ? {} : { sync: { concurrency: 3 } }), sources };
      const text = JSON.stringify(fields, undefined, space);
      const more = withSource(text, { path: "/new" });
      expect(parseJson(more, "c.json")).toEqual({
        ...fields,
        sources: [...sources, { path: "/new" }],
      });
      expect(parseJson(withoutSource(more, sources.length), "c.json")).toEqual(fields);
    }),
  );
});

it("edits what `kbsync init` writes", () => {
  const text = configText({
    folders: ["/a", "/b"],
    collection: "fastest",
    service: {},
    stateDir: undefined,
    schema: undefined,
  });
  expect(paths(added(text))).toEqual(["/a", "/b", "/new"]);
  expect(paths(withoutSource(added(text), 0))).toEqual(["/b", "/new"]);
  expect(added(text).length - text.length).toBeLessThan(40);
});

describe("the embedding model", () => {
  const modelIn = (text: string): string | undefined => parseConfig(text, "c.json").kb.embedding.model;

  it.each([
    ["in no configuration", "{}"],
    ["without a section for the service's rules", '{ "sources": [] }'],
    ["in an empty section", '{ "kb": {} }'],
    ["beside another key of its section", '{ "kb": { "unusedFileDays": 1 } }'],
    ["in an empty part of a section", '{ "kb": { "embedding": {} } }'],
    ["in the place of another", '{ "kb": { "embedding": { "model": "/a" } } }'],
    ["although another key has that name", '{ "stateDir": "embedding", "kb": {} }'],
    ["although a comment names one", '{ "kb": { /* "embedding": { "model": "/a" } */ } }'],
  ])("the embedding model is set %s", (_name, text) => {
    const set = withModel(text, '/m "1"');
    expect(modelIn(set)).toBe('/m "1"');
    const { kb, ...rest } = parseConfig(text, "c.json");
    expect(parseConfig(set, "c.json")).toEqual({ ...rest, kb: { ...kb, embedding: { model: '/m "1"' } } });
    expect(withModel(set, '/m "1"')).toBe(set);
  });

  it("leaves comments and layout as they are", () => {
    const text = '{\n  "kb": {\n    // mine\n    "unusedFileDays": 1,\n  },\n}\n';
    const member = '"embedding": { "model": "e5" },';
    expect(withModel(text, "e5")).toBe(text.replace("    // mine", `    ${member}\n    // mine`));
    const offered = '{\n  "kb": {\n    // "unusedFileDays": 1,\n  },\n}\n';
    expect(withModel(offered, "e5")).toBe(offered.replace("    //", `    ${member}\n    //`));
    expect(withModel(`{ // mine\n}`, "e5")).toBe('{ "kb": { "embedding": { "model": "e5" } }  // mine\n}');
  });
});
