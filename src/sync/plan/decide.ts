import type { Settings } from "../../wire/primitives.ts";
import type { ActionKind, LedgerFile, Shape } from "./model.ts";

/** A file as it was read, as far as deciding needs. */
export interface ReadFacts {
  readonly hash: string;
  readonly title: string;
  readonly label: string;
  readonly extractorVersion: number;
  readonly shape: Shape;
}

/**
 * What a file that was read needs, given its row. `moved` says that the row was at another path before. A `move` with
 * unchanged names and a `touch` send nothing.
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
  return hasSameNames(read, row) ? "touch" : "retitle";
}

/** Hash of what the service has of a row's file as an upload; undefined where it has none, or that is not sure. */
export function uploadedHash(
  row: Pick<LedgerFile, "state" | "shape" | "hash"> | undefined,
): string | undefined {
  return row?.state === "agreed" && row.shape.kind === "file" ? row.hash : undefined;
}

/** Whether title and description are the same. Labels are equal however letters are composed; files' names are not. */
export function hasSameNames(
  read: Pick<ReadFacts, "title" | "label">,
  row: Pick<LedgerFile, "title" | "label">,
): boolean {
  return read.label === row.label && read.title === row.title;
}

/**
 * An unsure row may stand for the old bytes or the new. A file is uploaded as its bytes are, so another extractor
 * changes only what is read out of it.
 */
function contentDiffers(read: ReadFacts, row: LedgerFile): boolean {
  if (row.state === "unsure" || read.hash !== row.hash) return true;
  return read.shape.kind === "content" && read.extractorVersion !== row.extractorVersion;
}

/** Whether a resource of one shape can become one of the other by an update. */
export function sameShape(a: Shape, b: Shape): boolean {
  return a.kind === b.kind && a.tier === b.tier && a.ownerId === b.ownerId && hasSettings(a, b.settings);
}

/** Whether settings are those of a shape, as far as they are known: a service may leave them out of its list. */
export function hasSettings({ settings }: Pick<Shape, "settings">, found: Partial<Settings> = {}): boolean {
  const { strategy, chunkSize, chunkOverlap } = { ...settings, ...found };
  return (
    strategy === settings.strategy &&
    chunkSize === settings.chunkSize &&
    chunkOverlap === settings.chunkOverlap
  );
}
