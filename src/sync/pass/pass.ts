import { hash } from "node:crypto";
import type { SyncConfig } from "../../config/schema.ts";
import type { ActionContext, ActionSource } from "../actions/context.ts";
import { noteRefused, noteSkipped } from "../actions/prepare.ts";
import { EXTRACTOR_VERSION } from "../document/recipe.ts";
import { brake, losesAll } from "../plan/brakes.ts";
import type { Difference, KnownFile, Look, RelativePath, Scan, ScanEntry } from "../plan/model.ts";
import { reconcile, scopeTest } from "../plan/reconcile.ts";
import type { Rules } from "../rules.ts";
import { scanPaths, scanSource } from "../scan.ts";
import type { DirtySet, Due } from "../settle.ts";
import { openDeletes, type Deletion } from "./deletes.ts";
import { applyMoves, findMovesByHash, widen, type Place } from "./moved-files.ts";

/** What a pass found to be done. */
export interface PassPlan {
  readonly looks: readonly Look[];
  readonly deletions: readonly Deletion[];
  /** The folder is missing or another one, so nothing may be done: look again later. */
  readonly halted: boolean;
  /** There are files without a row. */
  readonly newFiles: boolean;
}

/** Compares a source's disk with its ledger. Passes must not overlap. */
export interface Passes {
  /** Scans what is due, writes moves, holds and delete intents to the ledger, and says what is to be read and sent. */
  plan(due: Due): Promise<PassPlan>;
  /** The difference of the whole source, with nothing written. */
  preview(): Promise<{ readonly scan: Scan; readonly difference: Difference }>;
}

export interface PassOptions {
  readonly source: ActionSource;
  readonly context: ActionContext;
  readonly sync: SyncConfig;
  readonly once: boolean;
  readonly dirty: DirtySet;
  readonly isBusy: (path: RelativePath) => boolean;
  /** The path under which the same file is on its way to the service, if it is. */
  readonly travelsAs: (entry: ScanEntry) => RelativePath | undefined;
  readonly signal: AbortSignal;
}

/** With more paths than this a scan of the whole source is cheaper. */
const PATHS_MAX = 20_000;

/** How soon a file is looked at again that is on its way under its old name. */
const RENAME_WAIT_MS = 50;

