import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { answerRequests, CappedRefusal } from "../../lib/capped/child.ts";
import { foreignKind } from "../../lib/capped/foreign.ts";
import { type LocatedText, trimLocated } from "../markup/located-text.ts";
import { MarkupTooDeep } from "../markup/tree.ts";
import { LOCATIONS_MAX } from "../../wire/constants.ts";
import { fullBudget } from "./attachments.ts";
import { readContainer } from "./container.ts";
import type { Conversion, ConversionFailure, ConversionRequest, Reading } from "./conversion.ts";
import { ConversionRefusal } from "./refusal.ts";

/** Reads one document at a time. Loads each format's library when it is first needed. */
answerRequests<ConversionRequest, Conversion, ConversionFailure>(async (request, give) => {
  give(await convert(request));
}, codeFor);

async function convert(request: ConversionRequest): Promise<Conversion> {
  const { container, charsMax, withAttachments } = request;
  const bytes = await bytesOf(request);
  if (bytes === undefined) return { kind: "changed" };
  const budget = withAttachments === false ? undefined : fullBudget();
  const reading = await readContainer(container, bytes, budget);
  if (reading === undefined) return { kind: "unknown" };
  const { text: markdown, locations } = cleaned(reading);
  if (markdown.length > charsMax)
    throw new ConversionRefusal(`it holds more text than the limit of ${charsMax} characters`);
  const title = reading.title?.toWellFormed();
  const isBetterUploaded =
    budget !== undefined && budget.pictures > 0 && budget.readHereOnly === 0 && isUtf8(bytes);
  const { fields } = reading;
  return {
    kind: "text",
    ...(title !== undefined && { title }),
    ...(fields !== undefined && { fields }),
    markdown,
    ...(locations && { locations }),
    isBetterUploaded,
  };
}

/** Returns undefined if the file has changed. */
async function bytesOf(request: ConversionRequest): Promise<Buffer | undefined> {
  if (request.content !== undefined) return Buffer.from(request.content);
  const { path, hash: expected, sizeBytes } = request;
  // Checked before reading: the file may have been replaced by a huge one.
  if ((await stat(path)).size !== sizeBytes) return undefined;
  const bytes = await readFile(path);
  // The caller has read exactly these bytes. The path alone may lead to another file by now.
  return hash("sha256", bytes) === expected ? bytes : undefined;
}

function cleaned({ text, locations, isExact }: Reading): LocatedText {
  const clean = { text: text.replaceAll("\0", "").toWellFormed(), locations };
  const trimmed = isExact === true ? clean : trimLocated(clean);
  // A NUL that is removed shifts the text behind it. It occurs in crafted workbooks only.
  const isKnown = clean.text.length === text.length && (locations?.length ?? 0) <= LOCATIONS_MAX;
  return isKnown ? trimmed : { text: trimmed.text };
}

function codeFor(error: unknown): ConversionFailure {
  if (error instanceof ConversionRefusal || error instanceof MarkupTooDeep) return "refused";
  if (error instanceof CappedRefusal) return "memory";
  const kind = foreignKind(error);
  return kind === "machine" ? "unable" : kind;
}
