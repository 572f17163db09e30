import { expect, it } from "vitest";
import { standingWords } from "../../../src/cli/output/standing-words.ts";
import type { DaemonStatus } from "../../../src/sync/daemon.ts";
import type { SourceStatus } from "../../../src/wire/daemon-status.ts";
import { sourceStatus } from "../../fakes/status.ts";

const source = (change: Partial<SourceStatus> = {}): SourceStatus => sourceStatus("/srv/handbook", 0, change);

const OPEN: DaemonStatus["service"] = { kind: "open" };

it.each<[string, readonly SourceStatus[], DaemonStatus["service"], string]>([
  ["nothing", [], OPEN, "0 files in agreement"],
  ["one file", [source({ inAgreement: 1 })], OPEN, "1 file in agreement"],
  ["what waits", [source({ inAgreement: 1204, waiting: 3 })], OPEN, "1,204 files in agreement, 3 waiting"],
  [
    "sources together, and what a person must see to",
    [source({ inAgreement: 1000, failed: 2 }), source({ inAgreement: 5, held: 60, unreadable: 1 })],
    OPEN,
    "2 failed, 1 unreadable, 60 deletes held; 1,005 files in agreement",
  ],
  [
    "a halted source, of which nobody knows what agrees",
    [
      source({ inAgreement: 7 }),
      source({
        path: "/mnt/disk",
        inAgreement: 90,
        held: 90,
        halted: true,
        holdReason: "the folder is missing",
      }),
    ],
    OPEN,
    "/mnt/disk halted: the folder is missing; 7 files in agreement",
  ],
  [
    "a pause",
    [source({ waiting: 2, paused: true })],
    OPEN,
    "/srv/handbook paused; 0 files in agreement, 2 waiting",
  ],
  [
    "a service that is away",
    [source({ waiting: 4 })],
    { kind: "waiting", untilMs: 0, reason: "connect ECONNREFUSED 127.0.0.1:9" },
    "the service does not answer: connect ECONNREFUSED 127.0.0.1:9; 0 files in agreement, 4 waiting",
  ],
  [
    "a service whose trouble a person has to end",
    [source({ waiting: 4 })],
    { kind: "waiting", untilMs: 0, reason: "The store is damaged.", hint: "Restore it." },
    "the service cannot work: The store is damaged. Restore it; 0 files in agreement, 4 waiting",
  ],
  [
    "a key that is refused",
    [source({ inAgreement: 4 })],
    { kind: "key_refused", untilMs: 0, reason: "unknown key" },
    "the service refuses the key: unknown key; 4 files in agreement",
  ],
])("describes %s in one line", (_name, sources, service, words) => {
  expect(standingWords({ sources, service })).toBe(words);
});
