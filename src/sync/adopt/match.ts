import type { ActionContext } from "../actions/context.ts";
import { storedAs, withListedMetadata } from "../actions/observe.ts";
import type { AcknowledgedFile } from "../ledger/drift/drift.ts";
import type { Observed, Stored } from "../ledger/files/observed.ts";
import {
  labelsOfFiles,
  matchFiles,
  uploadGroups,
  type AdoptableResource,
  type Match,
  type Matches,
} from "../plan/adoption.ts";
import { alterationsOf } from "../plan/audit.ts";
import { hasSettings, sameShape } from "../plan/decide.ts";
import type { ListedResource, RelativePath } from "../plan/model.ts";
import { askPresence } from "../reconcile-service/presence.ts";
import { hashUpload, hashUploads } from "../reconcile-service/uploads.ts";
import { readCandidates, type AdoptingSource, type AdoptionCandidate } from "./candidates.ts";
import { WHOLE_FOLDER, type Candidates } from "./find-candidates.ts";
import type { Found } from "./list.ts";
import { openPeerTest } from "./peers.ts";

/** An adoption whose scope is listed. */
export interface Attempt {
  readonly context: ActionContext;
  readonly source: AdoptingSource;
  readonly found: Found;
  /** The ledger may be old, so its rows are compared with the list as well. */
  readonly whole: boolean;
  /** A person agreed to what the list omits. */
  readonly isAgreedTo: boolean;
  readonly signal: AbortSignal;
}

/** The candidates that were read. */
export interface ReadFiles {
  /** Files to match with resources. */
  readonly candidates: readonly AdoptionCandidate[];
  /** Number of rows of an old ledger whose resource was changed since, to what the file holds. */
  readonly confirmed: number;
  /** Parts of the folder whose files are matched another time. */
  readonly unread: readonly RelativePath[];
  /** Rows whose resource is in question and whose file was not read. */
  readonly unseen: readonly AcknowledgedFile[];
  /** Paths of files that are no document now, by the topic of the description that they have and that names them. */
  readonly noDocuments: ReadonlyMap<string, readonly RelativePath[]>;
}

/** The result of matching. */
export interface Matched {
  readonly matches: readonly Pair[];
  /** Files without a match. */
  readonly files: readonly AdoptionCandidate[];
  /** Resources that no row owned and that match no file. */
  readonly resources: readonly AdoptableResource[];
  /** Rows whose file is gone and whose resource was matched with another file, by the resource's id. */
  readonly former: ReadonlyMap<string, number>;
  /** Rows whose file was matched with another resource, and whose own was matched with no file. */
  readonly released: readonly AcknowledgedFile[];
}

/** Reads the candidates. Confirms rows of an old ledger whose resource was changed to what their file holds. */
export async function readFiles(attempt: Attempt, found: Candidates): Promise<ReadFiles> {
  const { context, source, whole, signal } = attempt;
  const { ledger } = context;
  const { candidateRows, changed, unmatchedRows } = found;
  let confirmed = 0;
  const candidates: AdoptionCandidate[] = [];
  const read = new Set<number>();
  const unread = [...(found.isThere ? found.unreadable : WHOLE_FOLDER)];
  const noDocuments = new Map<string, RelativePath[]>();
  const topics = new Set(attempt.found.unowned.map(({ topic }) => topic));
  for await (const candidate of readCandidates(context, source, found.entries, signal)) {
    if (!("observed" in candidate)) {
      // An empty file, or one that cannot be synced, is not a document now but may become one again. Until then a resource
      // with its name remains its own.
      const { path, topic, mayHaveOtherTopic, namesPath } = candidate;
      if (topic !== undefined && namesPath === true) {
        const paths = noDocuments.get(topic);
        if (paths === undefined) noDocuments.set(topic, [path]);
        else paths.push(path);
      }
      if (topic === undefined || mayHaveOtherTopic === true || topics.has(topic)) unread.push(path);
      continue;
    }
    const row = candidateRows.get(candidate.path);
    if (row !== undefined) read.add(row.id);
    const altered = whole && row !== undefined ? attempt.found.altered.get(row.id) : undefined;
    if (row === undefined || altered === undefined) {
      candidates.push({ ...candidate, hasOther: changed.has(candidate.path) });
      continue;
    }
    // The resource was changed since, by the daemon that an old ledger forgot or by somebody else.
    const isEqual = isShapedAs(context, row, candidate) && (await holds(context, altered, candidate, signal));
    confirmed += Number(isEqual);
    await ledger.write(() => {
      const { observed } = candidate;
      if (isEqual)
        ledger.files.agree(row.id, row.docId, asListed(observed, altered), storedOf(observed, altered));
      else ledger.files.setState(row.id, "unsure");
    });
    // The file may have another resource by now, for example if the row's own continued under another name.
    if (!isEqual) candidates.push({ ...candidate, hasOther: true });
  }
  const unseen = [...unmatchedRows, ...[...candidateRows.values()].filter(({ id }) => !read.has(id))];
  return { candidates, confirmed, unread, unseen, noDocuments };
}

