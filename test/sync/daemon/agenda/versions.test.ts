import * as fc from "fast-check";
import { expect, it } from "vitest";
import { openPathStates } from "../../../../src/sync/daemon/agenda/path-states.ts";
import type { ScanEntry } from "../../../../src/sync/plan/model.ts";
import { CEILING_MS, UNREST_MS_MAX, VERSION_GAP_MS } from "../../../../src/sync/plan/timing.ts";

const SETTLE_MS = 150;
const STEP_MS = 10;
/** Longest time in which these tests read a file before it is sent, and longest in flight. */
const READ_MS_MAX = 400;
const SEND_MS_MAX = 3000;

/** The daemon notices this soon that a file changed while the service processes its last version. */
const OVERTAKEN_MS = 500;

/**
 * How a file is written for a while: how often, by how many bytes more, and how long its job takes. `workMs`: how long the
 * service processes it after its answer.
 */
interface Writes {
  readonly forMs: number;
  readonly everyMs: number;
  readonly growsBytes: number;
  readonly readMs: number;
  readonly sendMs: number;
  readonly workMs: number;
}

interface Sent {
  readonly atMs: number;
  readonly version: number;
}

const AT_ONCE = { readMs: 0, sendMs: 0, workMs: 0 };

/** Plays writes to a file against the path states, as the loop of a source and its queue use them. */
function play(writes: readonly Writes[]): {
  readonly sent: Sent[];
  readonly versions: number;
  readonly endMs: number;
} {
  const states = openPathStates(SETTLE_MS);
  const sent: Sent[] = [];
  let versions = 0;
  let entry: ScanEntry = { path: "a", sizeBytes: 1000, mtimeMs: 0, ctimeMs: 0, ino: 1 };
  let job:
    | { readonly entry: ScanEntry; readonly leavesMs: number; endsMs: number; noticesMs: number }
    | undefined;
  let nowMs = 1_000_000;
  let lastWriteMs = nowMs;
  const write = (growsBytes: number): void => {
    versions += 1;
    lastWriteMs = nowMs;
    entry = { ...entry, sizeBytes: Math.max(1, entry.sizeBytes + growsBytes), mtimeMs: nowMs };
    states.event("a", nowMs);
  };
  const step = ({ readMs, sendMs, workMs }: Pick<Writes, "readMs" | "sendMs" | "workMs">): void => {
    nowMs += STEP_MS;
    if (job !== undefined && nowMs >= job.leavesMs && job.endsMs === Infinity) {
      if (states.isOutdated("a") && !states.isUnresting("a")) {
        states.end(job.entry, nowMs);
        job = undefined;
      } else {
        sent.push({ atMs: nowMs, version: versions });
        job.endsMs = nowMs + sendMs + workMs;
        job.noticesMs = nowMs + sendMs + OVERTAKEN_MS;
      }
    }
    if (job !== undefined && nowMs >= job.endsMs) {
      states.reported("a", "done");
      states.end(job.entry, nowMs);
      job = undefined;
    }
    if (job !== undefined && nowMs >= job.noticesMs && states.isOutdated("a")) {
      states.sent("a");
      states.end(job.entry, nowMs);
      job = undefined;
    }
    const due = states.take(nowMs);
    if (due === undefined || job !== undefined || sent.at(-1)?.version === versions) return;
    if (!states.rested(entry, nowMs)) return;
    states.queue([{ entry, known: undefined }], nowMs);
    states.send("a");
    job = { entry, leavesMs: nowMs + readMs, endsMs: Infinity, noticesMs: Infinity };
  };
  for (const each of writes)
    for (let steps = Math.ceil(each.forMs / STEP_MS); steps > 0; steps -= 1) {
      if (nowMs - lastWriteMs >= each.everyMs || versions === 0) write(each.growsBytes);
      step(each);
    }
  const endMs = nowMs;
  for (let steps = (3 * CEILING_MS) / STEP_MS; steps > 0; steps -= 1) step(AT_ONCE);
  return { sent, versions, endMs };
}

const writes = fc.array(
  fc.record({
    forMs: fc.integer({ min: STEP_MS, max: 90_000 }),
    everyMs: fc.integer({ min: STEP_MS, max: 6000 }),
    growsBytes: fc.constantFrom(0, 1, -1),
    readMs: fc.nat(READ_MS_MAX),
    sendMs: fc.nat(SEND_MS_MAX),
    workMs: fc.constantFrom(0, 5000, 300_000),
  }),
  { minLength: 1, maxLength: 4 },
);

