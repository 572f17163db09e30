import { hash } from "node:crypto";
import { composed, DIGEST_CHARS, digestOf } from "../document/digest.ts";
import type { SourceDocument } from "../read/read.ts";
import type { Observed, Stored } from "../ledger/files.ts";
import { racyUntilMs } from "../plan/file-times.ts";
import type { AnsweredRecord } from "../remote/remote.ts";

/** Stands for a title and description together, however a service composes their letters. */
export function labelOf(title: string, description: string): string {
  return labelOfPlain(composed(title), composed(description));
}

/** Stands for a description alone. */
export function topicOf(description: string): string {
  return labelOf("", description);
}

/** The labels of a title and description that a service gives back: `plainLabel` as rows from before have it, where it is another. */
export function labelsOf(
  title: string,
  description: string,
): { readonly label: string; readonly plainLabel?: string } {
  const label = labelOf(title, description);
  const plainLabel = labelOfPlain(title, description);
  return plainLabel === label ? { label } : { label, plainLabel };
}

function labelOfPlain(title: string, description: string): string {
  return hash("sha256", `${title}\0${description}`, "base64url").slice(0, DIGEST_CHARS);
}

/** How the service stored what was sent, as far as its answer tells and as far as it is another. */
export function storedOf(record: AnsweredRecord, { label, digest, shape }: Observed): Stored {
  const { title, description, content } = record;
  const atMs = Date.parse(record.updatedAt ?? "");
  // A title and description that were sent are never empty: then the answer has none.
  const stored = isGiven(title) && isGiven(description) ? labelOf(title, description) : label;
  const text = shape.kind === "content" && isGiven(content) ? digestOf(content) : digest;
  return {
    ...(stored !== label && { label: stored }),
    ...(text !== digest && { digest: text }),
    ...(!Number.isNaN(atMs) && { atMs }),
  };
}

/** Whether a resource is just what is to be sent: its text, or for an upload that was made before its address. */
export function holds(record: AnsweredRecord, observed: Observed, fileUrl: string | null): boolean {
  const { title, description, content, url } = record;
  if (labelOf(title ?? "", description ?? "") !== observed.label) return false;
  if (observed.shape.kind === "content") return isGiven(content) && digestOf(content) === observed.digest;
  return isGiven(url) && url === (observed.fileUrl ?? fileUrl);
}

/** The same of a list that shows title and description. */
export function storedAs(listedLabel: string, { label }: Observed): Stored {
  return listedLabel === label ? {} : { label: listedLabel };
}

function isGiven(text: string | null | undefined): text is string {
  return text !== undefined && text !== null && text !== "";
}

/**
 * What the ledger will say of a document once the service acknowledged it. `readAtMs`: when its reading began, by the
 * system's clock; one whose times do not tell a later write yet is read again by the next look.
 */
export function observe(document: SourceDocument, rulesKey: number, readAtMs: number): Observed {
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
  };
}