/**
 * Matches files with resources. Returns "unanswered" if the service does not answer for a resource in whose favour a row's own
 * resource would be deleted.
 */
export async function matchResources(
  attempt: Attempt,
  candidates: Candidates,
  read: readonly AdoptionCandidate[],
): Promise<Matched | "unanswered"> {
  const { context, source, found, signal } = attempt;
  const { candidateRows, changed, goneRows } = candidates;
  const adoptable = [...found.unowned, ...goneRows.flatMap(({ id }) => found.altered.get(id) ?? [])];
  const matched = await matchEach(attempt, candidates, read, adoptable);
  if (matched === "unanswered") return matched;
  const altered = matched.matches.filter(({ exact }) => !exact);
  const mayBePeers = await openPeerTest(context, source, altered, { sound: found.sound, signal });
  const peers = matched.matches.filter(mayBePeers);
  const confirmed = await confirm(
    attempt,
    candidates,
    matched.matches.filter((each) => !peers.includes(each)),
  );
  if (confirmed === "unanswered") return confirmed;
  const { matches } = confirmed;
  let files = [...matched.files, ...[...peers, ...confirmed.refuted].map(({ file }) => file)];
  // A resource that its row gives up may be another file's by now.
  const givenUpBy = (pairs: readonly Pair[]): AcknowledgedFile[] =>
    pairs.flatMap(({ file }) => {
      const row = file.hasOther ? (candidateRows.get(file.path) ?? changed.get(file.path)) : undefined;
      return row !== undefined && found.altered.has(row.id) ? [row] : [];
    });
  const releasing: AcknowledgedFile[] = [];
  for (let next = givenUpBy(matches); next.length > 0;) {
    releasing.push(...next);
    const released = next.flatMap(({ id }) => found.altered.get(id) ?? []);
    const others = await matchEach(attempt, candidates, files, released);
    if (others === "unanswered") return others;
    const taken = await confirm(attempt, candidates, others.matches);
    if (taken === "unanswered") return taken;
    matches.push(...taken.matches);
    files = [...others.files, ...taken.refuted.map(({ file }) => file)];
    next = givenUpBy(taken.matches);
  }
  const isUnowned = new Set(found.unowned);
  const resources = [...matched.resources, ...peers.map(({ resource }) => resource)];
  const docIds = new Set(matches.map(({ resource }) => resource.docId));
  return {
    matches,
    files,
    resources: resources.filter((each) => isUnowned.has(each)),
    former: new Map(goneRows.filter(({ docId }) => docIds.has(docId)).map((row) => [row.docId, row.id])),
    released: releasing.filter(({ docId }) => !docIds.has(docId)),
  };
}

type Pair = Match<AdoptionCandidate, AdoptableResource>;

/**
 * Matches files with resources. Where the list shows more equal resources than there are files, those that the service
 * denies are left out: a list also shows deleted ones. Returns "unanswered" if the service does not answer for one.
 */
