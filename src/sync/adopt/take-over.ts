import { type ActionContext, reportCompared } from "../actions/context.ts";
import type { AcknowledgedFile } from "../ledger/drift/drift.ts";
import { withinTest } from "../plan/unsearched.ts";
import type { AdoptableResource, Match } from "../plan/adoption.ts";
import { alterationsOf } from "../plan/audit.ts";
import type { ListedResource, RelativePath } from "../plan/model.ts";
import type { AdoptingSource, AdoptionCandidate } from "./candidates.ts";
import { WHOLE_FOLDER, type Candidates } from "./find-candidates.ts";
import { asListed, fits, storedOf, type Attempt, type Matched, type ReadFiles } from "./match.ts";

/** Rows written in one transaction. */
const WRITE_ROWS = 500;

/**
 * Has the files of an old ledger's rows read again whose file was not seen. A row whose file is gone or received another
 * resource, and whose own resource was renamed, follows that to the file of its name, although the file holds something
 * else by now, or is no document.
 */
export async function questionUnseen(
  { context, source, found, whole }: Attempt,
  { goneRows, unreadable }: Candidates,
  { unseen, noDocuments }: ReadFiles,
  { former, files, resources, released }: Matched,
): Promise<void> {
  const { ledger } = context;
  const isUnreadable = withinTest(unreadable);
  const topicOf = ({ id }: AcknowledgedFile): string => found.altered.get(id)?.topic ?? "";
  const byTopic = Map.groupBy([...goneRows, ...released], topicOf);
  const unmatched = Map.groupBy(files, ({ topic }) => topic);
  const bearing = new Set(resources.map(({ topic }) => topic));
  const newPathOf = (row: AcknowledgedFile): RelativePath | undefined => {
    const topic = topicOf(row);
    const [first, ...more] = byTopic.get(topic) ?? [];
    if (first?.id !== row.id || more.length > 0 || bearing.has(topic)) return undefined;
    const matching = (unmatched.get(topic) ?? []).map((file) => file.path);
    const [path, ...others] = [...matching, ...(noDocuments.get(topic) ?? [])];
    if (path === undefined || others.length > 0) return undefined;
    return (ledger.files.living(source.id, path)?.docId ?? null) === null ? path : undefined;
  };
  const unmatchedUnseen = whole ? unseen.filter(({ docId }) => !former.has(docId)) : [];
  const questioned = [...unmatchedUnseen, ...released.filter((row) => newPathOf(row) !== undefined)];
  for (let at = 0; at < questioned.length; at += WRITE_ROWS) {
    const group = questioned.slice(at, at + WRITE_ROWS);
    await ledger.write(() => {
      for (const row of group) {
        // The state of an unreadable file is determined later, by the name that its resource has now.
        question(context, row, isUnreadable(row.path) ? undefined : found.altered.get(row.id));
        const to = newPathOf(row);
        if (to !== undefined) ledger.files.repath([{ id: row.id, to }]);
      }
    });
  }
}

/** Gives the files their resources. */
export async function takeOver(
  { context, source, whole }: Attempt,
  { candidateRows, isFirst, unreadable }: Candidates,
  { matches, former, released }: Matched,
  startedMs: number,
): Promise<void> {
  const { ledger } = context;
  // The resource of a create without an answer may turn up later. It must not replace what its file receives now.
  const unanswered = Map.groupBy(ledger.intents.creates(source.id), ({ path }) => path);
  const give = (match: (typeof matches)[number], isFreed?: boolean, givenUp?: ReadonlySet<string>): void => {
    adopt(context, source, match, isFreed, givenUp);
    for (const { id } of unanswered.get(match.file.path) ?? []) ledger.intents.doubt(id, null);
  };
  // A new ledger has few rows, and each is a candidate only once. So theirs are written first, together with the record
  // that the comparison started: after a crash in between, only files without a resource are candidates.
  const ofRows = new Set(whole ? [] : matches.filter(({ file }) => candidateRows.has(file.path)));
  if (!whole) {
    await ledger.write(() => {
      for (const match of ofRows) give(match);
      if (isFirst) ledger.drift.setUnsearched(source.id, { parts: WHOLE_FOLDER, sinceMs: startedMs });
    });
    for (const { file, resource } of ofRows) reportCompared(context, source, file.path, resource.docId);
  }
  // A row gives up its resource before another file takes that. It may be that of a file that cannot be read now.
  const givenUp = new Set(matches.map(({ resource }) => resource.docId));
  if (unreadable.length > 0) for (const { docId } of released) givenUp.add(docId);
  const ofFiles = matches
    .filter((match) => !ofRows.has(match))
    .sort((a, b) => Number(b.file.hasOther) - Number(a.file.hasOther));
  for (let at = 0; at < ofFiles.length; at += WRITE_ROWS) {
    const group = ofFiles.slice(at, at + WRITE_ROWS);
    await ledger.write(() => {
      for (const match of group) {
        const formerRow = former.get(match.resource.docId);
        if (formerRow !== undefined) ledger.files.remove(formerRow);
        give(match, formerRow !== undefined, givenUp);
      }
    });
    for (const { file, resource } of group) reportCompared(context, source, file.path, resource.docId);
  }
}

/**
 * Runs inside a group commit. `isFreed`: the row that owned the resource was just removed. A doubt may still name it.
 * `givenUp`: resources that other files receive, or may have.
 */
function adopt(
  { ledger }: ActionContext,
  source: AdoptingSource,
  match: Match<AdoptionCandidate, AdoptableResource>,
  isFreed = false,
  givenUp: ReadonlySet<string> = new Set(),
): void {
  const { file, resource } = match;
  if (!isFreed && ledger.files.ownsDoc(resource.docId)) return;
  const { settings } = file.observed.shape;
  const shape = { ...file.observed.shape, settings: { ...settings, ...resource.settings } };
  const observed = { ...asListed(file.observed, resource), shape };
  const state = isEqualMatch(match) ? "agreed" : "unsure";
  const stored = storedOf(observed, resource);
  const row = ledger.files.living(source.id, file.path);
  if (row === undefined) {
    ledger.files.insert(source.id, resource.docId, state, observed, stored);
    if (resource.warning !== undefined) ledger.files.warn(resource.docId, resource.warning);
    return;
  }
  // The file has two now: the one that was found, and the one its row knew, which is ours to delete.
  if (row.docId !== null && !givenUp.has(row.docId)) ledger.intents.delete(source.id, file.path, row.docId);
  ledger.files.agree(row.id, resource.docId, observed, stored);
  ledger.files.warn(resource.docId, resource.warning);
  if (state === "unsure") ledger.files.setState(row.id, state);
}

/**
 * Marks an old ledger's row whose file is not at its path, or cannot be read. The file may return under another name,
 * or unchanged. It must not count as what the service has then. Runs inside a group commit.
 */
function question(
  { ledger }: ActionContext,
  row: AcknowledgedFile,
  resource: ListedResource | undefined,
): void {
  const found = resource && alterationsOf({ ...row, state: "agreed" }, resource);
  if (resource !== undefined && found?.every((each) => each === "title or description") === true)
    ledger.files.relabel(row.id, resource.title, resource.label);
  else ledger.files.distrust(row.id);
}

/**
 * Reports whether nothing has to be sent. Only a new resource can have other chunk settings; the next check creates it.
 */
export function isEqualMatch({
  exact,
  file,
  resource,
}: Match<AdoptionCandidate, AdoptableResource>): boolean {
  return exact && resource.isUnfinished !== true && fits(file, resource);
}
