import { basename } from "node:path";
import type { SourceDocument } from "../read/outcome.ts";
import type { Reply } from "../remote/answer.ts";
import type { NewResource } from "../remote/resource-requests.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import type { Departure } from "./prepare.ts";

/**
 * Makes a document ready to be sent: uploads the file if it is one, and waits until it is known whether the service takes the
 * locations of a text. Returns the resource's address, if it has one.
 */
export async function prepareBody(
  context: ActionContext,
  source: ActionSource,
  { document, observed }: Departure,
  key: string,
  before: string | undefined,
): Promise<Reply<string> | { readonly kind: "torn" }> {
  if (document.kind === "link") return { kind: "done", value: document.url };
  if (document.kind === "content") {
    const { capabilities, signal } = context;
    const later = document.locations === undefined ? undefined : await capabilities.checkLocations(signal);
    return later ?? { kind: "done", value: "" };
  }
  if (before !== undefined) return { kind: "done", value: before };
  const { path, link } = observed.entry;
  const file = {
    root: source.root,
    path,
    ...(link !== undefined && { link }),
    name: basename(path),
    sizeBytes: observed.entry.sizeBytes,
    hash: observed.hash,
    mediaType: document.mediaType,
  };
  return context.remote.upload(file, `${key}-file`, context.signal, context.contentKind);
}

/** Returns what is sent of a text. */
export function textOf(
  { capabilities }: Pick<ActionContext, "capabilities">,
  { content, locations }: Extract<SourceDocument, { readonly kind: "content" }>,
): Extract<NewResource["body"], { readonly content: unknown }> {
  return { content, ...(locations !== undefined && capabilities.takesLocations() && { locations }) };
}
