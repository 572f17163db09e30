import { thousands } from "../../lib/counted.ts";
import type { DocumentKind, FileState, ListedResource } from "./model.ts";

/** The ledger's facts about a file's resource. */
export interface Acknowledged {
  readonly state: FileState;
  readonly shape: { readonly kind: DocumentKind };
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

/**
 * Returns what differs between a row and its resource. A row that is not in agreement does not say what to expect; of a file that
 * is gone, only a text that was sent and its title count. `isMarked`: the resource's marker names the row's file and version.
 */
export function alterationsOf(
  row: Acknowledged,
  listed: ListedResource,
  isMarked: boolean,
): readonly Alteration[] {
  const isGone = row.state === "held" && row.digest !== "";
  if (row.state !== "agreed" && !isGone) return [];
  const found: Alteration[] = [];
  if (row.shape.kind === "content") {
    // A text that the service stores in its own form was not altered by anybody.
    if (listed.digest !== row.digest && listed.digest !== row.storedDigest) found.push("text");
  } else if (isOtherAddress(row, listed, isMarked)) found.push("address");
  else if (listed.isUnfinished === true) found.push("text");
  // No title that was sent is empty: the list does not show it.
  const isNamed = listed.title !== "";
  if (isNamed && listed.label !== row.label && listed.label !== row.storedLabel)
    found.push("title or description");
  if (!isGone && isOtherMetadata(row, listed)) found.push("metadata");
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

/** A service may give an upload another address with each list, and its marker shows which version it is. */
function isOtherAddress(
  { shape, fileUrl }: Acknowledged,
  { url }: ListedResource,
  isMarked: boolean,
): boolean {
  if (url === undefined || fileUrl === null || (shape.kind === "file" && isMarked)) return false;
  return hrefOf(fileUrl) !== hrefOf(url);
}

/** Returns an address as an HTTP library writes it. */
function hrefOf(url: string): string {
  return URL.parse(url)?.href ?? url;
}

/** How the resources of one source compare. */
interface DriftCounts {
  /** Rows in agreement that were compared. */
  readonly acknowledged: number;
  /** Compared rows whose resource the service no longer has. */
  readonly missing: number;
  /** Compared rows whose resource has other content at the service. */
  readonly altered: number;
}

/** Fewer than this are sent again without asking: whatever happened, that costs little. */
export const LOSS_FILES_MIN = 5;

/**
 * Explains to a person why a source's resources must not simply be sent again; undefined when they may. If most of them
 * are gone or changed at once, that is not drift: the service was reset or restored from a backup, perhaps by mistake
 * and not for long.
 */
export function lossReason({ acknowledged, missing, altered }: DriftCounts): string | undefined {
  const isMost = 2 * (missing + altered) > acknowledged;
  if (missing + altered < LOSS_FILES_MIN || !isMost) return undefined;
  const of = ` of ${thousands(acknowledged)} resources`;
  const lost = `has lost ${thousands(missing)}`;
  const changed = `holds another version of ${thousands(altered)}`;
  if (altered === 0) return `the service ${lost}${of}; was it reset, or restored from a backup?`;
  if (missing === 0) return `the service ${changed}${of}; was it restored from an old backup?`;
  return `the service ${lost} and ${changed}${of}; was it restored from an old backup?`;
}
