import { readFile } from "node:fs/promises";
import { answerRequests } from "../../../lib/capped/child.ts";
import { pageFailureOf, type PageFailure } from "./page-failure.ts";
import { pageText } from "./page-text.ts";

/** A page on disk. */
export interface PageRequest {
  readonly path: string;
  /** What the server said of it. */
  readonly encoding: string | undefined;
  /** Its own address, for relative links. */
  readonly url: string;
}

/** Sent piece by piece: one message of 32 MB would be a second copy of all. */
const PART_CHARS = 256 * 1024;

answerRequests<PageRequest, string, PageFailure>(async ({ path, encoding, url }, give) => {
  const text = pageText(await readFile(path), encoding, url);
  for (let at = 0; at < text.length; at += PART_CHARS) give(text.slice(at, at + PART_CHARS));
}, pageFailureOf);
