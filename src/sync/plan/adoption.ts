import { spelledAddress } from "./address.ts";
import { sameness } from "./audit.ts";
import { indexTitles } from "./resemblance.ts";
import type { DocumentKind, ListedResource, RelativePath } from "./model.ts";
import { CLOCK_SLACK_MS } from "./settlement.ts";

/**
 * Finding the resources of files when the ledger that knew them is lost. Pure. A file and a resource belong together
 * when whatever is sent of the file is there already; or when nothing else bears its title and description. A title alone
 * is no proof.
 */

/** The service's clock is known from the `Date` of its answers. */
const DATE_STEP_MS = 1000;
/** More parts than this are joined to the folders above them. */
export const UNSEARCHED_MAX = 100;

/**
 * Parts of a folder whose files must still look for their resources: those of `unread` at or below a part of `before`, as
 * few as name them all, without any below another. "" is the whole folder.
 */
export function unsearchedParts(
  unread: readonly RelativePath[],
  before: readonly RelativePath[],
): readonly RelativePath[] {
  const within = unread.flatMap((path) =>
    isWithin(path, before) ? [path] : before.filter((part) => isWithin(part, [path])),
  );
  let parts = outermost(within);
  while (parts.length > UNSEARCHED_MAX) {
    const depth = Math.max(...parts.map(depthOf));
    parts = outermost(parts.map((path) => (depthOf(path) === depth ? folderOf(path) : path)));
  }
  return parts;
}

/** Whether a path is at or below one of the parts. */
export function isWithin(path: RelativePath, parts: readonly RelativePath[]): boolean {
  return parts.some((part) => part === "" || path === part || path.startsWith(`${part}/`));
}

function outermost(paths: readonly RelativePath[]): readonly RelativePath[] {
  const all = new Set(paths);
  const isBelowAnother = (path: RelativePath): boolean => {
    for (let at = path; at !== "";) {
      at = folderOf(at);
      if (all.has(at)) return true;
    }
    return false;
  };
  return [...all].filter((path) => !isBelowAnother(path));
}

function depthOf(path: RelativePath): number {
  return path === "" ? 0 : path.split("/").length;
}

