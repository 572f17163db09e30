import type { DaemonStatus } from "../../src/sync/daemon/status.ts";
import type { SourceStatus } from "../../src/wire/daemon-status.ts";

/** The status of a source in agreement with `files` files, with changes. */
export const sourceStatus = (
  path: string,
  files: number,
  more: Partial<SourceStatus> = {},
): SourceStatus => ({
  path,
  tier: "fastest",
  ownerId: "owner",
  collectionId: null,
  files,
  searchable: files,
  reading: 0,
  waiting: 0,
  failed: 0,
  deletesRefused: 0,
  skipped: 0,
  readInPart: 0,
  held: 0,
  kept: 0,
  holdReason: null,
  halted: false,
  remedy: null,
  approval: null,
  compared: true,
  unreadable: 0,
  unreadablePaths: [],
  warnings: [],
  leftOut: [],
  degraded: null,
  paused: false,
  ...more,
});

/** The status of a daemon that has nothing to do. */
export const IDLE_STATUS: DaemonStatus = {
  service: { kind: "open" },
  sources: [],
  removed: [],
  progress: {
    done: 0,
    total: 0,
    sent: 0,
    failed: 0,
    inFlight: 0,
    documents: { done: 0, total: 0 },
  },
  filesPerSecond: null,
  secondsLeft: null,
  idle: true,
};
