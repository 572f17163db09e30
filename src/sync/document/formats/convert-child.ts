import { hash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { answerRequests, CappedRefusal } from "../../../lib/capped/child.ts";
import { foreignKind } from "../../../lib/capped/foreign.ts";
import { MarkupTooDeep } from "../../../lib/markup/tree.ts";
import { type Archive, openArchive } from "./archive.ts";
import type { Conversion, ConversionFailure, ConversionRequest, Reading } from "./conversion.ts";
import { ConversionRefusal } from "./refusal.ts";

/** The child process: reads one document at a time. Each format's library is loaded when it is first met. */
answerRequests<ConversionRequest, Conversion, ConversionFailure>(async (request, give) => {
  give(await convert(request));
}, codeFor);

async function convert(request: ConversionRequest): Promise<Conversion> {
  const { path, container, hash: expected, sizeBytes, charsMax } = request;
  // Asked before it is read: it could have become a film by now.
  if ((await stat(path)).size !== sizeBytes) return { kind: "changed" };
  const bytes = await readFile(path);
  // Whoever asked has read these very bytes; by path alone it could be another file by now.
  if (hash("sha256", bytes) !== expected) return { kind: "changed" };
  const reading = await readContainer(path, container, bytes);
  if (reading === undefined) return { kind: "unknown" };
  const text = reading.markdown.replaceAll("\0", "").toWellFormed();
  const markdown = reading.isExact === true ? text : text.trim();
  if (markdown.length > charsMax)
    throw new ConversionRefusal(`it holds more text than the limit of ${charsMax} characters`);
  const title = reading.title?.toWellFormed();
  return { kind: "text", ...(title !== undefined && { title }), markdown };
}

async function readContainer(
  path: string,
  container: ConversionRequest["container"],
  bytes: Buffer,
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
    case "mail": {
      const { readMail } = await import("./mail.ts");
      return await readMail(bytes);
    }
    case "zip": {
      const archive = await openArchive(path);
      try {
        return await readZipped(path, archive);
      } finally {
        archive.close();
      }
    }
  }
}

/** Undefined: it is no document of a format that is read. */
async function readZipped(path: string, archive: Archive): Promise<Reading | undefined> {
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
    return await readDocx(path, archive);
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
    return await readXlsx(path, archive);
  }
  return undefined;
}

function codeFor(error: unknown): ConversionFailure {
  if (error instanceof ConversionRefusal || error instanceof MarkupTooDeep) return "refused";
  if (error instanceof CappedRefusal) return "memory";
  const kind = foreignKind(error);
  return kind === "machine" ? "unable" : kind;
}
