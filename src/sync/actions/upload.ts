import { basename } from "node:path";
import type { Reply } from "../remote/answer.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import type { Departure } from "./prepare.ts";

/** Uploads the file if the document is one. For all others, returns `done` with the resource's address, if any. */
export async function uploadIfFile(
  context: ActionContext,
  source: ActionSource,
  { document, observed }: Departure,
  key: string,
  before: string | undefined,
): Promise<Reply<string> | { readonly kind: "torn" }> {
  if (document.kind === "link") return { kind: "done", value: document.url };
  if (document.kind === "content") return { kind: "done", value: "" };
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
  return context.remote.upload(file, `${key}-file`, context.signal);
}
