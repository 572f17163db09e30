import * as fc from "fast-check";
import { expect, it } from "vitest";
import { openAt } from "./at.ts";
import type { ScanEntry } from "../../../../src/sync/plan/model.ts";
import { CEILING_MS, LOOK_MS, VERSION_GAP_MS, VERSIONS_AT_ONCE } from "../../../../src/sync/plan/timing.ts";

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
  const states = openAt(SETTLE_MS);
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
    entry = {
      ...entry,
      sizeBytes: Math.max(1, entry.sizeBytes + growsBytes),
      mtimeMs: nowMs,
      ctimeMs: nowMs,
    };
    states.at(nowMs).event("a");
  };
  const step = ({ readMs, sendMs, workMs }: Pick<Writes, "readMs" | "sendMs" | "workMs">): void => {
    nowMs += STEP_MS;
    if (job !== undefined && nowMs >= job.leavesMs && job.endsMs === Infinity) {
      if (states.isOutdated("a") && !states.isOverdue("a")) {
        states.at(nowMs).end(job.entry);
        job = undefined;
      } else {
        sent.push({ atMs: nowMs, version: versions });
        job.endsMs = nowMs + sendMs + workMs;
        job.noticesMs = nowMs + sendMs + OVERTAKEN_MS;
      }
    }
    if (job !== undefined && nowMs >= job.endsMs) {
      states.reported("a", "done");
      states.at(nowMs).end(job.entry);
      job = undefined;
    }
    if (job !== undefined && nowMs >= job.noticesMs && states.isOutdated("a")) {
      states.sent("a");
      states.at(nowMs).end(job.entry);
      job = undefined;
    }
    const due = states.at(nowMs).take();
    if (due === undefined || job !== undefined || sent.at(-1)?.version === versions) return;
    if (!states.at(nowMs).rested(entry)) return;
    states.at(nowMs).queue([{ entry, known: undefined }]);
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
        // The first of them may have been released earlier than it was sent.
        for (const [between, gaps] of later.entries())
          expect(gaps).toBeGreaterThanOrEqual(between + 1 - VERSIONS_AT_ONCE);
      }
      expect(sent.at(-1)?.version).toBe(versions);
      const boundMs = CEILING_MS + 2 * VERSION_GAP_MS + LOOK_MS + SETTLE_MS + READ_MS_MAX;
      expect(sent[0]?.atMs).toBeLessThanOrEqual(Math.min(1_000_000 + boundMs, endMs + boundMs));
    }),
    { numRuns: 150 },
  );
});

it.each([10, 50, 100, 140])(
  "sends a file that is rewritten every %i ms once a minute, and when it rests",
  (everyMs) => {
    const { sent } = play([{ ...AT_ONCE, forMs: 150_000, everyMs, growsBytes: 0, readMs: READ_MS_MAX }]);
    // It is looked at every two seconds.
    const boundMs = CEILING_MS + LOOK_MS + 2 * SETTLE_MS + READ_MS_MAX;
    expect(sent[0]?.atMs).toBeLessThanOrEqual(1_000_000 + boundMs);
    expect(sent.length).toBe(3);
  },
);

it.each([300, 500])(
  "sends a file that is rewritten every %i ms within a minute, although its turn comes late",
  (everyMs) => {
    const { sent } = play([{ ...AT_ONCE, forMs: 95_000, everyMs, growsBytes: 0, readMs: READ_MS_MAX }]);
    const boundMs = CEILING_MS + VERSION_GAP_MS + LOOK_MS + 2 * SETTLE_MS + READ_MS_MAX;
    expect(sent[0]?.atMs).toBeLessThanOrEqual(1_000_000 + boundMs);
    expect(sent.length).toBeGreaterThanOrEqual(2);
  },
);

it("does not send a file while it is copied", () => {
  const copy = { ...AT_ONCE, everyMs: 20, growsBytes: 1_000_000 };
  const { sent, versions } = play([{ ...copy, forMs: 55_000 }]);
  expect(sent.map(({ version }) => version)).toEqual([versions]);
});

it("sends the first edits of a file as soon as they have rested, and bounds the next", () => {
  const { sent, versions, endMs } = play([{ ...AT_ONCE, forMs: 9000, everyMs: 300, growsBytes: 0 }]);
  const sentMs = sent.map(({ atMs }) => atMs - 1_000_000);
  expect(sentMs.length).toBe(VERSIONS_AT_ONCE + 1);
  expect(sentMs[VERSIONS_AT_ONCE - 1]).toBeLessThanOrEqual(
    (VERSIONS_AT_ONCE - 1) * 300 + SETTLE_MS + 5 * STEP_MS,
  );
  expect(sent.at(-1)?.version).toBe(versions);
  expect(sent.at(-1)?.atMs).toBeLessThanOrEqual(endMs + VERSION_GAP_MS);
});

it.each([
  { everyMs: 600, sendMs: 0, workMs: 0 },
  { everyMs: 2500, sendMs: 0, workMs: 0 },
  { everyMs: 600, sendMs: 10_000, workMs: 0 },
  { everyMs: 500, sendMs: 0, workMs: 300_000 },
])(
  "sends a file that is written every $everyMs ms and takes $sendMs ms to send at most every ten seconds after the first ones, and its end soon",
  (times) => {
    const { sent, endMs } = play([{ ...AT_ONCE, ...times, forMs: 3 * CEILING_MS, growsBytes: 100 }]);
    const during = sent.filter(({ atMs }) => atMs <= endMs);
    expect(during.length).toBeLessThanOrEqual(VERSIONS_AT_ONCE + (3 * CEILING_MS) / VERSION_GAP_MS);
    expect(during.length).toBeGreaterThanOrEqual(10);
    expect(sent.at(-1)?.atMs).toBeLessThanOrEqual(endMs + VERSION_GAP_MS + times.sendMs + LOOK_MS);
  },
);

it("sends each version of a text that is saved every ten seconds", () => {
  const { sent, versions } = play([
    { ...AT_ONCE, forMs: 5 * CEILING_MS, everyMs: VERSION_GAP_MS, growsBytes: 1 },
  ]);
  expect(sent.length).toBe(versions);
});
