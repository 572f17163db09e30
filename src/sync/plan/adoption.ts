import { normalizedAddress } from "./address.ts";
import { textKey } from "./audit.ts";
import { indexTitles } from "./resemblance.ts";
import type { DocumentKind, ListedResource, RelativePath } from "./model.ts";
import { CLOCK_SLACK_MS } from "./settlement.ts";

/**
 * Finds the resources of files after the ledger that knew them is lost. Pure. A file and a resource match when the
 * service already has everything that would be sent of the file, or when no other has their title and description. A
 * title alone proves nothing.
 */

/** Resolution of the service's clock: it is known from the `Date` header of its answers. */
const DATE_STEP_MS = 1000;

/** A file that was read and has no resource, or has one that it may give up. */
export interface AdoptingFile {
  readonly path: RelativePath;
  /** The file has a resource. Only a resource that equals what would be sent replaces that one. */
  readonly hasOther: boolean;
  readonly kind: DocumentKind;
  readonly title: string;
  /** Stands for the description alone. */
  readonly topic: string;
  /** Stands for title and description together. */
  readonly label: string;
  /** Digest of the text; empty where the resource has an address. */
  readonly digest: string;
  /** The address of a link. */
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
  /** Whether the service has what the file holds. If not, the file must be sent to that resource. */
  readonly exact: boolean;
  /** The list shows equal resources that no file takes. */
  readonly hasSpare: boolean;
}

/**
 * Returns the label of each resource in the spelling of the files. A service may store a title in a form of its own,
 * for example cut. Then the file is the one with the same description whose title it may be.
 */
export function labelsOfFiles(
  files: readonly Pick<AdoptingFile, "title" | "topic" | "label">[],
  resources: readonly AdoptableResource[],
): (resource: AdoptableResource) => string {
  const retained = new Set(files.map(({ label }) => label));
  const byTopic = Map.groupBy(files, ({ topic }) => topic);
  const found = new Map<string, string>();
  for (const { docId, title, topic, label } of resources) {
    const like = retained.has(label)
      ? []
      : indexTitles(byTopic.get(topic) ?? [], (file) => file.title).find(title);
    const labels = new Set(like.map((file) => file.label));
    const [only] = labels;
    if (only !== undefined && labels.size === 1) found.set(docId, only);
  }
  return ({ docId, label }) => found.get(docId) ?? label;
}

/** The matched pairs, and the files and resources without a partner. */
export interface Matches<F extends AdoptingFile, R extends AdoptableResource> {
  readonly matches: readonly Match<F, R>[];
  readonly files: readonly F[];
  readonly resources: readonly R[];
}

/** Uploads with the same title and description: only their bytes distinguish them. */
export interface UploadGroup<F extends AdoptingFile, R extends AdoptableResource> {
  readonly files: readonly F[];
  readonly resources: readonly R[];
}

/**
 * Groups uploaded files with the resources that may be theirs, by title and description. `hostsFile` reports whether an
 * address belongs to the service itself.
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
 * Matches files with resources. `hashes` holds the hashes of the uploads that were fetched, by resource. Equal
 * resources are paired with as many files as there are, oldest first, but those that `fits` accepts (they need not be
 * replaced) come before all others. `isRetained` reports whether another file with a resource has that title and
 * description. `isTooYoung` reports that a former ledger cannot have made a resource: then only an equal one matches.
 */
export function matchFiles<F extends AdoptingFile, R extends AdoptableResource>(
  files: readonly F[],
  resources: readonly R[],
  hashes: ReadonlyMap<string, string>,
  {
    fits = () => true,
    isRetained = () => false,
    isTooYoung = () => false,
  }: {
    readonly fits?: (file: F, resource: R) => boolean;
    readonly isRetained?: (label: string) => boolean;
    readonly isTooYoung?: (file: F, resource: R) => boolean;
  } = {},
): Matches<F, R> {
  const exact: (Pick<Match<F, R>, "file" | "resource"> & { readonly left: readonly R[] })[] = [];
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
      exact.push({ file, resource, left: equal });
    }
  }
  const matches: Match<F, R>[] = exact.map(({ file, resource, left: { length } }) => {
    return { file, resource, exact: true, hasSpare: length > 0 };
  });
  // Title and description match only where they identify one file and one resource among all, including those already
  // matched.
  const labelled = Map.groupBy(files, ({ label }) => label);
  const bearing = Map.groupBy(resources, labelOf);
  const rest: F[] = [];
  for (const file of left) {
    const [resource, ...others] = bearing.get(file.label) ?? [];
    const isOnly =
      others.length === 0 &&
      !file.hasOther &&
      labelled.get(file.label)?.length === 1 &&
      !isRetained(file.label) &&
      (resource === undefined || !isTooYoung(file, resource));
    if (resource === undefined || !isOnly || taken.has(resource.docId) || !isSameSort(file, resource)) {
      rest.push(file);
      continue;
    }
    taken.add(resource.docId);
    matches.push({ file, resource, exact: false, hasSpare: false });
  }
  return { matches, files: rest, resources: resources.filter(({ docId }) => !taken.has(docId)) };
}

