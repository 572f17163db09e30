import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isWithin, UNSEARCHED_MAX, unsearchedParts } from "../../../src/sync/plan/unsearched.ts";
import {
  withoutInFlight,
  matchFiles,
  uploadGroups,
  type AdoptableResource,
  type AdoptingFile,
} from "../../../src/sync/plan/adoption.ts";

const file = (path: string, more: Partial<AdoptingFile> = {}): AdoptingFile => ({
  path,
  hasOther: false,
  kind: "content",
  title: more.label ?? "l",
  topic: "p",
  label: "l",
  digest: "d",
  url: undefined,
  hash: `hash of ${path}`,
  ...more,
});
const resource = (docId: string, more: Partial<AdoptableResource> = {}): AdoptableResource => ({
  docId,
  createdMs: 0,
  title: more.label ?? "l",
  topic: "p",
  label: "l",
  digest: "d",
  url: undefined,
  ...more,
});
const UPLOAD = { kind: "file", digest: "" } as const;

describe("matching files with resources", () => {
  it.each<{
    name: string;
    files: AdoptingFile[];
    resources: AdoptableResource[];
    hashes?: Record<string, string>;
    /** Path, resource, and whether it is equal. */
    expected: [string, string, boolean][];
  }>([
    {
      name: "a file matches the equal resource",
      files: [file("a")],
      resources: [resource("x")],
      expected: [["a", "x", true]],
    },
    {
      name: "a file does not match an equal text under another label",
      files: [file("a")],
      resources: [resource("x", { label: "m" })],
      expected: [],
    },
    {
      name: "the only resource with the label matches and is sent the file",
      files: [file("a")],
      resources: [resource("x", { digest: "e" })],
      expected: [["a", "x", false]],
    },
    {
      name: "the label does not match where two files have it",
      files: [file("a"), file("b")],
      resources: [resource("x", { digest: "e" })],
      expected: [],
    },
    {
      name: "the label does not match where the file has another resource",
      files: [file("a", { hasOther: true })],
      resources: [resource("x", { digest: "e" })],
      expected: [],
    },
    {
      name: "the label does not match where two files have it and one of them has an equal resource",
      files: [file("a", { ...UPLOAD, hash: "h" }), file("b")],
      resources: [resource("x", { url: "https://kb/f", digest: "" }), resource("y", { label: "m" })],
      hashes: { x: "h" },
      expected: [["a", "x", true]],
    },
    {
      name: "the label does not match where two resources have it",
      files: [file("a")],
      resources: [resource("x", { digest: "e" }), resource("y", { digest: "f" })],
      expected: [],
    },
    {
      name: "the label does not match if another resource is equal",
      files: [file("a"), file("b", { digest: "c" })],
      resources: [resource("x"), resource("y", { digest: "e" })],
      expected: [["a", "x", true]],
    },
    {
      name: "as many equal resources match as there are files, the oldest first",
      files: [file("b"), file("a")],
      resources: [
        resource("young", { createdMs: 3 }),
        resource("old", { createdMs: 1 }),
        resource("middle", { createdMs: 2 }),
      ],
      expected: [
        ["a", "old", true],
        ["b", "middle", true],
      ],
    },
    {
      name: "a link matches its address in any spelling",
      files: [file("a", { kind: "link", digest: "", url: "https://EXAMPLE.com" })],
      resources: [resource("x", { digest: "", url: "https://example.com/" })],
      expected: [["a", "x", true]],
    },
    {
      name: "an address does not match a text, and a text does not match an address",
      files: [file("a"), file("b", { kind: "link", label: "m", digest: "", url: "https://b" })],
      resources: [resource("x", { url: "https://x", digest: "" }), resource("y", { label: "m" })],
      expected: [],
    },
    {
      name: "an upload matches by its bytes",
      files: [file("a", UPLOAD)],
      resources: [
        resource("x", { url: "https://f/1", digest: "" }),
        resource("y", { url: "https://f/2", digest: "" }),
      ],
      hashes: { x: "other bytes", y: "hash of a" },
      expected: [["a", "y", true]],
    },
    {
      name: "an upload matches by its label alone if its bytes differ or are unavailable, and is sent",
      files: [file("a", UPLOAD)],
      resources: [resource("x", { url: "https://f/1", digest: "" })],
      expected: [["a", "x", false]],
    },
    {
      name: "an upload does not match equal bytes under another label",
      files: [file("a", UPLOAD)],
      resources: [resource("x", { label: "m", url: "https://f/1", digest: "" })],
      hashes: { x: "hash of a" },
      expected: [],
    },
  ])("$name", ({ files, resources, hashes = {}, expected }) => {
    const found = matchFiles(files, resources, new Map(Object.entries(hashes)));
    expect(found.matches.map((match) => [match.file.path, match.resource.docId, match.exact])).toEqual(
      expected,
    );
  });

  it("matches each file and each resource at most once, loses none, and ignores the order", () => {
    const word = fc.constantFrom("a", "b", "c");
    const files = fc.uniqueArray(
      fc.record({ path: fc.string({ minLength: 1 }), label: word, digest: word }),
      {
        selector: ({ path }) => path,
      },
    );
    const resources = fc.uniqueArray(
      fc.record({ docId: fc.string({ minLength: 1 }), label: word, digest: word, createdMs: fc.nat(5) }),
      { selector: ({ docId }) => docId },
    );
    fc.assert(
      fc.property(files, resources, (some, others) => {
        const all = some.map(({ path, ...more }) => file(path, more));
        const there = others.map(({ docId, ...more }) => resource(docId, more));
        const found = matchFiles(all, there, new Map());
        const paths = [...found.matches.map((match) => match.file), ...found.files].map(({ path }) => path);
        const docs = [...found.matches.map((match) => match.resource), ...found.resources];
        expect(paths.toSorted()).toEqual(all.map(({ path }) => path).toSorted());
        expect(docs.map(({ docId }) => docId).toSorted()).toEqual(there.map(({ docId }) => docId).toSorted());
        for (const { file: one, resource: other, exact } of found.matches) {
          expect(one.label).toBe(other.label);
          expect(exact).toBe(one.digest === other.digest);
        }
        const turned = matchFiles(all.toReversed(), there.toReversed(), new Map());
        const pairs = ({ matches }: typeof found): string[] =>
          matches.map((match) => `${match.file.path}\n${match.resource.docId}`).toSorted();
        expect(pairs(turned)).toEqual(pairs(found));
      }),
    );
  });
});

