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

/** The child process: reads one document at a time. Each format's library is loaded when it is first met. */
answerRequests<ConversionRequest, Conversion, ConversionFailure>(async (request, give) => {
  give(await convert(request));
}, codeFor);

async function convert(request: ConversionRequest): Promise<Conversion> {
  const { path, container, hash: expected, sizeBytes, charsMax, withAttachments } = request;
  // Asked before it is read: it could have become a film by now.
  if ((await stat(path)).size !== sizeBytes) return { kind: "changed" };
  const bytes = await readFile(path);
  // Whoever asked has read these very bytes; by path alone it could be another file by now.
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
