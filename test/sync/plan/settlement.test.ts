import { describe, expect, it } from "vitest";
import { startSettling, type Settlement, type StoredForms } from "../../../src/sync/plan/settlement.ts";
import type { CandidateResource, OpenCreate } from "../../../src/sync/plan/create-likeness.ts";

const SETTINGS = { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 } as const;

const create = (id: number, more: Partial<OpenCreate> = {}): OpenCreate => ({
  id,
  atMs: 100_000,
  attempts: 1,
  answered: false,
  url: undefined,
  unique: false,
  title: "t",
  digest: "d",
  label: "l",
  settings: SETTINGS,
  ...more,
});
const upload = (id: number, url: string | undefined, more: Partial<OpenCreate> = {}): OpenCreate =>
  create(id, { url, unique: true, digest: "", ...more });
const listed = (docId: string, more: Partial<CandidateResource> = {}): CandidateResource => ({
  docId,
  createdMs: 101_000,
  url: undefined,
  title: "t",
  digest: "d",
  label: "l",
  ...more,
});

function settle(
  creates: OpenCreate[],
  list: CandidateResource[],
  owned: string[] = [],
  offsetMs = 0,
  forms: StoredForms = {},
): Settlement {
  const settling = startSettling(creates, (docId) => owned.includes(docId));
  for (const resource of list) if (settling.interested(resource)) settling.see(resource);
  return settling.finish(offsetMs, forms);
}