it("groups uploads by title and description, and leaves out addresses of other hosts", () => {
  const groups = uploadGroups(
    [file("a", UPLOAD), file("b", { ...UPLOAD, label: "m" }), file("c")],
    [
      resource("x", { url: "https://ours/1" }),
      resource("y", { url: "https://elsewhere/1" }),
      resource("z", { label: "n", url: "https://ours/2" }),
    ],
    (url) => url.startsWith("https://ours/"),
  );
  expect(
    groups.map(({ files, resources }) => [
      files.map(({ path }) => path),
      resources.map(({ docId }) => docId),
    ]),
  ).toEqual([[["a"], ["x"]]]);
});

it("prefers, among equal resources, the one that need not be replaced", () => {
  const old = resource("old", { createdMs: 1 });
  const wanted = resource("wanted", { createdMs: 2 });
  const { matches } = matchFiles([file("a")], [old, wanted], new Map(), {
    fits: (_, { docId }) => docId === "wanted",
  });
  expect(matches.map(({ resource: { docId } }) => docId)).toEqual(["wanted"]);
});

it("gives a file with a resource no equal one that would also be replaced", () => {
  const files = [file("a", { hasOther: true }), file("b", { label: "m" })];
  const resources = [resource("x"), resource("y", { label: "m" })];
  const { matches } = matchFiles(files, resources, new Map(), { fits: () => false });
  expect(matches.map(({ file: { path } }) => path)).toEqual(["b"]);
});

it("does not match by label a resource younger than the ledger", () => {
  const found = matchFiles([file("a")], [resource("x", { digest: "e" })], new Map(), {
    isTooYoung: () => true,
  });
  expect(found.matches).toEqual([]);
});

it("does not match by label where a file with its own resource has that label", () => {
  const found = matchFiles([file("a")], [resource("x", { digest: "e" })], new Map(), {
    isRetained: (label) => label === "l",
  });
  expect(found.matches).toEqual([]);
});

