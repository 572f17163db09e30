import { hash } from "node:crypto";
import type { Stats } from "node:fs";
import { KbsyncError } from "../../../lib/failure.ts";
import { integerColumn } from "../../../lib/integer-column.ts";
import { MAIL_TYPE } from "../../../wire/constants.ts";
import { EMPTY_FILE } from "../../plan/model.ts";
import { refusalBySize } from "../../../formats/bounds.ts";
import { digestOf, fingerprint } from "../../../formats/digest.ts";
import { type Container, containerOf, isOle, mediaTypeOf } from "../../../formats/kinds.ts";
import { CHARS_MAX, convertDocument } from "../../../formats/conversion/convert.ts";
import { reportsBirthTime } from "../disk/root-identity.ts";
import { CONVERTER_VERSION, isHashOf } from "../../plan/versions.ts";
import { composeRecipe } from "./recipe.ts";
import { addressOf } from "../../../formats/shortcut.ts";
import { decodeText } from "../../../formats/text.ts";
import { nameText } from "../../../formats/title.ts";
import type { ReadRequest, ReadOutcome, Enclosed, ReadOptions } from "./outcome.ts";
import { certainLanguage } from "../../../lib/language.ts";
import { frontMatterEnd } from "../../../formats/markup/front-matter.ts";
import { type DocumentFields, NO_FIELDS } from "../../../formats/fields.ts";

/** Returns the refusal of a file that is too large for its kind; undefined if it is not. */
export function refuseBySize({ named, rules }: ReadRequest, sizeBytes: number): ReadOutcome | undefined {
  const reason = refusalBySize(named, sizeBytes, rules.source.maxFileBytes);
  return reason === undefined ? undefined : { kind: "refused", reason };
}

/**
 * Creates a document from a file's bytes. If their hash is `known`, `bytes` may be only the beginning of a file that is
 * uploaded or converted.
 */
export function interpret(
  request: ReadRequest,
  stats: Stats,
  known: string | undefined,
  bytes: Buffer,
): ReadOutcome | Enclosed {
  const { entry, named, rules } = request;
  const { path } = entry;
  const refused = refuseBySize(request, stats.size);
  if (refused !== undefined) return refused;
  const { size: sizeBytes, mtimeMs, ctimeMs } = stats;
  const seen = { path, sizeBytes, mtimeMs, ctimeMs, ino: integerColumn(stats.ino) };
  const isBirthKnown = reportsBirthTime() && stats.birthtimeMs > 0;
  const facts = { sizeBytes, entry: seen, ...(isBirthKnown && { createdMs: stats.birthtimeMs }) };

  // An empty text is a document; an empty shortcut, PDF or image is not.
  if (sizeBytes === 0 && named.kind !== "content") return { kind: "skipped", reason: EMPTY_FILE };
  if (named.kind === "link") {
    const url = addressOf(bytes, named.format);
    if (url === undefined) return { kind: "refused", reason: "the shortcut holds no http or https address" };
    const recipe = composeRecipe(path, "link", {}, rules);
    return {
      kind: "document",
      document: { ...facts, hash: known ?? hash("sha256", bytes), kind: "link", url, recipe },
    };
  }

  const mediaType = mediaTypeOf(bytes);
  if (mediaType !== undefined) {
    const recipe = composeRecipe(path, "file", {}, rules);
    return {
      kind: "document",
      document: { ...facts, hash: known ?? hash("sha256", bytes), kind: "file", mediaType, recipe },
    };
  }
  const container = sizeBytes === 0 ? undefined : containerOf(named, bytes);
  if (container !== undefined)
    return { kind: "enclosed", container, named, facts: { ...facts, hash: known ?? hash("sha256", bytes) } };
  if (named.kind !== "content") return { kind: "refused", reason: contradiction(named, bytes) };

  const decoded = decodeText(bytes);
  if (decoded.kind === "binary") return { kind: "skipped", reason: decoded.reason };
  if (decoded.kind === "unknown") return { kind: "refused", reason: decoded.reason };
  const naming = nameText(decoded.text, named.format);
  const fields = withLanguage(naming.fields, decoded.text);
  const recipe = composeRecipe(path, "content", naming, rules);
  const prints =
    known === undefined ? fingerprint(bytes, decoded.text) : { hash: known, digest: digestOf(decoded.text) };
  return {
    kind: "document",
    document: {
      ...facts,
      ...(fields !== undefined && { fields }),
      ...prints,
      kind: "content",
      content: decoded.text,
      recipe,
    },
  };
}

