import { mailMarkdown } from "../markup/mail-attachments.ts";
import { type Archive, openArchive } from "./archive.ts";
import { type AttachmentBudget, readAttachments, type ReadEnclosed } from "./attachments.ts";
import type { Reading } from "./conversion.ts";
import { readFields } from "../fields.ts";
import type { Container } from "../kinds.ts";
import { ConversionRefusal } from "./refusal.ts";

/**
 * Reads a document by the kind of its bytes; undefined if it is an archive but not a document. `budget`: limits for the
 * attachments of a mail, undefined to read none. `depth`: number of mails around the document.
 */
export async function readContainer(
  container: Container,
  bytes: Buffer,
  budget: AttachmentBudget | undefined,
  depth = 0,
): Promise<Reading | undefined> {
  switch (container) {
    case "html": {
      const { readPage } = await import("./page.ts");
      return readPage(bytes);
    }
    case "csv":
    case "tsv":
    case "subtitles":
    case "notebook": {
      const { readStructured } = await import("./structured.ts");
      return readStructured(bytes, container);
    }
    case "rtf": {
      const { rtfText } = await import("../markup/rtf.ts");
      const text = rtfText(bytes.toString("latin1"));
      if (text === undefined) throw new ConversionRefusal("its groups are nested too deeply");
      return { text };
    }
    case "mail": {
      const { readMail } = await import("../markup/mail.ts");
      const read: ReadEnclosed = (within, enclosed, deeper) =>
        readContainer(within, enclosed, budget, deeper);
      const mail = await readMail(bytes);
      const outcomes = await readAttachments(mail.attachments, depth, budget, read);
      const fields = readFields({ from: mail.from, date: mail.date });
      return { title: mail.title, ...mailMarkdown(mail, outcomes), fields };
    }
    case "zip": {
      const archive = await openArchive(bytes);
      try {
        return await readZipped(bytes, archive);
      } finally {
        archive.close();
      }
    }
  }
}

/** Returns undefined if the archive is not a document of a supported format. */
async function readZipped(bytes: Buffer, archive: Archive): Promise<Reading | undefined> {
  const mimetype = archive.has("mimetype") ? ((await archive.text("mimetype")) ?? "").trim() : "";
  if (mimetype === "application/epub+zip") {
    const { readEpub } = await import("./epub.ts");
    return await readEpub(archive);
  }
  if (/^application\/vnd\.oasis\.opendocument\.(?:text|spreadsheet|presentation)\b/.test(mimetype)) {
    const { readOpenDocument } = await import("./open-document.ts");
    return await readOpenDocument(archive);
  }
  const types = await archive.text("[Content_Types].xml");
  if (types === undefined) return undefined;
  if (/wordprocessingml\.(?:document|template)\.main|ms-word\.\w+\.macroEnabledMain/i.test(types)) {
    const { readDocx } = await import("./docx.ts");
    return await readDocx(bytes, archive);
  }
  if (
    /presentationml\.(?:presentation|slideshow|template)\.main|ms-powerpoint\.(?:presentation|slideshow|template)\.macroEnabled\.main/i.test(
      types,
    )
  ) {
    const { readPptx } = await import("./pptx.ts");
    return await readPptx(archive);
  }
  if (
    /spreadsheetml\.(?:sheet|template)\.main|ms-excel\.(?:sheet|template)\.macroEnabled\.main/i.test(types)
  ) {
    const { readXlsx } = await import("./xlsx.ts");
    return await readXlsx(bytes, archive);
  }
  return undefined;
}
