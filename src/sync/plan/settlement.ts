import type { Settings } from "../../wire/primitives.ts";
import { spelledAddress } from "./address.ts";
import { hasSettings } from "./decide.ts";
import type { ListedResource } from "./model.ts";
import { indexTitles } from "./resemblance.ts";

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
  readonly settings: Settings;
}

/** A listed resource that a create may have made. */
export interface CandidateResource extends ListedResource {
  /** The label that it would have under another title: equal where the description is. Default: its own. */
  readonly labelUnder?: (title: string) => string;
  /** The list does not show its description. Default: it does. */
  readonly isDescriptionHidden?: boolean;
  /** The list does not show its text. Default: it does. */
  readonly isTextHidden?: boolean;
  /** The service is still working on it. Default: it is not. */
  readonly isQueued?: boolean;
}

export interface Adoption {
  readonly id: number;
  readonly docId: string;
  /** Whether it is what was sent, and searchable; if not, the file is to be sent again. */
  readonly exact: boolean;
  /** Whether it has our description, or our upload's address: others may make a resource of our title and text. */
  readonly described: boolean;
  /** Title and description as the list shows them. */
  readonly label: string;
  /** Other settings than those that were sent: those of an attempt from before they were changed. */
  readonly settings?: Partial<Settings> | undefined;
  /** What of its document the service could not read. */
  readonly warning?: string | undefined;
}

export interface Settlement {
  readonly adopted: readonly Adoption[];
  /** Second resources that our own attempts made. They go only when the first has answered for itself. */
  readonly extra: readonly Adoption[];
  /** Creates that may have made a resource whose text is not known before the service has taken it in. */
  readonly queued: readonly number[];
  /** Creates of which the list shows nothing. */
  readonly absent: readonly number[];
}

/** How far our clock and the service's may differ beyond what its Date header told (which is in whole seconds). */
export const CLOCK_SLACK_MS = 5000;

/** Gathers a list's resources, one by one, and settles the creates at its end. */
export interface Settling {
  /** Whether a resource may be one of ours, so that its digest is worth computing. */
  interested(resource: { readonly url: string | undefined; readonly title: string }): boolean;
  see(resource: CandidateResource): void;
  /** `clockOffsetMs` is the service's clock minus ours, the least that may hold; `mostOffsetMs` the most, by default the same. */
  finish(clockOffsetMs: number, forms?: StoredForms, mostOffsetMs?: number): Settlement;
}

/** What the service is known to store in a form of its own, so that another one may be ours. Default: nothing. */
export interface StoredForms {
  readonly texts?: boolean;
  readonly descriptions?: boolean;
}

/**
 * Starts to settle. The list may be stale, each resource of it by itself: it may miss new ones, and show deleted ones.
 * `isTaken` says that a row of the ledger owns a resource, or that this ledger deleted it: it is never adopted and never
 * deleted. A resource is ours when its upload address is (nobody else knows it), or when it was made after the intent, its
 * title may be what the service made of ours, and text (for a link: address) and description are equal. One of the two is
 * enough where the list does not show the other, or the service stores it in a form of its own: otherwise it is somebody
 * else's, who may use our titles. One that was made after the intent only if our clock was another then must have our
 * description. No more resources are taken than attempts were made.
 */
export function startSettling(creates: readonly OpenCreate[], isTaken: (docId: string) => boolean): Settling {
  const groups = Map.groupBy(creates, keyOf);
  const urls = new Set(creates.filter(({ unique }) => unique).map(({ url }) => spelledAddress(url)));
  const titles = indexTitles(
    creates.filter(({ unique }) => !unique),
    ({ title }) => title,
  );
  const seen = new Map<string, CandidateResource[]>();
  /** A resource may come twice, on two pages of a list that grows meanwhile: the second one is no extra. */
  const counted = new Set<string>();

  /** The creates that a resource may be of: those of its text first, then those of its description. */
  const keyLike = (resource: CandidateResource): string | undefined => {
    const exact = sharedKey(resource);
    if (groups.has(exact)) return exact;
    const like = titles.find(resource.title);
    // Of one with another text it must be known that it is not older.
    const isDated = resource.createdMs !== undefined;
    const create =
      like.find((each) => isSameText(each, resource)) ??
      like.find((each) => isDated && isSameKind(each, resource) && isSameDescription(each, resource));
    return create && sharedKey(create);
  };

  return {
    interested: ({ url, title }) =>
      (url !== undefined && urls.has(spelledAddress(url))) || titles.find(title).length > 0,
    see: (resource) => {
      const unique = resource.url === undefined ? undefined : uniqueKey(resource.url);
      const key = unique !== undefined && groups.has(unique) ? unique : keyLike(resource);
      if (key === undefined || counted.has(resource.docId)) return;
      counted.add(resource.docId);
      seen.set(key, [...(seen.get(key) ?? []), resource]);
    },
    finish: (clockOffsetMs, forms = {}, mostOffsetMs = clockOffsetMs) => {
      const adopted: Adoption[] = [];
      const extra: Adoption[] = [];
      const queued: number[] = [];
      const absent: number[] = [];
      for (const [key, group] of groups) {
        const sinceMs = Math.min(...group.map(({ atMs }) => atMs)) - CLOCK_SLACK_MS;
        const isYoung = (resource: CandidateResource): boolean => {
          const { createdMs = Infinity } = resource;
          if (createdMs >= sinceMs + mostOffsetMs) return true;
          const isOurs = group.some((create) => isSameDescription(create, resource));
          return isOurs && createdMs >= sinceMs + clockOffsetMs;
        };
        /** One of a former ledger may have been made within the slack: one that was surely made since comes first. */
        const isBefore = ({ createdMs = Infinity }: CandidateResource): number =>
          Number(createdMs < sinceMs + CLOCK_SLACK_MS + clockOffsetMs);
        const unique = group[0]?.unique === true;
        const all = (seen.get(key) ?? []).filter(
          (resource) =>
            unique ||
            forms.texts === true ||
            resource.isTextHidden === true ||
            group.some((create) => isSameText(create, resource)),
        );
        const candidates = all
          .filter(({ docId }) => !isTaken(docId))
          .filter((resource) => unique || isYoung(resource))
          .sort((a, b) => isBefore(a) - isBefore(b) || byAge(a, b));
        settleGroup(group, candidates, all, forms, { adopted, extra, queued, absent });
      }
      return { adopted, extra, queued, absent };
    },
  };
}

