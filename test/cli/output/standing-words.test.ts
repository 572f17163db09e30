import { expect, it } from "vitest";
import { standingWords } from "../../../src/cli/output/standing-words.ts";
import type { DaemonStatus } from "../../../src/sync/daemon.ts";
import type { SourceStatus } from "../../../src/wire/daemon-status.ts";
import { sourceStatus } from "../../fakes/status.ts";

const source = (change: Partial<SourceStatus> = {}): SourceStatus => {
  const { searchable = 0, waiting = 0, failed = 0 } = change;
  return sourceStatus("/srv/handbook", searchable + waiting + failed, { searchable, ...change });
};

const OPEN: DaemonStatus["service"] = { kind: "open" };

it.each<[string, readonly SourceStatus[], DaemonStatus["service"], string]>([
  ["nothing", [], OPEN, "0 files searchable"],
  ["one file", [source({ searchable: 1 })], OPEN, "1 file searchable"],
  [
    "what waits",
    [source({ searchable: 1204, waiting: 3 })],
    OPEN,
    "1,204 of 1,207 files searchable, 3 waiting",
  ],
  [
    "sources together, and what a person must see to",
    [source({ searchable: 1000, failed: 2 }), source({ searchable: 5, held: 60, unreadable: 1 })],
    OPEN,
    "1 unreadable, 60 deletes held; 1,005 of 1,007 files searchable, 2 failed",
  ],
  [
    "a halted source, all files of which wait",
    [
      source({ searchable: 7 }),
      source({
        path: "/mnt/disk",
        waiting: 90,
        halted: true,
        holdReason: "the folder is missing",
      }),
    ],
    OPEN,
    "/mnt/disk halted: the folder is missing; 7 of 97 files searchable, 90 waiting",
  ],
  [
    "a pause",
    [source({ waiting: 2, paused: true })],
    OPEN,
    "/srv/handbook paused; 0 of 2 files searchable, 2 waiting",
  ],
  [
    "a service that is away",
    [source({ waiting: 4 })],
    { kind: "waiting", untilMs: 0, reason: "connect ECONNREFUSED 127.0.0.1:9" },
    "the service does not answer: connect ECONNREFUSED 127.0.0.1:9; 0 of 4 files searchable, 4 waiting",
  ],
  [
    "a service whose trouble a person has to end",
    [source({ waiting: 4 })],
    { kind: "waiting", untilMs: 0, reason: "The store is damaged.", hint: "Restore it." },
    "the service cannot work: The store is damaged. Restore it; 0 of 4 files searchable, 4 waiting",
  ],
  [
    "a key that is refused",
    [source({ searchable: 4 })],
    { kind: "key_refused", untilMs: 0, reason: "unknown key" },
    "the service refuses the key: unknown key; 4 files searchable",
  ],
])("describes %s in one line", (_name, sources, service, words) => {
  expect(standingWords({ sources, service })).toBe(words);
});