describe("settling creates by the list", () => {
  it.each<{
    name: string;
    creates: OpenCreate[];
    list: CandidateResource[];
    owned?: string[];
    offsetMs?: number;
    forms?: StoredForms;
    expected: Partial<Settlement>;
  }>([
    { name: "nothing is there", creates: [create(1)], list: [], expected: { adopted: [], absent: [1] } },
    {
      name: "a resource that moved on to the next page while the list was read, and came twice",
      creates: [create(1, { attempts: 2 })],
      list: [listed("x"), listed("x")],
      expected: { adopted: [{ id: 1, docId: "x", exact: true, described: true, label: "l" }], extra: [] },
    },
    {
      name: "an upload at a service on this machine that has another port now",
      creates: [upload(1, "http://127.0.0.1:7411/files/token/a.pdf")],
      list: [listed("x", { url: "http://127.0.0.1:7500/files/token/a.pdf", digest: "" })],
      expected: { adopted: [{ id: 1, docId: "x", exact: true, described: true, label: "l" }], absent: [] },
    },
    {
      name: "title and text match",
      creates: [create(1)],
      list: [listed("x")],
      expected: { adopted: [{ id: 1, docId: "x", exact: true, described: true, label: "l" }], absent: [] },
    },
    {
      name: "one made seconds before the intent, as by a former ledger, and one made since",
      creates: [create(1)],
      list: [listed("before", { createdMs: 96_000 }), listed("since")],
      expected: { adopted: [{ id: 1, docId: "since", exact: true, described: true, label: "l" }], extra: [] },
    },
    {
      name: "the same two, though our clock was set forward since",
      creates: [create(1, { clockOffsetMs: 0 })],
      list: [listed("before", { createdMs: 96_000 }), listed("since")],
      offsetMs: -3_600_000,
      expected: { adopted: [{ id: 1, docId: "since", exact: true, described: true, label: "l" }], extra: [] },
    },
    {
      name: "the title alone does not match",
      creates: [create(1)],
      list: [listed("x", { digest: "other", label: "other" })],
      expected: { absent: [1], adopted: [] },
    },
    {
      name: "title and description with another text are somebody else's",
      creates: [create(1)],
      list: [listed("x", { digest: "other" })],
      expected: { adopted: [], absent: [1], extra: [] },
    },
    {
      name: "title and description match where the list shows no text, and it is sent again",
      creates: [create(1)],
      list: [listed("x", { digest: "", isTextHidden: true })],
      expected: { adopted: [{ id: 1, docId: "x", exact: false, described: true, label: "l" }] },
    },
    {
      name: "title and description match where the service stores texts in another form, and it is sent again",
      creates: [create(1)],
      list: [listed("x", { digest: "other" })],
      forms: { texts: true },
      expected: { adopted: [{ id: 1, docId: "x", exact: false, described: true, label: "l" }] },
    },
    {
      name: "a cut title matches with the text and the description",
      creates: [create(1, { title: "notes on figures 1" })],
      list: [listed("x", { title: "Notes on Fig", label: "cut", labelUnder: () => "l" })],
      expected: { adopted: [{ id: 1, docId: "x", exact: true, described: true, label: "cut" }] },
    },
    {
      name: "a title that is too short does not match",
      creates: [create(1, { title: "notes on figures 1" })],
      list: [listed("x", { title: "n", label: "cut", labelUnder: () => "l" })],
      expected: { adopted: [], absent: [1] },
    },
    {
      name: "another text is not a second one",
      creates: [create(1, { attempts: 2 })],
      list: [listed("x"), listed("y", { digest: "other" })],
      expected: { adopted: [{ id: 1, docId: "x", exact: true, described: true, label: "l" }], extra: [] },
    },
    {
      name: "the text alone does not match",
      creates: [create(1)],
      list: [listed("x", { title: "other" })],
      expected: { absent: [1], adopted: [] },
    },
    {
      name: "made before the intent",
      creates: [create(1)],
      list: [listed("x", { createdMs: 10_000 })],
      expected: { absent: [1], adopted: [] },
    },
    {
      name: "made after it by the service's own clock",
      creates: [create(1)],
      list: [listed("x", { createdMs: 41_000 })],
      offsetMs: -60_000,
      expected: { adopted: [{ id: 1, docId: "x", exact: true, described: true, label: "l" }] },
    },
    {
      name: "made before it by the service's own clock",
      creates: [create(1)],
      list: [listed("x")],
      offsetMs: 60_000,
      expected: { absent: [1] },
    },
    {
      name: "another row owns it",
      creates: [create(1)],
      list: [listed("x")],
      owned: ["x"],
      expected: { absent: [1], adopted: [] },
    },
    {
      name: "title and text with another description are somebody else's, though our create may have been repeated",
      creates: [create(1, { attempts: 2 })],
      list: [listed("x", { label: "other" })],
      expected: { adopted: [], extra: [], absent: [1] },
    },
    {
      name: "title and text match where the list shows no description, and it is sent again",
      creates: [create(1)],
      list: [listed("x", { label: "other", isDescriptionHidden: true })],
      expected: { adopted: [{ id: 1, docId: "x", exact: false, described: false, label: "other" }] },
    },
    {
      name: "title and text match where the service stores descriptions in another form, and it is sent again",
      forms: { descriptions: true },
      creates: [create(1)],
      list: [listed("x", { label: "other" })],
      expected: { adopted: [{ id: 1, docId: "x", exact: false, described: false, label: "other" }] },
    },
    {
      name: "one that the service is processing, or failed on, is adopted and sent again",
      creates: [create(1)],
      list: [listed("x", { isUnfinished: true })],
      expected: { adopted: [{ id: 1, docId: "x", exact: false, described: true, label: "l" }] },
    },
    {
      name: "each twin gets one",
      creates: [create(1), create(2)],
      list: [listed("y", { createdMs: 102_000 }), listed("x")],
      expected: {
        adopted: [
          { id: 1, docId: "x", exact: true, described: true, label: "l" },
          { id: 2, docId: "y", exact: true, described: true, label: "l" },
        ],
      },
    },
    {
      name: "twins of which one was made",
      creates: [create(1), create(2)],
      list: [listed("x")],
      expected: { adopted: [{ id: 1, docId: "x", exact: true, described: true, label: "l" }], absent: [2] },
    },
    {
      name: "an upload's address is unique, whenever it was made",
      creates: [upload(1, "u")],
      list: [listed("x", { url: "u", digest: "", createdMs: 1 })],
      expected: { adopted: [{ id: 1, docId: "x", exact: true, described: true, label: "l" }] },
    },
    {
      name: "an upload that has no address yet matches nothing",
      creates: [upload(1, undefined)],
      list: [listed("x", { digest: "" })],
      expected: { absent: [1], adopted: [] },
    },
    {
      name: "a second attempt whose text the service does not show yet may have left an extra",
      creates: [create(1, { attempts: 2 })],
      list: [
        listed("x"),
        listed("y", { digest: "", isTextHidden: true, isUnfinished: true, isQueued: true }),
      ],
      expected: {
        adopted: [{ id: 1, docId: "x", exact: true, described: true, label: "l" }],
        extra: [],
        queued: [1],
      },
    },
    {
      name: "one that the service is processing was made since, its equal within the slack before",
      creates: [create(1)],
      list: [
        listed("x", { createdMs: 99_000 }),
        listed("y", { digest: "", isTextHidden: true, isUnfinished: true, isQueued: true }),
      ],
      expected: { adopted: [{ id: 1, docId: "y", exact: false, described: true, label: "l" }], extra: [] },
    },
    {
      name: "a single attempt leaves nothing that the service is still processing",
      creates: [create(1)],
      list: [
        listed("x"),
        listed("y", { digest: "", isTextHidden: true, isUnfinished: true, isQueued: true }),
      ],
      expected: { extra: [], queued: [] },
    },
    {
      name: "a second attempt that took effect too leaves an extra",
      creates: [create(1, { attempts: 2 })],
      list: [listed("x"), listed("y")],
      expected: {
        adopted: [{ id: 1, docId: "x", exact: true, described: true, label: "l" }],
        extra: [{ id: 1, docId: "y", exact: true, described: true, label: "l" }],
      },
    },
    {
      name: "an extra of two equal files belongs to the one whose description it has",
      creates: [
        create(1, { attempts: 2, answered: true, label: "one" }),
        create(2, { attempts: 2, answered: true, label: "two" }),
      ],
      list: [listed("o", { label: "one" }), listed("x", { label: "two" }), listed("t", { label: "two" })],
      owned: ["o", "t"],
      expected: { extra: [{ id: 2, docId: "x", exact: true, described: true, label: "two" }] },
    },
    {
      name: "an open create takes no extra of an equal file that was answered and has its description",
      creates: [create(1, { label: "one" }), create(2, { attempts: 2, answered: true, label: "two" })],
      list: [listed("o", { label: "two" }), listed("x", { label: "two" })],
      owned: ["o"],
      expected: { absent: [1], extra: [{ id: 2, docId: "x", exact: true, described: true, label: "two" }] },
    },
    {
      name: "an extra with our description comes before an older one of somebody else's",
      creates: [create(1, { attempts: 2, answered: true })],
      list: [listed("s", { label: "by hand" }), listed("x", { createdMs: 102_000 })],
      expected: { extra: [{ id: 1, docId: "x", exact: true, described: true, label: "l" }] },
    },
    {
      name: "one attempt leaves no extra: the other is somebody else's",
      creates: [create(1)],
      list: [listed("x"), listed("y")],
      expected: { adopted: [{ id: 1, docId: "x", exact: true, described: true, label: "l" }], extra: [] },
    },
    {
      name: "an answered create's other attempt is extra",
      creates: [create(1, { attempts: 2, answered: true })],
      list: [listed("mine"), listed("y")],
      owned: ["mine"],
      expected: {
        adopted: [],
        extra: [{ id: 1, docId: "y", exact: true, described: true, label: "l" }],
        absent: [],
      },
    },
    {
      name: "a resource with other chunk settings is not exactly what was sent",
      creates: [create(1, { settings: { ...SETTINGS, chunkSize: 500 } })],
      list: [listed("x", { settings: SETTINGS })],
      expected: {
        adopted: [{ id: 1, docId: "x", exact: false, described: true, label: "l", settings: SETTINGS }],
      },
    },
    {
      name: "of two resources the one with the settings that were sent is taken",
      creates: [create(1, { attempts: 2, settings: { ...SETTINGS, chunkSize: 500 } })],
      list: [
        listed("x", { settings: { chunkSize: 1000 } }),
        listed("y", { createdMs: 102_000, settings: { chunkSize: 500 } }),
      ],
      expected: {
        adopted: [{ id: 1, docId: "y", exact: true, described: true, label: "l" }],
        extra: [{ id: 1, docId: "x", exact: false, described: true, label: "l" }],
      },
    },
  ])("$name", ({ creates, list, owned, offsetMs, forms, expected }) => {
    expect(settle(creates, list, owned, offsetMs, forms)).toMatchObject(expected);
  });

  // The service's clock is an hour ahead of ours now, and was equal when the create left.
  it.each<[what: string, more: Partial<CandidateResource>, adopted: string[]]>([
    ["is ours with our description", {}, ["x"]],
    ["is somebody else's with another description", { label: "other" }, []],
    [
      "is ours with another description if it is young by both",
      { label: "other", createdMs: 3_701_000 },
      ["x"],
    ],
    ["is somebody else's if it is old by both", { createdMs: 90_000 }, []],
  ])("a resource that is young by one of two clocks %s", (_what, more, adopted) => {
    const found = settle([create(1, { clockOffsetMs: 0 })], [listed("x", more)], [], 3_600_000, {
      descriptions: true,
    });
    expect(found.adopted.map(({ docId }) => docId)).toEqual(adopted);
  });
});
