import PQueue from "p-queue";
import type { PdfAttachment } from "../../kb/ingest/extract/pdf-extras.ts";
import { openPdfPool, type PdfPool } from "../../kb/ingest/extract/pdf-pool.ts";
import { type MailReader, openMailReader } from "../../kb/ingest/mail/mail-reader.ts";
import { END_CODES } from "../../lib/capped/end-failure.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { MailAttachment } from "../../lib/markup/mail-attachments.ts";
import { oneLine } from "../../lib/one-line.ts";
import { convertDocument } from "../../sync/document/formats/convert.ts";
import { containerOf, kindOfName, mediaTypeOf } from "../../sync/document/kinds.ts";
import { decodeText } from "../../sync/document/text.ts";
import type { FileTexts, InsideText } from "../../sync/read/secret-check.ts";
import { MAIL_TYPE } from "../../wire/constants.ts";

/** Bounds of a PDF: those of the service, which reads it with the same code. */
const MEMORY_MB = 512;
const CPU_MS = 300_000;
/** PDFs that are read at a time, each in a process of its own, as by the service. */
const PROCESSES = 2;
/** Processor time of a file with its attachments: several times what 32 MB of ordinary PDFs take. */
const FILE_CPU_MS = 300_000;
/** All text of a file. More than any document that the service takes. */
const CHARS_MAX = 32 * 1024 * 1024;
const IDLE_MS = 10_000;
/** Attachments of a file, with those in them. Each takes a request to a process. */
const ATTACHMENTS_MAX = 100;
/** A file in a file in a file in a file is not read. */
const DEPTH_MAX = 3;

/**
 * Opens the reader of text inside PDFs and mails: the pages of PDFs, their properties, form fields, annotations and
 * attachments; all parts of mails. Starts processes with capped memory and time when it is first asked, which end when they
 * have nothing to do and never keep the program running. Text in pictures, and thus in scans, is not read.
 */
export function openFileTexts({ cpuMs = CPU_MS, fileCpuMs = FILE_CPU_MS } = {}): FileTexts {
  const pdfs = openPdfPool({ processes: PROCESSES, memoryMb: MEMORY_MB, cpuMs, idleMs: IDLE_MS });
  const mails = openMailReader();
  // The pools refuse requests when many wait. The files that the daemon prepares at a time bound this queue.
  const queue = new PQueue({ concurrency: PROCESSES });
  return {
    read: async (path, mediaType, signal) => {
      const read = READERS[mediaType];
      if (read === undefined) return undefined;
      const reading = {
        pdfs,
        mails,
        path,
        signal,
        charsLeft: CHARS_MAX,
        attachmentsLeft: ATTACHMENTS_MAX,
        cpuMsLeft: fileCpuMs,
        onUsed: (usedMs: number) => void (reading.cpuMsLeft -= usedMs),
      };
      return await queue.add(() => read(reading, undefined, 0), { signal });
    },
  };
}

/** One file that is read, with what may still be read of it. */
interface Reading {
  readonly pdfs: PdfPool;
  readonly mails: MailReader;
  readonly path: string;
  readonly signal: AbortSignal;
  readonly onUsed: (usedMs: number) => void;
  /** Processor time; no attachment is read without any. */
  cpuMsLeft: number;
  charsLeft: number;
  attachmentsLeft: number;
}

/** Reads a file, or `content` that is part of it, `depth` files deep. */
type Read = (reading: Reading, content: Uint8Array | undefined, depth: number) => Promise<InsideText>;

const readPdf: Read = async (reading, content, depth) => {
  const { path, signal, onUsed, charsLeft: charsMax } = reading;
  const request = { path, ...(content && { content }), charsMax, withExtras: true };
  const {
    texts,
    author = "",
    extras = "",
    attachments = [],
  } = await reading.pdfs.extract(request, { signal, onUsed });
  const text = texts.join("\n");
  spend(reading, text, extras);
  const attached = await readAttachments(reading, attachments, depth);
  return { text, beyond: [author, extras, attached.text, attached.beyond].join("\n") };
};

