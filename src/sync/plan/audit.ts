import { normalizedAddress } from "./address.ts";
import type { DocumentKind, FileState, ListedResource } from "./model.ts";

/** Compares what the ledger says was acknowledged with what the service lists. Pure. */

/** The ledger's facts about a file's resource. */
export interface Acknowledged {
  readonly state: FileState;
  readonly kind: DocumentKind;
  /** Digest of the text; empty where the resource has an address. */
  readonly digest: string;
  /** Stands for title and description together. */
  readonly label: string;
  readonly fileUrl: string | null;
  /** How the service stores text, and title with description, where it stores another form of them; otherwise null. */
  readonly storedDigest: string | null;
  readonly storedLabel: string | null;
  /** When the service last changed the resource, by its clock. Default: unknown. */
  readonly storedMs?: number | null;
  /** Hash of the metadata that it acknowledged. Default: none. */
  readonly metadataHash?: string | null;
}

export type Alteration = "text" | "title or description" | "address" | "metadata";

/** Returns what differs between a row and its resource. A row that is not in agreement does not say what to expect. */
export function alterationsOf(row: Acknowledged, listed: ListedResource): readonly Alteration[] {
  if (row.state !== "agreed") return [];
  const found: Alteration[] = [];
  if (row.kind === "content") {
    // A text that the service stores in its own form was not altered by anybody.
    if (!isOneOf(listed.digest, listed.plainDigest, row.digest, row.storedDigest)) found.push("text");
  } else if (normalizedAddress(row.fileUrl) !== normalizedAddress(listed.url)) found.push("address");
  else if (listed.isUnfinished === true) found.push("text");
  if (!isOneOf(listed.label, listed.plainLabel, row.label, row.storedLabel))
    found.push("title or description");
  if (isOtherMetadata(row, listed)) found.push("metadata");
  return found;
}

/** A service may add metadata of its own. That is no alteration while nobody changed the resource. */
function isOtherMetadata(
  { metadataHash = null, storedMs = null }: Acknowledged,
  listed: ListedResource,
): boolean {
  if (metadataHash === null || listed.metadataHash === undefined) return false;
  return listed.metadataHash !== metadataHash && !isAsStored(storedMs, listed);
}

function isOneOf(found: string, plain: string | undefined, sent: string, stored: string | null): boolean {
  return found === sent || found === stored || plain === sent;
}

/**
 * Reports whether nobody changed a resource since the service stored what was sent. A service may store a text in an
 * unforeseen form and not show it in its answer to a create.
 */
export function isAsStored(
  storedMs: number | null,
  { updatedMs }: Pick<ListedResource, "updatedMs">,
): boolean {
  return storedMs !== null && storedMs === updatedMs;
}

/** How the resources of one source compare. */
export interface DriftCounts {
  /** Rows in agreement that were compared. */
  readonly acknowledged: number;
  /** Compared rows whose resource the service no longer has. */
  readonly missing: number;
  /** Compared rows whose resource has other content at the service. */
  readonly altered: number;
  /** Altered resources that nobody changed since they were sent: the service stores them in a form of its own. */
  readonly asStored?: number;
}

/** Nothing was compared. */
export const NO_COUNTS: DriftCounts = { acknowledged: 0, missing: 0, altered: 0 };

/** Fewer than this are sent again without asking: whatever happened, that costs little. */
export const LOSS_FILES_MIN = 5;

/**
 * Explains to a person why a source's resources must not simply be sent again; undefined when they may. If most of them
 * are gone or changed at once, that is not drift: the service was reset or restored from a backup, perhaps by mistake
 * and not for long. A source that `isHeld` for this stays held until all but a few are back, because resources sent
 * just before may have been counted since.
 */
export function lossReason(
  { acknowledged, missing, altered: differing, asStored = 0 }: DriftCounts,
  isHeld = false,
): string | undefined {
  const altered = differing - asStored;
  const isMost = isHeld || 2 * (missing + altered) > acknowledged;
  if (missing + altered < LOSS_FILES_MIN || !isMost) return undefined;
  const of = ` of ${thousands(acknowledged)} resources`;
  const lost = `has lost ${thousands(missing)}`;
  const changed = `holds another version of ${thousands(altered)}`;
  if (altered === 0) return `the service ${lost}${of}; was it reset, or restored from a backup?`;
  if (missing === 0) return `the service ${changed}${of}; was it restored from an old backup?`;
  return `the service ${lost} and ${changed}${of}; was it restored from an old backup?`;
}

function thousands(count: number): string {
  return count.toLocaleString("en-US");
}

/** Why an unowned resource is ours, or seems to be. */
export type Claim =
  /** It has the address of one of our uploads, which nobody else knows. */
  | "upload"
  /** It equals one of ours. It may be another machine's, or a second one that a lost answer left. */
  | "twin"
  /** We deleted it, and it exists again. */
  | "deleted";

