import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { KnownFiles } from "./known-files.ts";

/** Longest address of a document in an answer. */
const LINK_CHARS_MAX = 2000;

/**
 * Returns the address that a citation of a document links to: its web address (of a link or an uploaded file), else the file
 * on this machine, else a URI of its id. Never empty: ChatGPT cites nothing without an address.
 */
export function linkOf(
  { id, url }: { readonly id: string; readonly url: string | null | undefined },
  files: KnownFiles,
): string {
  if (url !== null && url !== undefined && /^https?:\/\//i.test(url) && url.length <= LINK_CHARS_MAX)
    return url;
  const file = files.fileOf(id);
  const fileUrl = file === undefined ? undefined : pathToFileURL(join(file.folder, file.path)).href;
  return fileUrl !== undefined && fileUrl.length <= LINK_CHARS_MAX
    ? fileUrl
    : `kbsync://documents/${encodeURIComponent(id)}`;
}