it("sends versions of a file at a bounded rate, the last one always, and the first although the writes never rest", () => {
  fc.assert(
    fc.property(writes, (all) => {
      const { sent, versions, endMs } = play(all);
      for (const [index, { atMs }] of sent.entries()) {
        const later = sent.slice(index + 1).map((each) => (each.atMs - atMs) / VERSION_GAP_MS);
        for (const [between, gaps] of later.entries()) expect(gaps).toBeGreaterThanOrEqual(between);
      }
      expect(sent.at(-1)?.version).toBe(versions);
      const boundMs = CEILING_MS + 2 * VERSION_GAP_MS + SETTLE_MS + READ_MS_MAX;
      expect(sent[0]?.atMs).toBeLessThanOrEqual(Math.min(1_000_000 + boundMs, endMs + boundMs));
    }),
    { numRuns: 150 },
  );
});

it.each([10, 50, 100, 140, 300, 500])(
  "sends a file that is rewritten every %i ms within fifteen seconds, and again every few seconds, although its turn comes late",
  (everyMs) => {
    const { sent } = play([{ ...AT_ONCE, forMs: 95_000, everyMs, growsBytes: 0, readMs: READ_MS_MAX }]);
    // It is looked at every two seconds.
    const boundMs = UNREST_MS_MAX + 2 * VERSION_GAP_MS + 2 * SETTLE_MS + READ_MS_MAX;
    expect(sent[0]?.atMs).toBeLessThanOrEqual(1_000_000 + boundMs);
    expect(sent.length).toBeGreaterThanOrEqual(6);
    expect(sent.length).toBeLessThanOrEqual(95_000 / VERSION_GAP_MS + 2);
  },
);

it("does not send a file while it is copied", () => {
  const copy = { ...AT_ONCE, everyMs: 20, growsBytes: 1_000_000 };
  const { sent, versions } = play([{ ...copy, forMs: 55_000 }]);
  expect(sent.map(({ version }) => version)).toEqual([versions]);
});

it("sends an edit that follows the first version as soon as it has rested, and bounds the next", () => {
  const { sent } = play([{ ...AT_ONCE, forMs: 1000, everyMs: 300, growsBytes: 0 }]);
  const sentMs = sent.map(({ atMs }) => atMs - 1_000_000);
  expect(sentMs.length).toBe(3);
  expect(sentMs[1]).toBeLessThanOrEqual(300 + SETTLE_MS + 5 * STEP_MS);
  expect(sentMs[2]).toBeGreaterThanOrEqual(VERSION_GAP_MS);
  expect(sentMs[2]).toBeLessThanOrEqual(VERSION_GAP_MS + SETTLE_MS + 5 * STEP_MS);
});

it("bounds the rate of a file that is rewritten all the time while the service processes it for minutes", () => {
  const { sent } = play([{ ...AT_ONCE, forMs: 95_000, everyMs: 500, growsBytes: 0, workMs: 300_000 }]);
  expect(sent.length).toBeLessThanOrEqual(95_000 / VERSION_GAP_MS + 2);
});

it.each([
  { everyMs: 600, sendMs: 0 },
  { everyMs: 2500, sendMs: 0 },
  { everyMs: 6000, sendMs: 0 },
  { everyMs: 9000, sendMs: 0 },
  { everyMs: 600, sendMs: 10_000 },
])(
  "sends a file that grows every $everyMs ms and takes $sendMs ms to send once a minute after the first seven, and its end within fifteen seconds",
  ({ everyMs, sendMs }) => {
    const { sent, endMs } = play([{ ...AT_ONCE, sendMs, forMs: 6 * CEILING_MS, everyMs, growsBytes: 100 }]);
    const grown = sent.filter(({ atMs }) => atMs <= endMs);
    expect(grown.length).toBeLessThanOrEqual(7 + 5);
    expect(grown.length).toBeGreaterThanOrEqual(5);
    const last = grown.at(-1)?.atMs ?? 0;
    expect(last).toBeGreaterThanOrEqual(endMs - CEILING_MS - sendMs - everyMs);
    expect(sent.at(-1)?.atMs).toBeLessThanOrEqual(endMs + 15_000 + SETTLE_MS + STEP_MS);
  },
);

it.each([
  { what: "a text that grows every twenty seconds", everyMs: 20_000, growsBytes: 1 },
  { what: "a text that is saved every three seconds", everyMs: 3000, growsBytes: 0 },
])("sends each version of $what", ({ everyMs, growsBytes }) => {
  const { sent, versions } = play([{ ...AT_ONCE, forMs: 5 * CEILING_MS, everyMs, growsBytes }]);
  expect(sent.length).toBe(versions);
});