describe("parts of a folder whose files have not been matched", () => {
  it.each<{ name: string; unread: string[]; before: string[]; expected: string[] }>([
    {
      name: "the first time, all unreadable parts remain",
      unread: ["a", "b/c"],
      before: [""],
      expected: ["a", "b/c"],
    },
    { name: "no part lies below another", unread: ["a/b", "a", "ab"], before: [""], expected: ["a", "ab"] },
    {
      name: "a part that was read before does not remain",
      unread: ["a", "b"],
      before: ["b"],
      expected: ["b"],
    },
    {
      name: "fewer parts remain when more can be read",
      unread: ["a/b"],
      before: ["a"],
      expected: ["a/b"],
    },
    {
      name: "no more parts remain when less can be read",
      unread: ["a"],
      before: ["a/b"],
      expected: ["a/b"],
    },
    {
      name: "the parts stay the same when nothing can be read",
      unread: [""],
      before: ["a", "b"],
      expected: ["a", "b"],
    },
    { name: "the whole folder is one part", unread: ["", "a"], before: [""], expected: [""] },
  ])("unsearched parts: $name", ({ unread, before, expected }) => {
    expect(unsearchedParts(unread, before).toSorted()).toEqual(expected);
  });

  it("bounds the number of unsearched parts, and still covers every path", () => {
    const segment = fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h");
    const path = fc.array(segment, { minLength: 1, maxLength: 5 }).map((names) => names.join("/"));
    fc.assert(
      fc.property(fc.array(path, { maxLength: 400 }), (unread) => {
        const parts = unsearchedParts(unread, [""]);
        expect(parts.length).toBeLessThanOrEqual(UNSEARCHED_MAX);
        expect(unread.every((each) => isWithin(each, parts))).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});

describe("resources of creates in flight", () => {
  const create = { atMs: 10_000, attempts: 1, label: "l", digest: "d", url: undefined, isUpload: false };
  const young = { createdMs: 10_000 };

  it.each<{ name: string; resources: AdoptableResource[]; left: string[] }>([
    { name: "an equal one", resources: [resource("r", young)], left: [] },
    { name: "an equal one that is older than the create", resources: [resource("r")], left: ["r"] },
    { name: "one of another text", resources: [resource("r", { ...young, digest: "e" })], left: ["r"] },
    {
      name: "one whose text the service does not show yet",
      resources: [resource("r", { ...young, digest: "none", isUnfinished: true })],
      left: [],
    },
    {
      name: "one that is unfinished and has another title",
      resources: [resource("r", { ...young, label: "m", digest: "none", isUnfinished: true })],
      left: ["r"],
    },
    {
      name: "the newest of two equal ones",
      resources: [resource("r", young), resource("s", { createdMs: 20_000 })],
      left: ["r"],
    },
    {
      name: "one that nobody says when it was made",
      resources: [resource("r", { createdMs: undefined })],
      left: [],
    },
    {
      name: "one with an address, while the create has a text",
      resources: [resource("r", { ...young, url: "https://a/", digest: "", isUnfinished: true })],
      left: ["r"],
    },
  ])("leaves a resource to the create in flight: $name", ({ resources, left }) => {
    expect(withoutInFlight(resources, [create], 0).map(({ docId }) => docId)).toEqual(left);
  });

  it("leaves an upload to the create in flight by its address, whatever its title", () => {
    const url = "https://files/token";
    const upload = { ...create, url, isUpload: true, digest: "" };
    const list = [
      resource("ours", { ...young, url, label: "cut", digest: "" }),
      resource("other", { ...young, url: "https://files/other", digest: "" }),
    ];
    expect(withoutInFlight(list, [upload], 0).map(({ docId }) => docId)).toEqual(["other"]);
  });

  it("leaves as many resources as the create was sent, by the service's clock", () => {
    const list = [1, 2, 3].map((at) => resource(`r${at}`, { createdMs: 50_000 + at }));
    const left = (attempts: number, clockOffsetMs: number): string[] =>
      withoutInFlight(list, [{ ...create, attempts }], clockOffsetMs).map(({ docId }) => docId);
    expect([left(2, 40_000), left(3, 40_000), left(2, 60_000)]).toEqual([["r1"], [], ["r1", "r2", "r3"]]);
  });

  it("leaves a resource to the create in flight although a clock was set after it was sent", () => {
    const list = [resource("r", { createdMs: 10_000 })];
    const sent = { ...create, atMs: 3_610_000, clockOffsetMs: -3_600_000 };
    expect(withoutInFlight(list, [sent], 0)).toEqual([]);
  });

  it("returns all resources while no create is in flight", () => {
    const list = [resource("r", young)];
    expect(withoutInFlight(list, [], 0)).toBe(list);
  });
});
