import { spelledAddress } from "./address.ts";

/** Settling creates whose answer never came: which resources of the collection are theirs. Pure. */

/** A create that may have reached the service. */
export interface OpenCreate {
  readonly id: number;
  /** When the intent was written, by our clock. */
  readonly atMs: number;
  /** How often the create was sent at most. */
  readonly attempts: number;
  /** An earlier attempt was sent again and answered since: it may only have left an extra resource. */
  readonly answered: boolean;
  /** The address that the resource has: of an upload unique, of a link not. */
  readonly url: string | undefined;
  readonly unique: boolean;
  readonly title: string;
  /** Digest of the text; empty where the resource has an address. */
  readonly digest: string;
  /** Stands for title and description together. */
  readonly label: string;
}

/** A resource of the list, reduced to what is compared. */
export interface ListedResource {
  readonly docId: string;
  readonly createdMs: number | undefined;
  readonly url: string | undefined;
  readonly title: string;
  readonly digest: string;
  readonly label: string;
  /** The service has not taken in its text, or not yet. Default: it has. */
  readonly isUnfinished?: boolean;
  /** What of its document the service could not read. */
  readonly warning?: string | undefined;
}

export interface Adoption {
  readonly id: number;
  readonly docId: string;
  /** Whether it is what was sent, and searchable; if not, the file is to be sent again. */
  readonly exact: boolean;
  /** What of its document the service could not read. */
  readonly warning?: string | undefined;
}

export interface Settlement {
  readonly adopted: readonly Adoption[];
  /** Second resources that our own attempts made. They go only when the first has answered for itself. */
  readonly extra: readonly Adoption[];
  /** Creates of which the list shows nothing. */
  readonly absent: readonly number[];
}

/** How far our clock and the service's may differ beyond what its Date header told (which is in whole seconds). */
export const CLOCK_SLACK_MS = 5000;

/** Gathers a list's resources, one by one, and settles the creates at its end. */
export interface Settling {
  /** Whether a resource may be one of ours, so that its digest is worth computing. */
  interested(resource: { readonly url: string | undefined; readonly title: string }): boolean;
  see(resource: ListedResource): void;
  finish(clockOffsetMs: number): Settlement;
}

/**
 * Starts to settle. The list may be stale, each resource of it by itself: it may miss new ones, and show deleted ones.
 * `isTaken` says that a row of the ledger owns a resource, or that this ledger deleted it: it is never adopted and never
 * deleted. A resource is ours when its upload address is (nobody else knows it), or when title and content (for a link:
 * title and address) are equal and it was made after the intent. No more resources are taken than attempts were made.
 */
export function startSettling(creates: readonly OpenCreate[], isTaken: (docId: string) => boolean): Settling {
  const groups = Map.groupBy(creates, keyOf);
  const urls = new Set(creates.filter(({ unique }) => unique).map(({ url }) => spelledAddress(url)));
  const titles = new Set(creates.filter(({ unique }) => !unique).map(({ title }) => title));
  const seen = new Map<string, ListedResource[]>();
  /** A resource may come twice, on two pages of a list that grows meanwhile: the second one is no extra. */
  const counted = new Set<string>();

  return {
    interested: ({ url, title }) => (url !== undefined && urls.has(spelledAddress(url))) || titles.has(title),
    see: (resource) => {
      const unique = resource.url === undefined ? undefined : uniqueKey(resource.url);
      const key = unique !== undefined && groups.has(unique) ? unique : sharedKey(resource);
      if (!groups.has(key) || counted.has(resource.docId)) return;
      counted.add(resource.docId);
      seen.set(key, [...(seen.get(key) ?? []), resource]);
    },
    finish: (clockOffsetMs) => {
      const adopted: Adoption[] = [];
      const extra: Adoption[] = [];
      const absent: number[] = [];
      for (const [key, group] of groups) {
        const earliest = Math.min(...group.map(({ atMs }) => atMs)) + clockOffsetMs - CLOCK_SLACK_MS;
        const candidates = (seen.get(key) ?? [])
          .filter(({ docId }) => !isTaken(docId))
          .filter(
            ({ createdMs }) => group[0]?.unique === true || createdMs === undefined || createdMs >= earliest,
          )
          .sort(byAge);
        settleGroup(group, candidates, { adopted, extra, absent });
      }
      return { adopted, extra, absent };
    },
  };
}

function settleGroup(
  group: readonly OpenCreate[],
  candidates: ListedResource[],
  out: { adopted: Adoption[]; extra: Adoption[]; absent: number[] },
): void {
  const open = group.filter(({ answered }) => !answered).sort((a, b) => a.id - b.id);
  const take = (create: OpenCreate, exact: boolean): boolean => {
    const index = candidates.findIndex((resource) => !exact || isExact(create, resource));
    const [resource] = index === -1 ? [] : candidates.splice(index, 1);
    if (resource !== undefined) out.adopted.push(adoptionOf(create, resource));
    return resource !== undefined;
  };
  const inexact = open.filter((create) => !take(create, true));
  const absent = inexact.filter((create) => !take(create, false));
  for (const { id } of absent) out.absent.push(id);

  // What is left can only be ours as far as attempts were made that nothing answers for yet.
  const adoptedHere = open.length - absent.length;
  const answeredHere = group.length - open.length;
  const attempts = group.reduce((sum, create) => sum + create.attempts, 0);
  const byId = group.toSorted((a, b) => a.id - b.id);
  const owner = byId.find(({ answered }) => answered) ?? byId[0];
  const surplus = candidates.slice(0, Math.max(0, attempts - adoptedHere - answeredHere));
  if (owner !== undefined) out.extra.push(...surplus.map((resource) => adoptionOf(owner, resource)));
}

function isExact(create: OpenCreate, { label, isUnfinished }: ListedResource): boolean {
  return label === create.label && isUnfinished !== true;
}

function adoptionOf(create: OpenCreate, resource: ListedResource): Adoption {
  const { docId, warning } = resource;
  const exact = isExact(create, resource);
  return { id: create.id, docId, exact, ...(warning !== undefined && { warning }) };
}

function keyOf(create: OpenCreate): string {
  if (!create.unique) return sharedKey(create);
  // Without the address of its upload a create has not left: no resource can be its.
  return create.url === undefined ? `n\n${create.id}` : uniqueKey(create.url);
}

function uniqueKey(url: string): string {
  return `u\n${spelledAddress(url) ?? ""}`;
}

function sharedKey(resource: { title: string; url: string | undefined; digest: string }): string {
  return `s\n${resource.title}\n${spelledAddress(resource.url) ?? ""}\n${resource.digest}`;
}

function byAge(a: ListedResource, b: ListedResource): number {
  return (a.createdMs ?? 0) - (b.createdMs ?? 0) || (a.docId < b.docId ? -1 : 1);
}
