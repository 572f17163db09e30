import { isUtf8 } from "node:buffer";
import { foreignKind } from "../../lib/capped/foreign.ts";
import { trimLocated } from "../markup/located-text.ts";
import { type AttachmentOutcome, LISTED_MAX, type MailAttachment } from "../markup/mail-attachments.ts";
import { MarkupTooDeep } from "../markup/tree.ts";
import { containerOf, kindOfName, mediaTypeOf } from "../kinds.ts";
import { decodeText } from "../text.ts";
import type { Reading } from "./conversion.ts";
import type { Container } from "../kinds.ts";
import { ConversionRefusal } from "./refusal.ts";

/**
 * Reads a document inside another; undefined if it is an archive but not a document. `depth`: of the enclosing mail,
 * from 0.
 */
export type ReadEnclosed = (
  container: Container,
  bytes: Buffer,
  depth: number,
) => Promise<Reading | undefined>;

/** Budget for the attachments of a mail, including those of enclosed mails. */
export interface AttachmentBudget {
  /** Attachments that may still be read. */
  count: number;
  /** Bytes of attachments that may still be read. */
  bytes: number;
  /** Characters of text that attachments may still yield. */
  chars: number;
  /** PDFs and images found, which only a service reads. */
  pictures: number;
  /** Attachments read here that a service may not read: documents in archives, and texts that are not UTF-8. */
  readHereOnly: number;
}

/** Attachments of a mail in a mail in a mail are listed but not read. */
const DEPTH_MAX = 3;

/** Enough for several large documents. Each is read within the mail's limits of memory and time. */
export function fullBudget(): AttachmentBudget {
  return { count: 20, bytes: 16 * 1024 * 1024, chars: 4_000_000, pictures: 0, readHereOnly: 0 };
}

/** Reads the attachments that are listed. Without a budget, reads none. */
export async function readAttachments(
  attachments: readonly MailAttachment[],
  depth: number,
  budget: AttachmentBudget | undefined,
  read: ReadEnclosed,
): Promise<readonly AttachmentOutcome[]> {
  const outcomes: AttachmentOutcome[] = [];
  for (const attachment of attachments.slice(0, LISTED_MAX))
    outcomes.push(await readAttachment(attachment, depth, budget, read));
  return outcomes;
}

async function readAttachment(
  { name, mediaType, bytes }: MailAttachment,
  depth: number,
  budget: AttachmentBudget | undefined,
  read: ReadEnclosed,
): Promise<AttachmentOutcome> {
  const reason = reasonByName(name, mediaType, bytes);
  if (budget !== undefined && depth < DEPTH_MAX && mediaTypeOf(bytes) !== undefined) budget.pictures += 1;
  if (reason !== undefined) return { reason };
  if (budget === undefined)
    return { reason: "reading the attachments takes more memory or time than a mail may" };
  if (depth >= DEPTH_MAX) return { reason: "it lies in a mail in a mail in a mail" };
  if (budget.count <= 0 || bytes.length > budget.bytes)
    return { reason: "the attachments of a mail are read up to 20, and 16 MB" };
  budget.count -= 1;
  budget.bytes -= bytes.length;
  const outcome = await readBytes(name, bytes, depth, read);
  if ("reason" in outcome) return outcome;
  const trimmed = trimLocated(outcome);
  const { length } = trimmed.text;
  if (length === 0) return { reason: "there is no text in it" };
  if (length > budget.chars) return { reason: "it holds too much text for a part of a mail" };
  budget.chars -= length;
  if (!isUtf8(bytes)) budget.readHereOnly += 1;
  return trimmed;
}

/** Why an attachment is not read, judged by its name, media type and first bytes. */
function reasonByName(name: string, mediaType: string, bytes: Buffer): string | undefined {
  if (/signature|pkcs7|pgp/.test(mediaType)) return "a signature or encryption holds no text";
  const named = kindOfName(name);
  if (named.kind === "skipped") return named.reason;
  if (named.kind === "link") return "it is a shortcut to an address";
  if (named.kind === "file" || mediaTypeOf(bytes) !== undefined)
    return "PDFs and images are read as files of their own: save it beside the mail";
  return undefined;
}

async function readBytes(
  name: string,
  bytes: Buffer,
  depth: number,
  read: ReadEnclosed,
): Promise<AttachmentOutcome> {
  const named = kindOfName(name);
  if (named.kind === "skipped") return { reason: named.reason };
  const container = containerOf(named, bytes);
  try {
    if (container !== undefined) {
      const reading = await read(container, bytes, depth + 1);
      return reading === undefined ? { reason: "a zip archive: no text is taken from it" } : reading;
    }
    if (named.kind === "office")
      return { reason: "its name says office document or book, but its bytes are none" };
    const decoded = decodeText(bytes);
    return decoded.kind === "text" ? { text: decoded.text } : { reason: decoded.reason };
  } catch (error) {
    if (error instanceof ConversionRefusal || error instanceof MarkupTooDeep)
      return { reason: error.message };
    const kind = foreignKind(error);
    // These errors show nothing about the attachment, or the process cannot continue.
    if (kind === "machine" || kind === "memory") throw error;
    return { reason: "it is damaged, or not quite of the format that it seems to be" };
  }
}
