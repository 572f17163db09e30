import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { answerRequests, CappedRefusal } from "../../../lib/capped/child.ts";
import { foreignKind } from "../../../lib/capped/foreign.ts";
import { MarkupTooDeep } from "../../../lib/markup/tree.ts";
import { fullBudget } from "./attachments.ts";
import { readContainer } from "./container.ts";
import type { Conversion, ConversionFailure, ConversionRequest } from "./conversion.ts";
import { ConversionRefusal } from "./refusal.ts";

/** Reads one document at a time. Loads each format's library when it is first needed. */
answerRequests<ConversionRequest, Conversion, ConversionFailure>(async (request, give) => {
  give(await convert(request));
}, codeFor);

async function convert(request: ConversionRequest): Promise<Conversion> {
  const { path, container, hash: expected, sizeBytes, charsMax, withAttachments } = request;
  // Checked before reading: the file may have been replaced by a huge one.
  if ((await stat(path)).size !== sizeBytes) return { kind: "changed" };
  const bytes = await readFile(path);
  // The caller has read exactly these bytes. The path alone may lead to another file by now.
  if (hash("sha256", bytes) !== expected) return { kind: "changed" };
  const budget = withAttachments === false ? undefined : fullBudget();
  const reading = await readContainer(container, bytes, budget);
  if (reading === undefined) return { kind: "unknown" };
  const text = reading.markdown.replaceAll("\0", "").toWellFormed();
  const markdown = reading.isExact === true ? text : text.trim();
  if (markdown.length > charsMax)
    throw new ConversionRefusal(`it holds more text than the limit of ${charsMax} characters`);
  const title = reading.title?.toWellFormed();
  const isBetterUploaded =
    budget !== undefined && budget.pictures > 0 && budget.readHereOnly === 0 && isUtf8(bytes);
  return { kind: "text", ...(title !== undefined && { title }), markdown, isBetterUploaded };
}

function codeFor(error: unknown): ConversionFailure {
  if (error instanceof ConversionRefusal || error instanceof MarkupTooDeep) return "refused";
  if (error instanceof CappedRefusal) return "memory";
  const kind = foreignKind(error);
  return kind === "machine" ? "unable" : kind;
}