/** Collects resources that no row owns while the list streams by. Rows then claim those that are ours. */
export interface Unowned {
  /** `isDeleted`: the activity log says that we deleted this one. */
  add(resource: ListedResource, isDeleted: boolean): void;
  /** Shows a row, which claims the resources with its address or its content. */
  show(row: Acknowledged & { readonly docId: string }): void;
  /**
   * Returns resources that a former ledger may have made from a row's file, oldest first: equal to the row's own, made
   * before `boundMs`, and not deleted by this ledger. For uploads it returns those with its title and description,
   * whose bytes must decide.
   */
  olderThan(row: Acknowledged & { readonly docId: string }, boundMs: number): readonly ListedResource[];
  /**
   * Returns the result. `bornMs` is when the ledger began, by the service's clock: an older resource cannot be a second
   * one of ours, however equal it is. `isInFlight` reports whether a create in flight may have made a resource.
   */
  finish(bornMs: number, isInFlight: (resource: ListedResource) => boolean): Claims;
}

export interface Claims {
  readonly claimed: readonly Claimed[];
  /** Resources that nothing claims, and the first of them by title. */
  readonly foreign: { readonly count: number; readonly first: readonly ListedResource[] };
}

export interface Claimed {
  readonly resource: ListedResource;
  readonly claim: Claim;
  /** The resource that it duplicates. */
  readonly by: string | undefined;
}

/**
 * Number of unowned resources that are remembered individually. Later ones count as foreign: ours are few, and others
 * may have a million.
 */
export const UNOWNED_MAX = 10_000;
/** Number of foreign resources that are named. */
const FOREIGN_NAMED = 20;

/** Starts an empty collection. */
export function gatherUnowned(): Unowned {
  const remembered = new Map<
    string,
    { readonly resource: ListedResource; readonly isDeleted: boolean; claim?: Claim; by?: string }
  >();
  const byAddress = new Map<string, string[]>();
  const byText = new Map<string, string[]>();
  const uploads = new Map<string, string[]>();
  let beyond = 0;

  const push = (map: Map<string, string[]>, key: string, docId: string): void => {
    const list = map.get(key);
    if (list === undefined) map.set(key, [docId]);
    else list.push(docId);
  };
  const claim = (docIds: readonly string[] | undefined, how: Claim, by: string): void => {
    for (const docId of docIds ?? []) {
      const found = remembered.get(docId);
      if (found !== undefined && found.claim !== "upload")
        remembered.set(docId, { ...found, claim: how, by });
    }
  };

  return {
    add: (resource, isDeleted) => {
      const { docId, url } = resource;
      if (remembered.has(docId)) return;
      if (remembered.size >= UNOWNED_MAX) {
        beyond += 1;
        return;
      }
      remembered.set(docId, { resource, isDeleted, ...(isDeleted && { claim: "deleted" as const }) });
      if (url !== undefined) push(byAddress, normalizedAddress(url) ?? "", docId);
      push(byText, textKey(resource.label, url, resource.digest), docId);
      if (url !== undefined) push(uploads, resource.label, docId);
    },
    show: (row) => {
      // Two uploads of one file have two addresses, so the list does not show that they are equal.
      if (row.kind === "file")
        claim(byAddress.get(normalizedAddress(row.fileUrl) ?? ""), "upload", row.docId);
      else for (const key of textKeysOf(row)) claim(byText.get(key), "twin", row.docId);
    },
    olderThan: (row, boundMs) => {
      const found = (map: Map<string, string[]>, keys: readonly string[]): readonly string[] =>
        [...new Set(keys)].flatMap((key) => map.get(key) ?? []);
      const docIds =
        row.kind === "file"
          ? found(uploads, [row.label, row.storedLabel ?? row.label])
          : found(byText, textKeysOf(row));
      return docIds
        .flatMap((docId) => {
          const each = remembered.get(docId);
          return each === undefined || each.isDeleted ? [] : each.resource;
        })
        .filter(({ createdMs = Infinity }) => createdMs < boundMs)
        .toSorted((a, b) => (a.createdMs ?? 0) - (b.createdMs ?? 0));
    },
    finish: (bornMs, isInFlight) => {
      const claimed: Claimed[] = [];
      const foreign: ListedResource[] = [];
      for (const { resource, claim: how, by } of remembered.values()) {
        if (isInFlight(resource)) continue;
        const isOlder = resource.createdMs === undefined || resource.createdMs < bornMs;
        if (how === undefined || (how === "twin" && isOlder)) foreign.push(resource);
        else claimed.push({ resource, claim: how, by });
      }
      const first = foreign.toSorted((a, b) => (a.title < b.title ? -1 : 1)).slice(0, FOREIGN_NAMED);
      return { claimed, foreign: { count: foreign.length + beyond, first } };
    },
  };
}

/** The text that a duplicate of a row's resource would have: it is stored in the same way as the first. */
function textKeysOf({ label, digest, fileUrl, storedLabel, storedDigest }: Acknowledged): readonly string[] {
  return [textKey(label, fileUrl, digest), textKey(storedLabel ?? label, fileUrl, storedDigest ?? digest)];
}

/** Returns a key that is equal for resources that read the same. */
export function textKey(label: string, url: string | null | undefined, digest: string): string {
  return `${label}\n${normalizedAddress(url) ?? ""}\n${digest}`;
}