const readMail: Read = async (reading, content, depth) => {
  const { path, signal, onUsed } = reading;
  const { markdown, alternative, attachments } = await reading.mails.read(
    { path, ...(content && { content }) },
    { signal, onUsed },
  );
  spend(reading, markdown, alternative);
  // Of signed and encrypted parts and of keys, the bytes are checked: what is not encrypted in them is plain.
  const isSealed = ({ mediaType }: MailAttachment): boolean => /signature|pkcs7|pgp/.test(mediaType);
  const sealed = attachments.filter(isSealed).map(({ bytes }) => bytes.toString("latin1"));
  spend(reading, ...sealed);
  const readable = attachments.filter((attachment) => !isSealed(attachment));
  const { text, beyond } = await readAttachments(reading, readable, depth);
  const names = attachments.map(({ name }) => name);
  return {
    text: [markdown, text].join("\n"),
    beyond: [alternative, ...names, ...sealed, beyond].join("\n"),
  };
};

const READERS: Readonly<Record<string, Read>> = { "application/pdf": readPdf, [MAIL_TYPE]: readMail };

async function readAttachments(
  reading: Reading,
  attachments: readonly PdfAttachment[],
  depth: number,
): Promise<InsideText> {
  const found: InsideText[] = [];
  for (const attachment of attachments) {
    reading.attachmentsLeft -= 1;
    if (reading.attachmentsLeft < 0)
      throw notRead(attachment, `no more than ${ATTACHMENTS_MAX} of a file are`);
    if (depth >= DEPTH_MAX) throw notRead(attachment, `it is ${DEPTH_MAX + 1} files deep`);
    if (reading.cpuMsLeft <= 0) throw tooSlow();
    found.push(await readAttachment(reading, attachment, depth + 1));
  }
  return {
    text: found.map(({ text }) => text).join("\n"),
    beyond: found.map(({ beyond }) => beyond).join("\n"),
  };
}

async function readAttachment(
  reading: Reading,
  attachment: PdfAttachment,
  depth: number,
): Promise<InsideText> {
  const bytes = Buffer.from(attachment.bytes);
  const mediaType = mediaTypeOf(bytes);
  if (mediaType === "application/pdf") return readPdf(reading, bytes, depth);
  // Of a picture that is a file of its own, the bytes are checked too.
  if (mediaType !== undefined) {
    const beyond = bytes.toString("latin1");
    spend(reading, beyond);
    return { text: "", beyond };
  }
  const named = kindOfName(attachment.name);
  const container = containerOf(named, bytes);
  if (container === "mail") return readMail(reading, bytes, depth);
  if (container === "zip") return { text: await zipText(reading, attachment, bytes), beyond: "" };
  const decoded = decodeText(bytes);
  if (decoded.kind === "text") {
    spend(reading, decoded.text);
    return { text: decoded.text, beyond: "" };
  }
  throw notRead(attachment, named.kind === "skipped" ? named.reason : decoded.reason);
}

/** Returns the text of an office document or book. Any other archive is not read. */
async function zipText(reading: Reading, attachment: PdfAttachment, content: Uint8Array): Promise<string> {
  const { path, signal, onUsed, charsLeft: charsMax } = reading;
  const request = { path, content, container: "zip", charsMax } as const;
  const conversion = await convertDocument(request, { signal, onUsed });
  if (conversion.kind !== "text") throw notRead(attachment, "a zip archive: no text is taken from it");
  spend(reading, conversion.markdown);
  return [conversion.title ?? "", JSON.stringify(conversion.fields ?? {}), conversion.markdown].join("\n");
}

/** Counts text of the file. All of it is held until it is checked, so small archives must not unpack to any amount. */
function spend(reading: Reading, ...found: readonly string[]): void {
  for (const { length } of found) reading.charsLeft -= length;
  if (reading.charsLeft >= 0) return;
  throw new KbsyncError(`it and its attachments hold more text than the limit of ${CHARS_MAX} characters`, {
    code: "attachment_not_read",
  });
}

function tooSlow(): KbsyncError {
  return new KbsyncError(`it and its attachments take more processor time than ${FILE_CPU_MS / 1000} s`, {
    code: END_CODES.time,
  });
}

function notRead({ name }: PdfAttachment, reason: string): KbsyncError {
  const shown = JSON.stringify(oneLine(name).slice(0, 100).toWellFormed());
  return new KbsyncError(`its attachment ${shown} is not read: ${reason}`, { code: "attachment_not_read" });
}
