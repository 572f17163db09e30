import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ActionContext, ActionSource } from "../../../src/sync/send/context.ts";
import type { Observed } from "../../../src/sync/ledger/files/observed.ts";
import type { Activity } from "../../../src/sync/ledger/activity.ts";
import { openLedger, type Ledger } from "../../../src/sync/ledger/ledger.ts";
import type { FileState, LedgerFile, Candidate, RelativePath } from "../../../src/sync/plan/model.ts";
import { openRules } from "../../../src/sync/scan/rules/rules.ts";
import { sourceTag, writerTag } from "../../../src/sync/plan/marker.ts";
import { TIMING } from "../../../src/sync/plan/timing.ts";
import { sourceAt } from "../scan/tree.ts";

/** A ledger with one source, and what its actions request and report. */
export interface Workshop {
  readonly ledger: Ledger;
  readonly source: ActionSource;
  readonly reports: Activity[];
  /** `PATH` or `PATH at MS` of each requested check, and `PATH torn`. */
  readonly checks: string[];
  nowMs: number;
  paused: boolean;
  /** The parts of a context that the action under test uses. */
  context(parts: Partial<Record<keyof ActionContext, unknown>>): ActionContext;
  /** Writes to the ledger. Returns the result of the change. */
  write<T>(change: () => T): Promise<T>;
  /** Adds a row. Returns its id. */
  add(path: RelativePath, state: FileState, docId?: string | null): Promise<number>;
  /** A candidate at a path, with its row. */
  candidate(path: RelativePath, sizeBytes?: number): Candidate;
  get(id: number): LedgerFile | undefined;
  /** The state of a path's row; undefined: it has none. */
  state(path: RelativePath): FileState | undefined;
  close(): void;
}

export function openWorkshop(): Workshop {
  const folder = mkdtempSync(join(tmpdir(), "kbsync-actions-"));
  const ledger = openLedger(folder, "service");
  const { id } = ledger.sources.open(folder, "owner", "fastest");
  const reports: Activity[] = [];
  const checks: string[] = [];
  const source: ActionSource = {
    id,
    root: folder,
    rules: openRules(sourceAt(folder)),
    signature: { source: sourceTag("docs"), writer: writerTag("instance", "machine", "/state", folder) },
    rulesKey: () => 7,
    isStale: () => false,
    isPaused: () => workshop.paused,
    agenda: {
      isOutdated: () => false,
      sent: () => undefined,
      checkAgain: (path, atMs) => void checks.push(atMs === undefined ? path : `${path} at ${atMs}`),
      checkTorn: (path) => void checks.push(`${path} torn`),
      rereadAt: () => undefined,
    },
    mayRecreate: () => true,
    findCreated: async () => await Promise.resolve("absent"),
    compareLater: () => undefined,
    deleteLater: () => undefined,
  };
  const workshop: Workshop = {
    ledger,
    source,
    reports,
    checks,
    nowMs: 1_000_000,
    paused: false,
    context: (parts) =>
      ({
        ledger,
        now: () => workshop.nowMs,
        signal: new AbortController().signal,
        timing: TIMING,
        capabilities: {
          readsMails: () => false,
          takesMetadata: () => false,
          check: async () => await Promise.resolve(),
        },
        // A wait ends at once.
        yieldSlot: async (wait: (waitsPerSlot: () => number) => Promise<unknown>) =>
          wait.length === 0 ? undefined : await wait(() => 0),
        report: (activity: Activity) => reports.push(activity),
        ...parts,
      }) as unknown as ActionContext, // What an action does not use is missing.
    write: async (change) => {
      const made: ReturnType<typeof change>[] = [];
      await ledger.write(() => void made.push(change()));
      return made[0] as ReturnType<typeof change>; // The write has run it once.
    },
    add: async (path, state, docId = "doc") => {
      await ledger.write(() => {
        ledger.files.insert(id, docId, state, observedAt(path));
      });
      const row = ledger.files.living(id, path);
      return row?.id ?? 0;
    },
    candidate: (path, sizeBytes = 4) => {
      ledger.flush();
      const living = ledger.files.living(id, path);
      const known = living === undefined ? undefined : ledger.files.get(living.id);
      return { entry: { ...observedAt(path).entry, sizeBytes }, known };
    },
    get: (row) => {
      ledger.flush();
      return ledger.files.get(row);
    },
    state: (path) => {
      ledger.flush();
      return ledger.files.living(id, path)?.state;
    },
    close: () => {
      ledger.close();
      rmSync(folder, { recursive: true });
    },
  };
  return workshop;
}

export function observedAt(path: RelativePath): Observed {
  return {
    entry: { path, sizeBytes: 4, mtimeMs: 1, ctimeMs: 1, ino: 1 },
    rulesKey: 7,
    hash: "hash",
    digest: "digest",
    title: path,
    label: "label",
    extractorVersion: 1,
    shape: {
      kind: "content",
      tier: "fastest",
      ownerId: "owner",
      settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
    },
    fileUrl: undefined,
  };
}
