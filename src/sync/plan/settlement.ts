import type { Settings } from "../../wire/primitives.ts";
import { normalizedAddress } from "./address.ts";
import { hasSettings } from "./decide.ts";
import { indexTitles } from "./resemblance.ts";
import {
  type CandidateResource,
  type OpenCreate,
  createKey,
  sharedKey,
  isSameText,
  isSameKind,
  isSameDescription,
  uniqueKey,
  byAge,
  isExact,
  isUnready,
} from "./create-likeness.ts";

/** Settles creates whose answer never came: decides which resources of the collection are theirs. Pure. */

export interface Adoption {
  readonly id: number;
  readonly docId: string;
  /** Whether it is what was sent, and searchable. If not, the file must be sent again. */
  readonly exact: boolean;
  /** Whether it has our description, or our upload's address. Others may make a resource with our title and text. */
  readonly described: boolean;
  /** Title and description as the list shows them. */
  readonly label: string;
  /** When the service made it, by the service's clock. */
  readonly createdMs?: number | undefined;
  /** Its settings, where they differ from those that were sent: an attempt left before they changed. */
  readonly settings?: Partial<Settings> | undefined;
  /** The part of its document that the service could not read. */
  readonly warning?: string | undefined;
  /** Hash of its metadata, if the list shows some. */
  readonly metadataHash?: string;
}

export interface Settlement {
  readonly adopted: readonly Adoption[];
  /** Second resources that our own attempts made. They are deleted only after the first one has been confirmed. */
  readonly extra: readonly Adoption[];
  /** Creates that may have made a resource whose text is unknown until the service has processed it. */
  readonly queued: readonly number[];
  /** Creates of which the list shows no resource. */
  readonly absent: readonly number[];
}

/** How far our clock and the service's may differ beyond the offset that its Date header shows (in whole seconds). */
export const CLOCK_SLACK_MS = 5000;

/** Collects a list's resources one by one, and settles the creates at its end. */
export interface Settling {
  /** Reports whether a resource may be one of ours, so that its digest is worth computing. */
  interested(resource: { readonly url: string | undefined; readonly title: string }): boolean;
  see(resource: CandidateResource): void;
  /** `clockOffsetMs` is the service's clock minus ours now. */
  finish(clockOffsetMs: number, forms?: StoredForms): Settlement;
}

/** The parts that the service stores in a form of its own, so that a different one may be ours. Default: none. */
export interface StoredForms {
  readonly texts?: boolean;
  readonly descriptions?: boolean;
}

/**
 * Starts a settlement. The list may be stale, each resource by itself: it may lack new resources and show deleted ones.
 * `isTaken` reports that a row of the ledger owns a resource or that this ledger deleted it; such a resource is never
 * adopted and never deleted.
 *
 * A resource is ours when it has our upload's address, which nobody else knows; or when it was made after the intent,
 * its title may be what the service made of ours, and text (for a link: address) and description are equal. One of the
 * two is enough where the list does not show the other or the service stores it in a form of its own. Otherwise the
 * resource is somebody else's, who may use our titles. A resource that was made after the intent only if our clock
 * differed then must have our description. No more resources are taken than attempts were made.
 */
export function startSettling(creates: readonly OpenCreate[], isTaken: (docId: string) => boolean): Settling {
  const groups = Map.groupBy(creates, createKey);
  const urls = new Set(creates.filter(({ unique }) => unique).map(({ url }) => normalizedAddress(url)));
  const titles = indexTitles(
    creates.filter(({ unique }) => !unique),
    ({ title }) => title,
  );
  const seen = new Map<string, CandidateResource[]>();
  /** A resource may appear twice, on two pages of a list that grows meanwhile. The second one is not an extra. */
  const counted = new Set<string>();

  /** Finds the creates that may have made a resource, first by its text, then by its description. */
  const keyLike = (resource: CandidateResource): string | undefined => {
    const exact = sharedKey(resource);
    if (groups.has(exact)) return exact;
    const like = titles.find(resource.title);
    // A resource with another text must be known not to be older.
    const isDated = resource.createdMs !== undefined;
    const create =
      like.find((each) => isSameText(each, resource)) ??
      like.find((each) => isDated && isSameKind(each, resource) && isSameDescription(each, resource));
    return create && sharedKey(create);
  };

  return {
    interested: ({ url, title }) =>
      (url !== undefined && urls.has(normalizedAddress(url))) || titles.find(title).length > 0,
    see: (resource) => {
      const unique = resource.url === undefined ? undefined : uniqueKey(resource.url);
      const key = unique !== undefined && groups.has(unique) ? unique : keyLike(resource);
      if (key === undefined || counted.has(resource.docId)) return;
      counted.add(resource.docId);
      seen.set(key, [...(seen.get(key) ?? []), resource]);
    },
    finish: (clockOffsetMs, forms = {}) => {
      const adopted: Adoption[] = [];
      const extra: Adoption[] = [];
      const queued: number[] = [];
      const absent: number[] = [];
      for (const [key, group] of groups) {
        // Our clock may have been set between the last answer and the intent, so either offset may be the right one.
        const sinceMs = (pick: typeof Math.min): number =>
          Math.min(
            ...group.map((each) => each.atMs + pick(each.clockOffsetMs ?? clockOffsetMs, clockOffsetMs)),
          );
        const earliestMs = sinceMs(Math.min);
        const latestMs = sinceMs(Math.max);
        const isYoung = (resource: CandidateResource): boolean => {
          const { createdMs = Infinity } = resource;
          if (createdMs >= latestMs - CLOCK_SLACK_MS) return true;
          const isOurs = group.some((create) => isSameDescription(create, resource));
          return isOurs && createdMs >= earliestMs - CLOCK_SLACK_MS;
        };
        /** A former ledger may have made a resource within the slack. Those that were certainly made since come first. */
        const isSince = ({ createdMs = Infinity }: CandidateResource): boolean => createdMs >= latestMs;
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
          .sort((a, b) => Number(isSince(b)) - Number(isSince(a)) || byAge(a, b));
        settleGroup(group, { candidates, all, isSince }, forms, { adopted, extra, queued, absent });
      }
      return { adopted, extra, queued, absent };
    },
  };
}

