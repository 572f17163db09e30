import type { Settings } from "../../wire/primitives.ts";
import { normalizedAddress } from "./address.ts";
import { hasSettings } from "./decide.ts";
import type { ListedResource } from "./model.ts";
import { indexTitles } from "./resemblance.ts";

/** A create that may have reached the service. */
export interface OpenCreate {
  readonly id: number;
  /** When the intent was written, by our clock. */
  readonly atMs: number;
  /** The service's clock minus ours at that time. Default: as now. Either clock may have been set since. */
  readonly clockOffsetMs?: number | undefined;
  /** Upper bound on how often the create was sent. */
  readonly attempts: number;
  /** An earlier attempt was repeated and has been answered since, so this one can only have left an extra resource. */
  readonly answered: boolean;
  /** The address of the resource: unique for an upload, not for a link. */
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
  /** The label it would have under another title. It is equal where the description is. Default: its own. */
  readonly labelUnder?: (title: string) => string;
  /** The list does not show its description. Default: it does. */
  readonly isDescriptionHidden?: boolean;
  /** The list does not show its text. Default: it does. */
  readonly isTextHidden?: boolean;
  /** The service is still working on it. Default: it is not. */
  readonly isQueued?: boolean;
}

/** Reports whether the service is still working on what may be exactly a create's resource then. */
export function isUnready(create: OpenCreate, resource: CandidateResource): boolean {
  const isHidden = resource.isUnfinished === true && resource.isTextHidden === true;
  return isHidden && isSameDescription(create, resource);
}

/** Reports whether a resource is what the create sent, and searchable. */
export function isExact(create: OpenCreate, resource: CandidateResource): boolean {
  if (resource.isUnfinished === true || !isSameDescription(create, resource)) return false;
  if (!hasSettings(create, resource.settings)) return false;
  if (resource.label === create.label) return create.unique || isSameText(create, resource);
  const isSameTitle = indexTitles([create], ({ title }) => title).find(resource.title).length > 0;
  return isSameTitle && (create.unique || isSameText(create, resource));
}

/** Both have the same text, or the same address. */
export function isSameText(create: OpenCreate, resource: CandidateResource): boolean {
  return isSameKind(create, resource) && resource.digest === create.digest;
}

/** Both have a text, or both have the same address. */
export function isSameKind(create: OpenCreate, { url }: CandidateResource): boolean {
  return normalizedAddress(url) === normalizedAddress(create.url);
}

/** Reports whether title and description are those of the create, whatever the service made of its title. */
export function isSameDescription(
  create: OpenCreate,
  { label, labelUnder = () => label }: CandidateResource,
): boolean {
  return labelUnder(create.title) === create.label;
}

/** Returns the key under which the resources of a create are collected. Equal creates share one. */
export function createKey(create: OpenCreate): string {
  if (!create.unique) return sharedKey(create);
  // A create without the address of its upload has not been sent: no resource can be its own.
  return create.url === undefined ? `n\n${create.id}` : uniqueKey(create.url);
}

/** Returns the key of an upload, whose address nobody else has. */
export function uniqueKey(url: string): string {
  return `u\n${normalizedAddress(url) ?? ""}`;
}

/** Returns the key of what has this title, address and text. */
export function sharedKey(resource: { title: string; url: string | undefined; digest: string }): string {
  return `s\n${resource.title}\n${normalizedAddress(resource.url) ?? ""}\n${resource.digest}`;
}

/** Orders resources from the oldest to the newest. */
export function byAge(a: CandidateResource, b: CandidateResource): number {
  return (a.createdMs ?? 0) - (b.createdMs ?? 0) || (a.docId < b.docId ? -1 : 1);
}
