import { readFile } from "node:fs/promises";
import { answerRequests } from "../../../lib/capped/child.ts";
import { pageFailureOf, type PageFailure } from "./page-failure.ts";
import { pageText } from "./page-text.ts";

/** A page on disk. */
export interface PageRequest {
  readonly path: string;
  /** Encoding from the server's header. */
  readonly encoding: string | undefined;
  /** Address of the page, for relative links. */
  readonly url: string;
}

/** Size of a message: a single one of 32 MB would be a second copy. */
const PART_CHARS = 256 * 1024;

answerRequests<PageRequest, string, PageFailure>(async ({ path, encoding, url }, give) => {
  const text = pageText(await readFile(path), encoding, url);
  for (let at = 0; at < text.length; at += PART_CHARS) give(text.slice(at, at + PART_CHARS));
}, pageFailureOf);