function settleGroup(
  group: readonly OpenCreate[],
  {
    candidates,
    all,
    isSince,
  }: {
    readonly candidates: CandidateResource[];
    readonly all: readonly CandidateResource[];
    /** Reports whether a resource was certainly made after the creates were planned. */
    readonly isSince: (resource: CandidateResource) => boolean;
  },
  forms: StoredForms,
  out: { adopted: Adoption[]; extra: Adoption[]; queued: number[]; absent: number[] },
): void {
  const open = group.filter(({ answered }) => !answered).sort((a, b) => a.id - b.id);
  const sentAgain = group.filter((create) => create.answered && create.attempts > 1);
  /**
   * A resource with the description of an equal create that was sent again is most likely a second one of that create.
   */
  const isOther = (create: OpenCreate, resource: CandidateResource): boolean =>
    !isSameDescription(create, resource) && sentAgain.some((each) => isSameDescription(each, resource));
  const mayBeOurs = (create: OpenCreate, resource: CandidateResource): boolean =>
    create.unique ||
    isSameDescription(create, resource) ||
    (isSameText(create, resource) && (forms.descriptions === true || resource.isDescriptionHidden === true));
  const take = (create: OpenCreate, fits: Fits): boolean => {
    const index = candidates.findIndex((resource) => fits(create, resource) && !isOther(create, resource));
    const [resource] = index === -1 ? [] : candidates.splice(index, 1);
    if (resource !== undefined) out.adopted.push(adoptionOf(create, resource));
    return resource !== undefined;
  };
  const choices: readonly Fits[] = [
    (create, resource) => isSince(resource) && isExact(create, resource),
    (create, resource) => isSince(resource) && isUnready(create, resource),
    isExact,
    mayBeOurs,
  ];
  const absent = choices.reduce((left, fits) => left.filter((create) => !take(create, fits)), open);
  for (const { id } of absent) out.absent.push(id);

  // The remaining resources can be ours only as far as there were attempts that nothing accounts for yet.
  const adoptedHere = open.length - absent.length;
  const answeredHere = group.length - open.length;
  const attempts = group.reduce((sum, create) => sum + create.attempts, 0);
  const byId = group.toSorted((a, b) => a.id - b.id);
  const owner = byId.find(({ answered }) => answered) ?? byId[0];
  /** Creates of the group have the same title and text. The description decides which of them a resource belongs to. */
  const describing = (resource: CandidateResource): OpenCreate | undefined =>
    byId.find((create) => isSameDescription(create, resource));
  // A resource with another text is a second one only if the first was stored in the same form.
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
  // The sort is stable: otherwise equal resources stay in order of age.
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

type Fits = (create: OpenCreate, resource: CandidateResource) => boolean;

function adoptionOf(create: OpenCreate, resource: CandidateResource): Adoption {
  const { docId, label, createdMs, settings, warning, metadataHash } = resource;
  const exact = isExact(create, resource);
  const described = create.unique || isSameDescription(create, resource);
  return {
    id: create.id,
    docId,
    exact,
    described,
    label,
    ...(createdMs !== undefined && { createdMs }),
    ...(!hasSettings(create, settings) && { settings }),
    ...(warning !== undefined && { warning }),
    ...(metadataHash !== undefined && { metadataHash }),
  };
}
