import type { getDocumentProxy } from "unpdf";
import { CappedRefusal } from "../../../lib/capped/child.ts";

/** A file inside a PDF. */
export interface PdfAttachment {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** What a PDF has beside the text of its pages. */
export interface PdfExtras {
  /** Properties, outline, scripts, form fields and annotations, one string per line. May repeat the text of pages. */
  readonly extras: string;
  readonly attachments: readonly PdfAttachment[];
}

export type PdfDocument = Awaited<ReturnType<typeof getDocumentProxy>>;

/**
 * Reads the extras of a document, and `form`: the text of its dynamic form, a tree of PDF.js. Throws a `CappedRefusal` if strings
 * and attachments exceed `charsMax` in all.
 */
export async function readExtras(document: PdfDocument, form: unknown, charsMax: number): Promise<PdfExtras> {
  const strings = new Set<string>();
  let left = charsMax;
  const spend = (length: number): void => {
    left -= length;
    if (left < 0) throw new CappedRefusal("text_too_large", "too much beside the pages");
  };
  const add = (value: unknown): void => {
    for (const text of stringsIn(value)) {
      if (strings.has(text)) continue;
      strings.add(text);
      spend(text.length + 1);
    }
  };

  const { info, metadata } = await document.getMetadata();
  add([info, metadata === null ? [] : [...(metadata as Iterable<unknown>)]]); // its type leaves out the iterator
  add([await document.getOutline(), await document.getJSActions(), await document.getFieldObjects()]);
  add(form);
  const names = new Map<string, string>();
  for (const [id, { filename, description }] of (await document.getAttachments()) ?? []) {
    names.set(id, filename);
    add([filename, description]);
  }
  for (let number = 1; number <= document.numPages; number++) {
    const page = await document.getPage(number);
    for (const annotation of await page.getAnnotations({ intent: "any" })) {
      add(annotation);
      for (const [id, name] of attachedTo(annotation)) names.set(id, name);
    }
    page.cleanup();
  }

  const attachments: PdfAttachment[] = [];
  for (const [id, name] of names) {
    const bytes = await document.getAttachmentContent(id);
    if (bytes === null || bytes === undefined) continue; // it only refers to a file elsewhere
    spend(bytes.length);
    attachments.push({ name, bytes });
  }
  return { extras: [...strings].join("\n"), attachments };
}

/** The parts of an annotation that refer to a file. PDF.js does not type annotations. */
interface FileAnnotation {
  readonly fileId?: string | null;
  readonly file?: { readonly filename: string };
  readonly richMedia?: { readonly fileId?: string | null; readonly filename?: string };
}

/** Returns the ids and names of the files that an annotation contains. */
function attachedTo({ fileId, file, richMedia }: FileAnnotation): [string, string][] {
  const found: [string, string][] = [];
  if (typeof fileId === "string") found.push([fileId, file?.filename ?? ""]);
  if (typeof richMedia?.fileId === "string") found.push([richMedia.fileId, richMedia.filename ?? ""]);
  return found;
}

/** Yields all strings in a value of PDF.js, which is a tree of objects, arrays and maps. */
function* stringsIn(root: unknown): Generator<string> {
  const open: unknown[] = [root];
  const seen = new Set<object>();
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "string") yield value;
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || seen.has(value)) continue;
    seen.add(value);
    // One by one: a call takes about a hundred thousand arguments.
    const parts = value instanceof Map ? [...value.entries()].flat() : Object.values(value);
    for (const part of parts) open.push(part);
  }
}
