import type { LedgerFile, ScanEntry, Shape } from "../../plan/model.ts";
import type { Shapes } from "./shapes.ts";

/** The ledger's record of a file when the service acknowledged it, or when a request is about to leave. */
export interface Observed {
  readonly entry: ScanEntry;
  readonly rulesKey: number;
  readonly hash: string;
  readonly digest: string;
  readonly title: string;
  readonly label: string;
  readonly extractorVersion: number;
  readonly shape: Shape;
  readonly fileUrl: string | undefined;
  /** Hash of the metadata, as `hashMetadata` gives it; absent if the service takes none. */
  readonly metadataHash?: string;
}

/** Returns what a row says about its file. */
export function observedOf(
  row: Omit<Observed, "entry" | "shape" | "fileUrl" | "metadataHash"> &
    ScanEntry &
    Pick<LedgerFile, "fileUrl" | "metadataHash">,
  shape: Shape,
): Observed {
  const { path, sizeBytes, mtimeMs, ctimeMs, ino } = row;
  const { rulesKey, hash, digest, title, label, extractorVersion } = row;
  return {
    entry: { path, sizeBytes, mtimeMs, ctimeMs, ino },
    rulesKey,
    hash,
    digest,
    title,
    label,
    extractorVersion,
    shape,
    fileUrl: row.fileUrl ?? undefined,
    ...(row.metadataHash !== null && { metadataHash: row.metadataHash }),
  };
}

/** How a service stored what it acknowledged, as far as it shows. */
export interface Stored {
  /** Label of title and description, if it stores other ones. */
  readonly label?: string;
  /** Digest of the text, if it stores another one. */
  readonly digest?: string;
  /** When it last changed the resource, by its clock. */
  readonly atMs?: number;
}

/** Returns the values of the columns from size_bytes to metadata_hash, in the order of the statements. */
export function observedColumns(
  observed: Observed,
  shapes: Shapes,
): readonly (string | number | undefined)[] {
  const { entry } = observed;
  return [
    entry.sizeBytes,
    entry.mtimeMs,
    entry.ctimeMs,
    entry.ino,
    observed.rulesKey,
    observed.hash,
    observed.digest,
    observed.title,
    observed.label,
    observed.extractorVersion,
    shapes.idOf(observed.shape),
    observed.fileUrl,
    observed.metadataHash,
  ];
}
