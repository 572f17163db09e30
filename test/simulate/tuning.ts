/** A change to the text of a source, by its path below `src`. It must fit exactly once; no capturing groups. */
export interface Patch {
  readonly file: string;
  readonly find: string | RegExp;
  readonly replace: string;
}

/** Resources on a page of the list, where the service has pages. */
export const PAGE_RESOURCES = 7;

/**
 * Bounds that a folder of some dozen small files would never reach are made small, so that what lies behind them is
 * exercised as well: scans that are interrupted, files read in slices, several batches, pages of the list.
 */
export const TUNING: readonly Patch[] = [
  {
    file: "sync/scan/walk.ts",
    find: /const ITEMS_PER_STEP = \d+;/,
    replace: "const ITEMS_PER_STEP = 5;",
  },
  {
    file: "sync/scan/read/read.ts",
    find: "const SMALL_BYTES = 256 * 1024;",
    replace: "const SMALL_BYTES = 40;",
  },
  {
    file: "sync/scan/read/read.ts",
    find: "const SLICE_BYTES = 1024 * 1024;",
    replace: "const SLICE_BYTES = 24;",
  },
  {
    file: "sync/send/remote/multipart.ts",
    find: "const SLICE_BYTES = 1024 * 1024;",
    replace: "const SLICE_BYTES = 16;",
  },
  // A pass computes in slices, between which requests end. Nothing but waiting takes virtual time, so slices are counted.
  {
    file: "lib/steps.ts",
    find: /export const STEP_ITEMS = [\d_]+;/,
    replace: "export const STEP_ITEMS = 5;",
  },
  {
    file: "lib/steps.ts",
    find: "    } while (performance.now() < endMs);",
    replace: "    } while (performance.now() < endMs - SLICE_MS);",
  },
  {
    file: "lib/steps.ts",
    find: 'import { setImmediate as nextTurn } from "node:timers/promises";',
    replace:
      'import { setTimeout as sleep } from "node:timers/promises";\nconst nextTurn = (): Promise<void> => sleep(2);',
  },
  {
    file: "sync/daemon/pass/moved-files.ts",
    find: /const READ_AT_ONCE = \d+;/,
    replace: "const READ_AT_ONCE = 2;",
  },
  {
    file: "sync/daemon/pass/moved-files.ts",
    find: "const MOVED_AT_ONCE = 1000;",
    replace: "const MOVED_AT_ONCE = 3;",
  },
  { file: "sync/send/queue/lines.ts", find: /const BATCH_JOBS = \d+;/, replace: "const BATCH_JOBS = 6;" },
  {
    file: "sync/send/remote/collection-requests.ts",
    find: /const PAGE_RESOURCES = \d+;/,
    replace: `const PAGE_RESOURCES = ${PAGE_RESOURCES};`,
  },
];
