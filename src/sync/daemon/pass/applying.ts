import { noteUnsent } from "../../send/prepare.ts";
import type { BusyPaths } from "../agenda/jobs.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import {
  type Difference,
  EMPTY_FILE,
  type KnownFile,
  type Candidate,
  type RelativePath,
  type ScanEntry,
} from "../../plan/model.ts";
import { followMoves, sameIdentity, moveSuspects } from "../../plan/moves.ts";
import type { PassContext } from "./context.ts";
import { applyMoves, findMoves, isSameFile } from "./moved-files.ts";

/**
 * A file that is in flight under its old name is checked when that ends, and this often meanwhile: a service may be
 * down for a day, and the file may be renamed again or disappear.
 */
const RENAME_WAIT_MS = 60_000;

/**
 * Applies what a comparison found, except deletes: follows moves, records what needs no request, and returns what may be
 * read and sent now, and the rows whose file is gone. `missing`: ids of the rows whose file the pass's first scan did not
 * find.
 */
export async function applyDifference(
  pass: PassContext,
  difference: Difference,
  busy: BusyPaths,
  missing: ReadonlySet<number>,
): Promise<{ readonly candidates: readonly Candidate[]; readonly gone: readonly KnownFile[] }> {
  const [rested, unrested] = partition(difference.candidates, (each) => mayBegin(pass, each, busy));
  // A file that is still written to keeps its resource under its new name. Otherwise it would count as deleted until it
  // rests.
  const edited =
    difference.gone.length === 0
      ? []
      : difference.candidates.filter((candidate) => busyPathOf(pass, candidate, busy) === undefined);
  const byHash = await findMoves(pass, rested, difference.gone, edited);
  const applied = followMoves(difference, rested, byHash);
  await applyMoves(pass, applied);
  // A program that rewrites a file empties it first.
  const skipped = difference.skipped.filter((skip) => skip.reason !== EMPTY_FILE || hasRested(pass, skip));
  applyQuietly(pass, { ...difference, skipped });
  const candidates = skipTwins(pass, unhold(pass.context.ledger, applied.candidates));
  return { candidates, gone: surelyGone(pass, applied.gone, unrested, missing) };
}

function mayBegin(pass: PassContext, candidate: Candidate, busy: BusyPaths): boolean {
  const { agenda, context } = pass;
  const { entry } = candidate;
  if (!hasRested(pass, candidate)) return false;
  const busyPath = busyPathOf(pass, candidate, busy);
  if (busyPath === undefined) return true;
  // Renamed while in flight: when that ends there is a row to move, which this comparison did not see.
  const waitMs = agenda.checkAfter(busyPath, entry.path) ? RENAME_WAIT_MS : 0;
  agenda.checkAgain(entry.path, context.now() + waitMs);
  return false;
}

function hasRested({ agenda }: PassContext, { entry }: Pick<Candidate, "entry">): boolean {
  return agenda.rested(entry, Date.now());
}

/**
 * Returns under which other path a new file is in flight. A file that only received the inode number of one in flight
 * need not wait for that one.
 */
function busyPathOf(
  pass: PassContext,
  { entry, known }: Candidate,
  busy: BusyPaths,
): RelativePath | undefined {
  if (known !== undefined) return undefined;
  const wasRenamed = (taken: ScanEntry): boolean =>
    sameIdentity(taken, entry) || isSameFile(pass, { known: taken, entry });
  return busy.otherPath(entry, wasRenamed);
}

/** In a single pass, leaves rows for later whose file may turn out to have moved. */
function surelyGone(
  { once, agenda }: PassContext,
  rows: readonly KnownFile[],
  unrested: readonly Candidate[],
  missing: ReadonlySet<number>,
): readonly KnownFile[] {
  // A copy that has not rested may turn out to be the very file. A daemon waits for the end of a burst anyway.
  if (!once) return rows;
  const sizes = new Set(moveSuspects(unrested, rows).map(({ entry }) => entry.sizeBytes));
  const [gone, missedOnce] = partition(
    rows,
    (row) => !isNewlyGone(row) || (missing.has(row.id) && !sizes.has(row.sizeBytes)),
  );
  for (const { path } of missedOnce) agenda.checkAgain(path);
  return gone;
}

/** Applies what needs no request. */
function applyQuietly(
  { context, source }: PassContext,
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
    noteUnsent(
      context,
      source,
      { entry: { path, sizeBytes: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 }, known },
      "failed",
      reason,
    );
  }
  for (const { entry, reason, known } of skipped)
    noteUnsent(context, source, { entry, known }, "skipped", reason);
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
  { context, source: { id } }: PassContext,
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
    noteUnsent(context, { id, rulesKey: () => 0 }, candidate, "skipped", SAME_NAME);
    return false;
  };
  return candidates.filter(isFree);
}

const SAME_NAME = "another file has this name, with its letters composed in another way";

function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

/** Missing, with nothing decided about its delete yet. */
export function isNewlyGone({ state }: KnownFile): boolean {
  return state !== "held" && state !== "doomed";
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): readonly [T[], T[]] {
  const { yes = [], no = [] } = Object.groupBy(items, (item) => (test(item) ? "yes" : "no"));
  return [yes, no];
}