/** Why the bytes contradict a name that promises a PDF, image or office document. */
function contradiction(named: { kind: "file" | "office" }, bytes: Buffer): string {
  if (isOle(bytes)) {
    return "it is protected by a password, or in an Office format from before 2007: save it without a password in a current format";
  }
  const promised = named.kind === "file" ? "PDF or image, but its content is neither" : ENCLOSED_WORDS;
  return `its name says ${promised}`;
}
const ENCLOSED_WORDS = "office document or book, but its bytes are none";

/** Extracts the text of a document that was read and hashed. */
export async function convert(
  { absolutePath, entry: { path }, rules }: ReadRequest,
  { container, named, facts }: Enclosed,
  { signal, uploadsMails = false, uploadedHash }: ReadOptions,
): Promise<ReadOutcome> {
  const { hash: expected, sizeBytes } = facts;
  const isUploaded = uploadedHash !== undefined && isHashOf(uploadedHash, expected);
  const request = { path: absolutePath, container, hash: expected, sizeBytes, charsMax: CHARS_MAX };
  try {
    const conversion = await convertDocument(request, { signal });
    switch (conversion.kind) {
      case "changed":
        return { kind: "torn" };
      case "unknown":
        return named.kind === "content"
          ? { kind: "skipped", reason: "a zip archive: no text is taken from it" }
          : { kind: "refused", reason: contradiction(named, Buffer.alloc(0)) };
      case "text": {
        const { title, markdown: content, locations } = conversion;
        if (content === "") return { kind: "skipped", reason: NO_TEXT[container] };
        const naming = title === undefined ? {} : { title };
        const fields = withLanguage(conversion.fields, content);
        const stated = fields === undefined ? facts : { ...facts, fields };
        if (conversion.isBetterUploaded === true && (uploadsMails || isUploaded)) {
          const recipe = composeRecipe(path, "file", naming, rules, CONVERTER_VERSION);
          return { kind: "document", document: { ...stated, kind: "file", mediaType: MAIL_TYPE, recipe } };
        }
        const recipe = composeRecipe(path, "content", naming, rules, CONVERTER_VERSION);
        const text = { content, locations, digest: digestOf(content) };
        const document = { ...stated, kind: "content", ...text, recipe } as const;
        return { kind: "document", document };
      }
    }
  } catch (error) {
    if (!(error instanceof KbsyncError) || signal?.aborted === true) throw error;
    if (error.code === "refused") return { kind: "refused", reason: error.message };
    return { kind: "unreadable", code: error.code };
  }
}

/** Why a converted document yields nothing. */
const NO_TEXT: Readonly<Record<Container, string>> = {
  zip: "there is no text in the document",
  mail: "there is no text in the mail",
  csv: "there is no text in the table",
  tsv: "there is no text in the table",
  subtitles: "there is no text in the subtitles",
  notebook: "there is no text in the notebook",
  rtf: "there is no text in the document",
  html: "there is no text in the page: scripts may make it, and none are run",
};

/** Returns the fields of a document with the language that its text is certainly in, unless they name one. */
function withLanguage(fields: DocumentFields | undefined, text: string): DocumentFields | undefined {
  const { language, lang } = fields?.values ?? {};
  if (language !== undefined || lang !== undefined) return fields;
  const found = certainLanguage(text.slice(frontMatterEnd(text)));
  return found === undefined ? fields : { ...(fields ?? NO_FIELDS), language: found };
}
