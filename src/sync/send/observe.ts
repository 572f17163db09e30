import { hash } from "node:crypto";
import type { UserMetadata } from "../../wire/metadata.ts";
import { composed, DIGEST_CHARS, digestOf } from "../../formats/digest.ts";
import { NO_FIELDS, readFields } from "../../formats/fields.ts";
import { composeMetadata, hashMetadata } from "../../formats/metadata.ts";
import type { SourceDocument } from "../scan/read/outcome.ts";
import type { Observed, Stored } from "../ledger/files/observed.ts";
import { racyUntilMs } from "../plan/file-times.ts";
import { bytesTag, fileTag, markedDescription, type Signature } from "../plan/marker.ts";
import type { AnsweredRecord } from "./remote/resource-requests.ts";
import type { Rules } from "../scan/rules/rules.ts";

/** Returns a key for title and description together, however a service composes their letters. */
export function labelOf(title: string, description: string): string {
  return hash("sha256", `${composed(title)}\0${composed(description)}`, "base64url").slice(0, DIGEST_CHARS);
}

/** Returns how the service stored what was sent, as far as its answer shows and it differs. */
export function storedOf(record: AnsweredRecord, { label, digest, shape }: Observed): Stored {
  const { title, description, content } = record;
  const atMs = Date.parse(record.updatedAt ?? "");
  const stored = isGiven(title) && isGiven(description) ? labelOf(title, description) : label;
  const text = shape.kind === "content" && isGiven(content) ? digestOf(content) : digest;
  return {
    ...(stored !== label && { label: stored }),
    ...(text !== digest && { digest: text }),
    ...(!Number.isNaN(atMs) && { atMs }),
  };
}

/** The same for a list that shows title and description. */
export function storedAs(listedLabel: string, { label }: Observed): Stored {
  return listedLabel === label ? {} : { label: listedLabel };
}

/** Reports whether an answer shows a field. One that is always sent with a value is empty where the answer omits it. */
export function isGiven(text: string | null | undefined): text is string {
  return text !== undefined && text !== null && text !== "";
}

/** Returns a document whose description ends with the marker of its file and version. */
export function withMarker(document: SourceDocument, signature: Signature): SourceDocument {
  const { entry, hash: sha256, recipe } = document;
  const marker = {
    ...signature,
    file: fileTag(entry.path),
    bytes: bytesTag(sha256, recipe.extractorVersion),
  };
  return { ...document, recipe: { ...recipe, description: markedDescription(recipe.description, marker) } };
}

/**
 * Returns what the ledger records about a document once the service acknowledged it. `readAtMs`: when reading began, by
 * the system's clock. If its times do not yet distinguish a later write, the next check reads it again.
 */
export function observe(
  document: SourceDocument,
  rulesKey: number,
  readAtMs: number,
  metadata?: UserMetadata,
): Observed {
  const { recipe } = document;
  return {
    entry: document.entry,
    rulesKey: racyUntilMs(document.entry, readAtMs) === undefined ? rulesKey : 0,
    hash: document.hash,
    digest: document.kind === "content" ? document.digest : "",
    title: recipe.title,
    label: labelOf(recipe.title, recipe.description),
    extractorVersion: recipe.extractorVersion,
    shape: { kind: recipe.kind, tier: recipe.tier, ownerId: recipe.ownerId, settings: recipe.settings },
    fileUrl: document.kind === "link" ? document.url : undefined,
    ...(metadata !== undefined && { metadataHash: hashMetadata(metadata, document.kind !== "content") }),
  };
}

/** Raise it when the same file yields other metadata than before: it is then composed again and sent where it differs. */
export const METADATA_VERSION = 2;

/** Returns the metadata of a document, for a service that takes it. */
export function metadataOf(
  document: SourceDocument,
  rules: Pick<Rules, "fixedMetadata" | "folderDescription">,
): UserMetadata {
  const { entry, sizeBytes, createdMs, fields = NO_FIELDS, kind } = document;
  const { path } = entry;
  const facts = { path, sizeBytes, modifiedMs: entry.mtimeMs, createdMs, hasUrl: kind !== "content", fields };
  const set = readFields(rules.fixedMetadata(path));
  return composeMetadata(facts, { set, folderDescription: rules.folderDescription(path) });
}