async function matchEach(
  attempt: Attempt,
  { candidateRows, retained, isFirst }: Candidates,
  files: readonly AdoptionCandidate[],
  resources: readonly AdoptableResource[],
): Promise<Matches<AdoptionCandidate, AdoptableResource> | "unanswered"> {
  const { context, found, whole, signal } = attempt;
  const hostsFile = (url: string): boolean => context.remote.hostsFile(url);
  const hashes = await hashUploads(context, uploadGroups(files, resources, hostsFile), signal);
  const match = (listed: readonly AdoptableResource[]) =>
    matchFiles(files, listed, hashes, {
      fits,
      isRetained: (label) => retained.has(label),
      // A former ledger made its resources before this one began or was restored, and before this one made the row's own.
      isTooYoung: ({ path }, { createdMs }) =>
        !whole &&
        createdMs !== undefined &&
        createdMs >
          Math.min((isFirst ? candidateRows.get(path)?.storedMs : undefined) ?? Infinity, found.forgottenMs),
    });
  /** Whether the service has a resource, by its id. */
  const isThere = new Map<string, boolean>();
  for (;;) {
    const matched = match(resources.filter(({ docId }) => isThere.get(docId) !== false));
    const asked = matched.matches.filter(
      ({ hasSpare, resource }) => hasSpare && !isThere.has(resource.docId),
    );
    if (asked.length === 0) return matched;
    for (const { file, resource } of asked) {
      const presence = await askPresence(context, { ...resource, title: file.title }, signal);
      if (presence === "unanswered" && !attempt.isAgreedTo) return presence;
      isThere.set(resource.docId, presence !== "gone");
    }
  }
}

/** Queries each resource in whose favour a row's own will be deleted: a list also shows deleted ones. */
async function confirm(
  { context, isAgreedTo, signal }: Attempt,
  { candidateRows }: Candidates,
  pairs: readonly Pair[],
): Promise<{ readonly matches: Pair[]; readonly refuted: readonly Pair[] } | "unanswered"> {
  const matches: Pair[] = [];
  const refuted: Pair[] = [];
  for (const pair of pairs) {
    const { file, resource } = pair;
    const isInstead = file.hasOther || candidateRows.has(file.path);
    const asked = { ...resource, title: file.title };
    const presence = isInstead ? await askPresence(context, asked, signal) : "there";
    if (presence === "unanswered" && !isAgreedTo) return "unanswered";
    (presence === "there" ? matches : refuted).push(pair);
  }
  return { matches, refuted };
}

/** Reports whether a row's resource was made as the file would be now: with the same chunks, in the same scope. */
function isShapedAs(
  { ledger }: ActionContext,
  { id }: AcknowledgedFile,
  { observed }: AdoptionCandidate,
): boolean {
  const row = ledger.files.get(id);
  return row !== undefined && sameShape(row.shape, observed.shape);
}

/** Reports whether a resource holds what the file does. The service may store its title in a form of its own. */
async function holds(
  { remote }: ActionContext,
  listed: AdoptableResource,
  file: AdoptionCandidate,
  signal: AbortSignal,
): Promise<boolean> {
  const { kind, label, digest, hash, url, sizeBytes } = file;
  const resource = { ...listed, label: labelsOfFiles([file], [listed])(listed) };
  if (kind !== "file") {
    const stored = { storedDigest: null, storedLabel: null };
    const row = { state: "agreed", kind, label, digest, fileUrl: url ?? null, ...stored } as const;
    return alterationsOf(row, resource).length === 0;
  }
  if (resource.isUnfinished === true) return false;
  if (resource.label !== label || resource.url === undefined || !remote.hostsFile(resource.url)) return false;
  return (await hashUpload(remote, resource.url, sizeBytes, signal)) === hash;
}

/** Reports whether a resource has the chunk settings that the file's would have. */
export function fits({ observed }: AdoptionCandidate, { settings }: AdoptableResource): boolean {
  return hasSettings(observed.shape, settings);
}

/** Returns what was observed of a file with the address and the metadata that its resource has. */
export function asListed(observed: Observed, { url, metadataHash }: ListedResource): Observed {
  return { ...withListedMetadata(observed, metadataHash), fileUrl: url ?? observed.fileUrl };
}

/** Returns how the service stores a file's resource: its title and description if they have another form, and since when. */
export function storedOf(observed: Observed, resource: ListedResource): Stored {
  return {
    ...storedAs(resource.label, observed),
    ...(resource.updatedMs !== undefined && { atMs: resource.updatedMs }),
  };
}
