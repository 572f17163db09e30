import { noteRefused, noteSkipped } from "../actions/prepare.ts";
import type { Ledger } from "../ledger/ledger.ts";
import {
  type Difference,
  EMPTY_FILE,
  type KnownFile,
  type Candidate,
  type RelativePath,
  type ScanEntry,
} from "../plan/model.ts";
import { followMoves, sameIdentity, moveSuspects } from "../plan/moves.ts";
import type { BusyPaths } from "../agenda/jobs.ts";
import type { Compared } from "./compare.ts";
import { applyMoves, findMoves, isSameFile, type SourceFiles } from "./moved-files.ts";
import type { PassOptions } from "./parts.ts";

/**
 * A file that is in flight under its old name is checked when that ends, and this often meanwhile: a service may be
 * down for a day, and the file may be renamed again or disappear.
 */
const RENAME_WAIT_MS = 60_000;

/** Applies what needs no request. */
function applyQuietly(
  context: PassOptions["context"],
  source: PassOptions["source"],
  { returned, forgotten, refused, skipped }: Difference,
): void {
  const { ledger } = context;
  if (returned.length + forgotten.length > 0) {
    ledger.note(() => {
      for (const row of returned) ledger.files.restore(row.id, row.path);
      for (const row of forgotten) ledger.files.forget(row.id);
    });
  }
  for (const { path, reason, known } of refused) {
    if (known?.state === "failed" && known.ino === 0) continue; // Noted before; its identity is unknown.
    noteRefused(
      context,
      source,
      { entry: { path, sizeBytes: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 }, known },
      reason,
    );
  }
  for (const { entry, reason, known } of skipped) noteSkipped(context, source, { entry, known }, reason);
}

/** Restores rows whose delete was held and whose path has a file again. */
function unhold(ledger: Ledger, candidates: readonly Candidate[]): readonly Candidate[] {
  const held = candidates.flatMap(({ known, from }) =>
    known?.state === "held" && from === undefined ? { id: known.id, to: known.path } : [],
  );
  if (held.length > 0) ledger.note(() => ledger.files.repath(held));
  return candidates.map((candidate) =>
    candidate.known?.state === "held"
      ? { ...candidate, known: { ...candidate.known, state: "agreed" } }
      : candidate,
  );
}

/**
 * Leaves out new files whose name differs from another one's only in how its letters are composed: their markers would be equal.
 * They are checked again with each check, for the other one may be gone then.
 */
function skipTwins(
  context: PassOptions["context"],
  { id }: PassOptions["source"],
  candidates: readonly Candidate[],
): readonly Candidate[] {
  const taken = new Map<string, RelativePath>();
  const isFree = (candidate: Candidate): boolean => {
    const { path } = candidate.entry;
    if (isAscii(path)) return true;
    const composed = path.normalize("NFC");
    const twins = [composed, path.normalize("NFD")].filter((form) => form !== path);
    const hasResource = (row: KnownFile | undefined): boolean => row !== undefined && row.docId !== null;
    const twin = hasResource(candidate.known)
      ? undefined
      : (taken.get(composed) ?? twins.find((form) => hasResource(context.ledger.files.living(id, form))));
    taken.set(composed, taken.get(composed) ?? path);
    if (twin === undefined) return true;
    noteSkipped(context, { id, rulesKey: () => 0 }, candidate, SAME_NAME);
    return false;
  };
  return candidates.filter(isFree);
}

const SAME_NAME = "another file has this name, with its letters composed in another way";

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

/** Applies what a comparison found, except deletes. */
interface Applying {
  /**
   * Follows moves, records what needs no request, and returns what may be read and sent now, and the rows whose file is
   * gone. `missing`: ids of the rows whose file the pass's first scan did not find.
   */
  apply(
    difference: Compared,
    busy: BusyPaths,
    missing: ReadonlySet<number>,
  ): Promise<{ readonly candidates: readonly Candidate[]; readonly gone: readonly KnownFile[] }>;
}

/** Prepares to apply the comparisons of a source. */
export function openApplying(
  { source, context, once, states }: Pick<PassOptions, "source" | "context" | "once" | "states">,
  sourceFiles: SourceFiles,
): Applying {
  const { ledger, now } = context;
  const hasRested = ({ entry }: Pick<Candidate, "entry">): boolean => states.rested(entry, now(), Date.now());
  /** A file that only received the inode number of one in flight need not wait for that one. */
  const wasRenamed =
    (entry: ScanEntry) =>
    (taken: ScanEntry): boolean =>
      sameIdentity(taken, entry) || isSameFile(sourceFiles, { known: taken, entry });
  const busyPathOf = ({ entry, known }: Candidate, busy: BusyPaths): RelativePath | undefined =>
    known === undefined ? busy.otherPath(entry, wasRenamed(entry)) : undefined;
  const mayBegin = (candidate: Candidate, busy: BusyPaths): boolean => {
    const { entry } = candidate;
    if (!hasRested(candidate)) return false;
    const busyPath = busyPathOf(candidate, busy);
    if (busyPath === undefined) return true;
    // Renamed while in flight: when that ends there is a row to move, which this comparison did not see.
    const waitMs = states.checkAfter(busyPath, entry.path) ? RENAME_WAIT_MS : 0;
    states.checkAgain(entry.path, now() + waitMs, now());
    return false;
  };
  /** In a single pass, leaves rows for later whose file may turn out to have moved. */
  const surelyGone = (
    rows: readonly KnownFile[],
    unrested: readonly Candidate[],
    missing: ReadonlySet<number>,
  ): readonly KnownFile[] => {
    // A copy that has not rested may turn out to be the very file. A daemon waits for the end of a burst anyway.
    if (!once) return rows;
    const sizes = new Set(moveSuspects(unrested, rows).map(({ entry }) => entry.sizeBytes));
    const [gone, missedOnce] = partition(
      rows,
      (row) => !isNewlyGone(row) || (missing.has(row.id) && !sizes.has(row.sizeBytes)),
    );
    for (const { path } of missedOnce) source.checkAgain(path);
    return gone;
  };
  return {
    apply: async (difference, busy, missing) => {
      const [rested, unrested] = partition(difference.candidates, (each) => mayBegin(each, busy));
      // A file that is still written to keeps its resource under its new name. Otherwise it would count as deleted
      // until it rests.
      const edited =
        difference.gone.length === 0
          ? []
          : difference.candidates.filter((candidate) => busyPathOf(candidate, busy) === undefined);
      const byHash = await findMoves(sourceFiles, rested, difference.gone, edited);
      const applied = followMoves(difference, rested, byHash);
      await applyMoves(sourceFiles, applied);
      // A program that rewrites a file empties it first.
      const skipped = difference.skipped.filter((skip) => skip.reason !== EMPTY_FILE || hasRested(skip));
      applyQuietly(context, source, { ...difference, skipped });
      const candidates = skipTwins(context, source, unhold(ledger, applied.candidates));
      return { candidates, gone: surelyGone(applied.gone, unrested, missing) };
    },
  };
}

/** Missing, with nothing decided about its delete yet. */
export function isNewlyGone({ state }: KnownFile): boolean {
  return state !== "held" && state !== "doomed";
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): readonly [T[], T[]] {
  const { yes = [], no = [] } = Object.groupBy(items, (item) => (test(item) ? "yes" : "no"));
  return [yes, no];
}
