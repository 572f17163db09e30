import type { Settings } from "../../wire/primitives.ts";
import { hasSameBytes } from "./versions.ts";
import type { ActionKind, LedgerFile, Shape } from "./model.ts";

/** The facts of a read file that `decide` needs. */
export interface ReadFacts {
  readonly hash: string;
  readonly title: string;
  readonly label: string;
  readonly extractorVersion: number;
  readonly shape: Shape;
  /** Absent if the service takes no metadata. */
  readonly metadataHash?: string;
}

/**
 * Decides which action a file that was read needs, given its row. `moved`: the row was at another path before. A
 * `touch` sends nothing. A `move` and a `retitle` send what is not the text: title, description and metadata.
 */
export function decide(
  read: ReadFacts,
  row: LedgerFile | undefined,
  moved: boolean,
): Exclude<ActionKind, "delete"> {
  if (row === undefined || row.docId === null) return "create";
  if (!sameShape(read.shape, row.shape)) return "replace";
  if (contentDiffers(read, row)) return "update";
  if (moved) return "move";
  return hasSameNames(read, row) && hasSameMetadata(read, row) ? "touch" : "retitle";
}

/**
 * Returns the hash of the upload that the service has for a row's file; undefined where it has none or that is
 * uncertain.
 */
export function uploadedHash(
  row: Pick<LedgerFile, "state" | "shape" | "hash"> | undefined,
): string | undefined {
  return row?.state === "agreed" && row.shape.kind === "file" ? row.hash : undefined;
}

/** Reports whether title and description are the same. Labels are equal however letters are composed; titles are not. */
function hasSameNames(
  read: Pick<ReadFacts, "title" | "label">,
  row: Pick<LedgerFile, "title" | "label">,
): boolean {
  return read.label === row.label && read.title === row.title;
}

/** Reports whether the service has the metadata, or takes none. */
function hasSameMetadata(
  { metadataHash }: Pick<ReadFacts, "metadataHash">,
  row: Pick<LedgerFile, "metadataHash">,
): boolean {
  return metadataHash === undefined || metadataHash === row.metadataHash;
}

/**
 * An unsure row may stand for the old bytes or the new. A file is uploaded as its bytes are, so another extractor
 * changes only what is read from it.
 */
function contentDiffers(read: ReadFacts, row: LedgerFile): boolean {
  if (row.state === "unsure" || !hasSameBytes(read, row)) return true;
  // A tag stands for the version of the extractor, too.
  if (row.extractorVersion === 0) return false;
  return read.shape.kind === "content" && read.extractorVersion !== row.extractorVersion;
}

/** Reports whether an update can turn a resource of one shape into the other. */
export function sameShape(a: Shape, b: Shape): boolean {
  return (
    a.kind === b.kind && a.tier === b.tier && a.ownerId === b.ownerId && sameSettings(a.settings, b.settings)
  );
}

function sameSettings(a: Settings, b: Settings): boolean {
  return a.strategy === b.strategy && a.chunkSize === b.chunkSize && a.chunkOverlap === b.chunkOverlap;
}