function settleGroup(
  group: readonly OpenCreate[],
  candidates: CandidateResource[],
  all: readonly CandidateResource[],
  forms: StoredForms,
  out: { adopted: Adoption[]; extra: Adoption[]; queued: number[]; absent: number[] },
): void {
  const open = group.filter(({ answered }) => !answered).sort((a, b) => a.id - b.id);
  const sentAgain = group.filter((create) => create.answered && create.attempts > 1);
  /** What has the description of an equal create that was sent again is most likely a second one of that. */
  const isOther = (create: OpenCreate, resource: CandidateResource): boolean =>
    !isSameDescription(create, resource) && sentAgain.some((each) => isSameDescription(each, resource));
  const mayBeOurs = (create: OpenCreate, resource: CandidateResource): boolean =>
    create.unique ||
    isSameDescription(create, resource) ||
    (isSameText(create, resource) && (forms.descriptions === true || resource.isDescriptionHidden === true));
  const take = (create: OpenCreate, exact: boolean): boolean => {
    const fits = exact ? isExact : mayBeOurs;
    const index = candidates.findIndex((resource) => fits(create, resource) && !isOther(create, resource));
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
  /** Creates of the group have the same title and text: the description decides which of them a resource belongs to. */
  const describing = (resource: CandidateResource): OpenCreate | undefined =>
    byId.find((create) => isSameDescription(create, resource));
  // One whose text is not ours is a second one only if the first was stored just so.
  const isSecond = (resource: CandidateResource): boolean =>
    owner !== undefined &&
    (owner.unique ||
      isSameText(owner, resource) ||
      all.some(
        ({ docId, label, digest }) =>
          docId !== resource.docId && label === resource.label && digest === resource.digest,
      ));
  const unexplained = Math.max(0, attempts - adoptedHere - answeredHere);
  const isDescribed = (resource: CandidateResource): number => Number(describing(resource) !== undefined);
  // The sort is stable: by age among those that are alike in this.
  const surplus = candidates
    .filter(isSecond)
    .filter((resource) => answeredHere > 0 || byId.some((create) => mayBeOurs(create, resource)))
    .sort((a, b) => isDescribed(b) - isDescribed(a))
    .slice(0, unexplained);
  const isOpen = ({ isQueued, isTextHidden }: CandidateResource): boolean =>
    isQueued === true && isTextHidden === true;
  if (surplus.length < unexplained && candidates.some((each) => isOpen(each) && !surplus.includes(each)))
    out.queued.push(...byId.map(({ id }) => id));
  for (const resource of surplus) {
    const create = describing(resource) ?? owner;
    if (create !== undefined) out.extra.push(adoptionOf(create, resource));
  }
}

function isExact(create: OpenCreate, resource: CandidateResource): boolean {
  if (resource.isUnfinished === true || !isSameDescription(create, resource)) return false;
  if (!hasSettings(create, resource.settings)) return false;
  if (resource.label === create.label) return create.unique || isSameText(create, resource);
  const isSameTitle = indexTitles([create], ({ title }) => title).find(resource.title).length > 0;
  return isSameTitle && (create.unique || isSameText(create, resource));
}

function isSameText(create: OpenCreate, resource: CandidateResource): boolean {
  return isSameKind(create, resource) && resource.digest === create.digest;
}

/** Both have a text, or the same address. */
function isSameKind(create: OpenCreate, { url }: CandidateResource): boolean {
  return spelledAddress(url) === spelledAddress(create.url);
}

function isSameDescription(
  create: OpenCreate,
  { label, labelUnder = () => label }: CandidateResource,
): boolean {
  return labelUnder(create.title) === create.label;
}

function adoptionOf(create: OpenCreate, resource: CandidateResource): Adoption {
  const { docId, label, settings, warning } = resource;
  const exact = isExact(create, resource);
  const described = create.unique || isSameDescription(create, resource);
  return {
    id: create.id,
    docId,
    exact,
    described,
    label,
    ...(!hasSettings(create, settings) && { settings }),
    ...(warning !== undefined && { warning }),
  };
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

function byAge(a: CandidateResource, b: CandidateResource): number {
  return (a.createdMs ?? 0) - (b.createdMs ?? 0) || (a.docId < b.docId ? -1 : 1);
}