function folderOf(path: RelativePath): RelativePath {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** A file as it was read, without a resource or with one that it may have left. */
export interface AdoptingFile {
  readonly path: RelativePath;
  /** It has a resource: only one that is just as the file is to be sent takes that one's place. */
  readonly hasOther: boolean;
  readonly kind: DocumentKind;
  readonly title: string;
  /** Stands for the description alone. */
  readonly topic: string;
  /** Stands for title and description together. */
  readonly label: string;
  /** Digest of the text; empty where the resource has an address. */
  readonly digest: string;
  /** The address, of a link. */
  readonly url: string | undefined;
  /** SHA-256 of the bytes, hex. */
  readonly hash: string;
}

/** A resource that no row owns. */
export interface AdoptableResource extends ListedResource {
  /** Stands for the description alone. */
  readonly topic: string;
}

export interface Match<F extends AdoptingFile, R extends AdoptableResource> {
  readonly file: F;
  readonly resource: R;
  /** Whether the service has what the file holds; if not, the file is to be sent to that resource. */
  readonly exact: boolean;
}

/**
 * The label of each resource as files bear it: a service may keep a title in a form of its own, such as cut. Then the file
 * is the one of the same description whose title it may be.
 */
export function labelsOfFiles(
  files: readonly AdoptingFile[],
  resources: readonly AdoptableResource[],
): (resource: AdoptableResource) => string {
  const borne = new Set(files.map(({ label }) => label));
  const byTopic = Map.groupBy(files, ({ topic }) => topic);
  const found = new Map<string, string>();
  for (const { docId, title, topic, label } of resources) {
    const like = borne.has(label)
      ? []
      : indexTitles(byTopic.get(topic) ?? [], (file) => file.title).find(title);
    const labels = new Set(like.map((file) => file.label));
    const [only] = labels;
    if (only !== undefined && labels.size === 1) found.set(docId, only);
  }
  return ({ docId, label }) => found.get(docId) ?? label;
}

/** Who belongs to whom, and what is left of both. */
export interface Matches<F extends AdoptingFile, R extends AdoptableResource> {
  readonly matches: readonly Match<F, R>[];
  readonly files: readonly F[];
  readonly resources: readonly R[];
}

/** Uploads of one title and description: only their bytes tell which is which. */
export interface UploadGroup<F extends AdoptingFile, R extends AdoptableResource> {
  readonly files: readonly F[];
  readonly resources: readonly R[];
}

/**
 * Uploaded files and the resources that may be theirs, by title and description. `hostsFile` says that an address is one
 * of the service's own.
 */
export function uploadGroups<F extends AdoptingFile, R extends AdoptableResource>(
  files: readonly F[],
  resources: readonly R[],
  hostsFile: (url: string) => boolean,
): UploadGroup<F, R>[] {
  const uploads = resources.filter(({ url }) => url !== undefined && hostsFile(url));
  const byLabel = Map.groupBy(uploads, labelsOfFiles(files, uploads));
  return [...Map.groupBy(files.filter(isUpload), ({ label }) => label)].flatMap(([label, group]) => {
    const candidates = byLabel.get(label);
    return candidates === undefined ? [] : [{ files: group, resources: candidates }];
  });
}

/**
 * Matches files with resources. `hashes` are those of uploads' bytes by resource, as far as they were fetched. Of several
 * that are equal as many are paired as there are files, the oldest first; but those first that `fits` says need not be
 * replaced. `isBorne` says that a file that is not among these has that title and description, and a resource; `isTooYoung` that
 * a resource cannot be one that a former ledger made: then only an equal one is taken.
 */
export function matchFiles<F extends AdoptingFile, R extends AdoptableResource>(
  files: readonly F[],
  resources: readonly R[],
  hashes: ReadonlyMap<string, string>,
  {
    fits = () => true,
    isBorne = () => false,
    isTooYoung = () => false,
  }: {
    readonly fits?: (file: F, resource: R) => boolean;
    readonly isBorne?: (label: string) => boolean;
    readonly isTooYoung?: (file: F, resource: R) => boolean;
  } = {},
): Matches<F, R> {
  const matches: Match<F, R>[] = [];
  const taken = new Set<string>();
  const labelOf = labelsOfFiles(files, resources);
  const byContent = Map.groupBy(resources.toSorted(byAge), (resource) =>
    contentKey({ ...resource, label: labelOf(resource) }, hashes),
  );
  const left: F[] = [];
  for (const file of files.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    const equal = byContent.get(fileKey(file)) ?? [];
    const fitting = equal.findIndex((each) => fits(file, each));
    const [resource] = fitting === -1 && file.hasOther ? [] : equal.splice(Math.max(0, fitting), 1);
    if (resource === undefined) left.push(file);
    else {
      taken.add(resource.docId);
      matches.push({ file, resource, exact: true });
    }
  }
  // By title and description only where these name one file and one resource of all, the matched ones included.
  const labelled = Map.groupBy(files, ({ label }) => label);
  const bearing = Map.groupBy(resources, labelOf);
  const rest: F[] = [];
  for (const file of left) {
    const [resource, ...others] = bearing.get(file.label) ?? [];
    const isOnly =
      others.length === 0 &&
      !file.hasOther &&
      labelled.get(file.label)?.length === 1 &&
      !isBorne(file.label) &&
      (resource === undefined || !isTooYoung(file, resource));
    if (resource === undefined || !isOnly || taken.has(resource.docId) || !isSameSort(file, resource)) {
      rest.push(file);
      continue;
    }
    taken.add(resource.docId);
    matches.push({ file, resource, exact: false });
  }
  return { matches, files: rest, resources: resources.filter(({ docId }) => !taken.has(docId)) };
}

/**
 * Whether two lists of one place, one after the other, show the same resources. What was made since `sinceMs`, by the
 * service's clock, may be in one of them only.
 */
export function listsAgree(
  first: readonly AdoptableResource[],
  second: readonly AdoptableResource[],
  sinceMs: number,
): boolean {
  const isOlder = ({ createdMs }: AdoptableResource): boolean =>
    createdMs === undefined || createdMs < sinceMs + DATE_STEP_MS;
  const idsOf = (list: readonly AdoptableResource[]): Set<string> =>
    new Set(list.filter(isOlder).map(({ docId }) => docId));
  const [before, after] = [idsOf(first), idsOf(second)];
  return before.size === after.size && [...before].every((docId) => after.has(docId));
}

/** A create that has no answer yet. */
export interface TravellingCreate {
  /** When its intent was written, by our clock. */
  readonly atMs: number;
  readonly attempts: number;
  readonly label: string;
  readonly digest: string;
  readonly url: string | undefined;
  /** Its address is that of an upload, which no other resource has. */
  readonly isUpload: boolean;
}

/**
 * Resources without those that creates may just have made: of equal ones the newest, as many as
 * attempts were made, and none from before the first of them. `clockOffsetMs` is the service's clock minus ours.
 */
export function leaveTravelling<R extends AdoptableResource>(
  resources: readonly R[],
  creates: readonly TravellingCreate[],
  clockOffsetMs: number,
): readonly R[] {
  if (creates.length === 0) return resources;
  const keyOf = (address: string | undefined, same: string): string =>
    address !== undefined && uploads.has(address) ? `u\n${address}` : `s\n${same}`;
  const uploads = new Set(
    creates.flatMap((create) => (create.isUpload ? (spelledAddress(create.url) ?? []) : [])),
  );
  const travelling = Map.groupBy(creates, ({ label, url, digest }) =>
    keyOf(spelledAddress(url), sameness(label, url, digest)),
  );
  /** The text of one that the service still works on is another, or none: its title and description tell whose it is. */
  const hiddenKey = ({ label, url, isUnfinished }: AdoptableResource): string | undefined => {
    const create =
      isUnfinished === true && url === undefined
        ? creates.find((each) => each.url === undefined && each.label === label)
        : undefined;
    return create && keyOf(undefined, sameness(label, undefined, create.digest));
  };
  const left = new Set<string>();
  const groups = Map.groupBy(resources, (resource) => {
    const key = keyOf(spelledAddress(resource.url), sameness(resource.label, resource.url, resource.digest));
    return travelling.has(key) ? key : (hiddenKey(resource) ?? key);
  });
  for (const [key, group] of groups) {
    const made = travelling.get(key) ?? [];
    const attempts = made.reduce((sum, create) => sum + create.attempts, 0);
    const sinceMs = Math.min(...made.map(({ atMs }) => atMs)) + clockOffsetMs - CLOCK_SLACK_MS;
    const newest = group
      .filter(({ createdMs }) => createdMs === undefined || createdMs >= sinceMs)
      .toSorted((a, b) => byAge(b, a));
    for (const { docId } of newest.slice(0, attempts)) left.add(docId);
  }
  return resources.filter(({ docId }) => !left.has(docId));
}

/** An update can turn a text into another text and an address into another address, but not one into the other. */
function isSameSort(file: AdoptingFile, { url }: AdoptableResource): boolean {
  return (file.kind === "content") === (url === undefined);
}

function isUpload({ kind }: AdoptingFile): boolean {
  return kind === "file";
}

function fileKey({ kind, label, digest, url, hash }: AdoptingFile): string {
  return kind === "file" ? `${label}\n#${hash}` : sameness(label, url, digest);
}

function contentKey(
  { docId, label, digest, url }: AdoptableResource,
  hashes: ReadonlyMap<string, string>,
): string {
  const hash = hashes.get(docId);
  return hash === undefined ? sameness(label, url, digest) : `${label}\n#${hash}`;
}

function byAge(a: AdoptableResource, b: AdoptableResource): number {
  return (a.createdMs ?? 0) - (b.createdMs ?? 0) || (a.docId < b.docId ? -1 : 1);
}