/** Opens the passes of a source. */
export function openPasses({
  source,
  context,
  sync,
  once,
  dirty,
  isBusy,
  travelsAs,
  signal,
}: PassOptions): Passes {
  const { ledger, now } = context;
  const { id, root, rules, rulesKey } = source;
  const place: Place = { source: id, rules, ledger, signal };
  const deletes = openDeletes({ source: id, ledger, sync, now, once });
  let first = true;

  const compare = (scan: Scan, whole: boolean, retryParked: boolean): Difference => {
    ledger.flush();
    const known = whole ? ledger.files.all(id) : ledger.files.below(id, scan.scope ?? []);
    return reconcile(scan, known, { rulesKey, retryParked, busy: isBusy });
  };

  /** What needs no request. */
  const applyQuietly = ({ returned, forgotten, refused, skipped }: Difference): void => {
    if (returned.length + forgotten.length > 0) {
      ledger.note(() => {
        for (const row of returned) ledger.files.setState(row.id, "agreed");
        for (const row of forgotten) ledger.files.remove(row.id);
      });
    }
    for (const { path, reason, known } of refused) {
      if (known?.state === "failed" && known.ino === 0) continue; // Noted before; its look is unknown.
      noteRefused(
        context,
        source,
        { entry: { path, sizeBytes: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 }, known },
        reason,
      );
    }
    for (const { entry, reason, known } of skipped) noteSkipped(context, source, { entry, known }, reason);
  };

  /** Rows whose delete was held and whose path has a file again. */
  const unhold = (looks: readonly Look[]): readonly Look[] => {
    const held = looks.flatMap(({ known, from }) =>
      known?.state === "held" && from === undefined ? { id: known.id, to: known.path } : [],
    );
    if (held.length > 0) ledger.note(() => ledger.files.repath(held));
    return looks.map((look) =>
      look.known?.state === "held" ? { ...look, known: { ...look.known, state: "agreed" } } : look,
    );
  };

  const mayBegin = ({ entry, known }: Look, due: Due): boolean => {
    if (!dirty.rested(entry, now(), due.forced.has(entry.path))) return false;
    const other = known === undefined ? travelsAs(entry) : undefined;
    if (other === undefined || other === entry.path) return true;
    // Renamed while its create is under way: when that is done there is a row to move.
    dirty.again(entry.path, now() + Math.max(sync.settleMs, RENAME_WAIT_MS), now());
    return false;
  };

  const nothing = (halted: boolean): PassPlan => ({ looks: [], deletions: [], halted, newFiles: false });

  const rootless = (scan: Scan): PassPlan => {
    deletes.hold([], rootReason(scan), true);
    return nothing(true);
  };

  return {
    plan: async (due) => {
      let whole = due.all || due.paths.length > PATHS_MAX;
      let scan = whole
        ? await scanSource(root, rules, { signal })
        : await scanPaths(root, rules, due.paths, { signal });
      ledger.flush();
      if (!whole) scan = await widen(place, scan, deletes.waiting());
      if (scan.root === undefined) return rootless(scan);

      const retryParked = first || !whole;
      let difference = compare(scan, whole, retryParked);
      const before = ledger.sources.get(id);
      const facts = deletes.facts(before);
      const missing = new Set(difference.gone.filter(isNewlyGone).map((row) => row.id));
      // One scan alone may miss a file that moves while it runs, and only a whole one tells that a folder was emptied.
      if (missing.size > 0 && (once || (!whole && losesAll(difference.gone, facts)))) {
        scan = await scanSource(root, rules, { signal });
        if (scan.root === undefined) return rootless(scan);
        whole = true;
        difference = compare(scan, whole, retryParked);
      }
      const judged = brake(scan, difference.gone, facts);
      if (judged.halted) {
        deletes.hold(judged.held, judged.reason, true);
        return nothing(true);
      }

      const rested = difference.looks.filter((look) => mayBegin(look, due));
      const byHash = await findMovesByHash(place, rested, difference.gone);
      const applied = await applyMoves(place, difference, rested, byHash);
      applyQuietly(difference);
      const looks = unhold(applied.looks);
      const [gone, missedOnce] = once
        ? partition(applied.gone, (row) => !isNewlyGone(row) || missing.has(row.id))
        : [applied.gone, []];
      for (const { path } of missedOnce) source.lookAgain(path);

      const braked = brake(
        scan,
        deletes.ripe(gone, scopeTest(scan.scope), dirty.isQuiet(), (path, atMs) =>
          source.lookAgain(path, atMs),
        ),
        facts,
      );
      const deletions = await deletes.begin(braked.deletes);
      deletes.hold(braked.held, braked.reason, false);
      const { root: identity } = scan;
      const rootIsNew = before.root?.dev !== identity.dev || before.root.ino !== identity.ino;
      ledger.note(() => {
        // As long as deletes are held because of another root, it is not the agreed one.
        if (rootIsNew && braked.held.length === 0) ledger.sources.setRoot(id, identity);
        if (whole) ledger.sources.setUnreadable(id, scan.unreadable.length);
        if (whole && facts.approved) ledger.sources.approvalUsed(id);
      });
      if (whole) first = false;
      return { looks, deletions, halted: false, newFiles: looks.some(({ known }) => known === undefined) };
    },
    preview: async () => {
      const scan = await scanSource(root, rules, { signal });
      return { scan, difference: compare(scan, true, true) };
    },
  };
}

/** Names everything that makes a recipe out of the same bytes: another value means that each file is read again. */
export function rulesKeyOf({ source }: Rules): number {
  const { collection, ownerId, settings, rules } = source;
  const text = JSON.stringify([EXTRACTOR_VERSION, collection, ownerId, settings, rules]);
  // 48 bits, so that it is a whole number for SQLite and for us; 0 means "never".
  return Number.parseInt(hash("sha256", text).slice(0, 12), 16) || 1;
}

/** Missing, and nothing was decided about its delete yet. */
function isNewlyGone({ state }: KnownFile): boolean {
  return state !== "held" && state !== "doomed";
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): readonly [T[], T[]] {
  const { yes = [], no = [] } = Object.groupBy(items, (item) => (test(item) ? "yes" : "no"));
  return [yes, no];
}

/** Why a folder's root has no identity, in words. */
export function rootReason({ unreadable }: Pick<Scan, "unreadable">): string {
  const code = unreadable.find(({ path }) => path === "")?.code;
  return code === undefined ? "the folder is missing or is no folder" : `the folder cannot be read: ${code}`;
}
