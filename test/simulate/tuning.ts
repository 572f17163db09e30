/** A change to the text of a source, by its path below `src`. It must fit exactly once; no capturing groups. */
export interface Patch {
  readonly file: string;
  readonly find: string | RegExp;
  readonly replace: string;
}

/**
 * Bounds that a folder of some dozen small files would never reach are made small, so that what lies behind them is
 * exercised as well: scans that are interrupted, files read in slices, several batches, pages of the list.
 */
export const TUNING: readonly Patch[] = [
  { file: "sync/scan/walk.ts", find: /const STEPS_PER_LOOK = \d+;/, replace: "const STEPS_PER_LOOK = 5;" },
  {
    file: "sync/document/read.ts",
    find: "const SMALL_BYTES = 256 * 1024;",
    replace: "const SMALL_BYTES = 40;",
  },
  {
    file: "sync/document/read.ts",
    find: "const SLICE_BYTES = 1024 * 1024;",
    replace: "const SLICE_BYTES = 24;",
  },
  {
    file: "sync/remote/multipart.ts",
    find: "const SLICE_BYTES = 1024 * 1024;",
    replace: "const SLICE_BYTES = 16;",
  },
  { file: "sync/pass/moved-files.ts", find: /const READ_AT_ONCE = \d+;/, replace: "const READ_AT_ONCE = 2;" },
  {
    file: "sync/pass/moved-files.ts",
    find: "const MOVED_AT_ONCE = 10_000;",
    replace: "const MOVED_AT_ONCE = 3;",
  },
  { file: "sync/queue.ts", find: /const BATCH_JOBS = \d+;/, replace: "const BATCH_JOBS = 6;" },
  {
    file: "sync/remote/remote.ts",
    find: /const PAGE_RESOURCES = \d+;/,
    replace: "const PAGE_RESOURCES = 7;",
  },
];