/**
 * Reports whether two successive lists of one scope show the same resources. A resource made since `sinceMs`, by the
 * service's clock, may be in only one of them.
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

/** A create in flight. */
export interface InFlightCreate {
  /** When its intent was written, by our clock. */
  readonly atMs: number;
  /** The service's clock minus ours at that time. Default: as now. */
  readonly clockOffsetMs?: number | undefined;
  readonly attempts: number;
  readonly label: string;
  readonly digest: string;
  readonly url: string | undefined;
  /** The address is that of an upload, which no other resource has. */
  readonly isUpload: boolean;
}

/**
 * Removes resources that creates in flight may just have made: of equal ones the newest, as many as there were
 * attempts, and none from before the first attempt. `clockOffsetMs` is the service's clock minus ours now.
 */
export function withoutInFlight<R extends AdoptableResource>(
  resources: readonly R[],
  creates: readonly InFlightCreate[],
  clockOffsetMs: number,
): readonly R[] {
  if (creates.length === 0) return resources;
  const keyOf = (address: string | undefined, same: string): string =>
    address !== undefined && uploads.has(address) ? `u\n${address}` : `s\n${same}`;
  const uploads = new Set(
    creates.flatMap((create) => (create.isUpload ? (normalizedAddress(create.url) ?? []) : [])),
  );
  const inFlight = Map.groupBy(creates, ({ label, url, digest }) =>
    keyOf(normalizedAddress(url), textKey(label, url, digest)),
  );
  /**
   * A resource that the service is still processing shows another text or none. Its title and description identify it.
   */
  const hiddenKey = ({ label, url, isUnfinished }: AdoptableResource): string | undefined => {
    const create =
      isUnfinished === true && url === undefined
        ? creates.find((each) => each.url === undefined && each.label === label)
        : undefined;
    return create && keyOf(undefined, textKey(label, undefined, create.digest));
  };
  const left = new Set<string>();
  const groups = Map.groupBy(resources, (resource) => {
    const key = keyOf(
      normalizedAddress(resource.url),
      textKey(resource.label, resource.url, resource.digest),
    );
    return inFlight.has(key) ? key : (hiddenKey(resource) ?? key);
  });
  for (const [key, group] of groups) {
    const made = inFlight.get(key) ?? [];
    const attempts = made.reduce((sum, create) => sum + create.attempts, 0);
    const sinceMs = Math.min(
      ...made.map((each) => each.atMs + Math.min(each.clockOffsetMs ?? clockOffsetMs, clockOffsetMs)),
    );
    const newest = group
      .filter(({ createdMs }) => createdMs === undefined || createdMs >= sinceMs - CLOCK_SLACK_MS)
      .toSorted((a, b) => byAge(b, a));
    for (const { docId } of newest.slice(0, attempts)) left.add(docId);
  }
  return resources.filter(({ docId }) => !left.has(docId));
}

/** An update can replace a text by a text and an address by an address, but not one by the other. */
function isSameSort(file: AdoptingFile, { url }: AdoptableResource): boolean {
  return (file.kind === "content") === (url === undefined);
}

function isUpload({ kind }: AdoptingFile): boolean {
  return kind === "file";
}

function fileKey({ kind, label, digest, url, hash }: AdoptingFile): string {
  return kind === "file" ? `${label}\n#${hash}` : textKey(label, url, digest);
}

function contentKey(
  { docId, label, digest, url }: AdoptableResource,
  hashes: ReadonlyMap<string, string>,
): string {
  const hash = hashes.get(docId);
  return hash === undefined ? textKey(label, url, digest) : `${label}\n#${hash}`;
}

function byAge(a: AdoptableResource, b: AdoptableResource): number {
  return (a.createdMs ?? 0) - (b.createdMs ?? 0) || (a.docId < b.docId ? -1 : 1);
}
