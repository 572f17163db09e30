import { describe, expect, it } from "vitest";
import { needsOf, sentenceOf, type Whole } from "../../../src/console/overview/needs.ts";
import type { LiveStatus, SourceStatus } from "../../../src/wire/daemon-status.ts";
import { IDLE_STATUS, sourceStatus } from "../../fakes/status.ts";

const SOURCE = sourceStatus("/home/ann/docs", 7);
const STATUS: LiveStatus = {
  ...IDLE_STATUS,
  pid: 1,
  version: "1",
  startedMs: 0,
  notApplied: [],
  sources: [SOURCE],
  pending: null,
  filesPerSecond: null,
  secondsLeft: null,
};
const MODEL = { state: "ready", message: "works" };
const QUEUES = {
  ingest: { waiting: 0, oldestAt: null, failed: 0 },
  webhooks: { endpoints: 0, waiting: 0, failed: 0 },
  questions: { waiting: 0, oldestAt: null, failed: 0 },
};
const WHOLE: Whole = {
  documents: 7,
  health: {
    status: "ready",
    version: "1",
    embedder: MODEL,
    reranker: { state: "off", message: "none" },
    languageModel: MODEL,
    isBackfilling: false,
    tiers: { fastest: "", moderate: "", high_accuracy: "" },
  },
  queues: QUEUES,
  daemon: STATUS,
};
const withSource = (change: Partial<SourceStatus>, more: Partial<LiveStatus> = {}): Whole => ({
  ...WHOLE,
  daemon: { ...STATUS, ...more, sources: [{ ...SOURCE, ...change }] },
});
const queued = (change: Partial<typeof QUEUES>): Whole => ({
  ...WHOLE,
  queues: { ...QUEUES, ...change },
});

describe("what needs a person", () => {
  it.each<[string, Whole, readonly string[]]>([
    ["nothing while all is well", WHOLE, []],
    ["nothing of the queues before the live link shows them", { ...WHOLE, queues: undefined }, []],
    ["failed files", withSource({ failed: 2 }), ["2 files of docs failed"]],
    ["a refused delete", withSource({ deletesRefused: 1 }), ["1 delete is refused in docs"]],
    ["one held delete", withSource({ held: 1 }), ["1 delete of docs waits for your approval"]],
    [
      "a halted folder, and not its deletes too",
      withSource({ halted: true, held: 9 }),
      ["Nothing is sent from docs"],
    ],
    ["paths that cannot be read", withSource({ unreadable: 1 }), ["1 path of docs cannot be read"]],
    [
      "a refused key",
      withSource({}, { service: { kind: "key_refused", untilMs: 0, reason: "unknown" } }),
      ["The knowledge base refuses the daemon's key"],
    ],
    [
      "nothing while the service is away for a moment",
      withSource({}, { service: { kind: "waiting", untilMs: 0, reason: "down" } }),
      [],
    ],
    [
      "the documents of a folder that left the configuration",
      withSource(
        {},
        {
          removed: [
            {
              path: "/old",
              ownerId: "o",
              collectionId: "c",
              resources: 3,
              approved: false,
              approval: { source: "/old", held: 3, reason: "removed", token: "t" },
            },
          ],
        },
      ),
      ["old is no longer watched, and 3 documents of it stay"],
    ],
    [
      "failed documents that no folder explains",
      queued({ ingest: { waiting: 0, oldestAt: null, failed: 1 } }),
      ["1 document failed"],
    ],
    [
      "webhook messages that were not delivered",
      queued({ webhooks: { endpoints: 1, waiting: 0, failed: 2 } }),
      ["2 messages to webhooks could not be delivered"],
    ],
    [
      "a model that fails",
      { ...WHOLE, health: { ...WHOLE.health, embedder: { state: "failing", message: "No memory." } } },
      ["No memory."],
    ],
  ])("the overview names %s", (_name, whole, titles) => {
    expect(needsOf(whole).map(({ title }) => title)).toEqual(titles);
  });

  it("names the place where each file problem is settled", () => {
    const [need] = needsOf(withSource({ failed: 1 }));
    expect(need?.action?.address).toBe("#/folders?path=%2Fhome%2Fann%2Fdocs&tab=failed");
    const [failed] = needsOf(queued({ webhooks: { endpoints: 1, waiting: 0, failed: 2 } }));
    expect(failed?.action?.address).toBe("#/access?tab=webhooks");
  });
});

describe("the one sentence", () => {
  it.each<[string, Whole]>([
    ["All 7 files are searchable", WHOLE],
    ["1 thing needs you", withSource({ failed: 1 })],
    ["2 things need you", withSource({ failed: 1, unreadable: 1 })],
    ["Scanning your folders for the first time", withSource({ compared: false })],
    [
      "1,200 of 4,000 files are searchable, about 2 min left",
      withSource({ files: 4000, searchable: 1200, waiting: 2800 }, { secondsLeft: 120 }),
    ],
    ["3 documents are being read", queued({ ingest: { waiting: 3, oldestAt: null, failed: 0 } })],
    ["All 7 documents are searchable", { ...WHOLE, daemon: undefined }],
    ["There is nothing to search yet", { ...WHOLE, daemon: undefined, documents: 0 }],
  ])("the overview says: %s", (sentence, whole) => {
    expect(sentenceOf(whole, needsOf(whole))).toBe(sentence);
  });
});
