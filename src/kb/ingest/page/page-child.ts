import { readFile } from "node:fs/promises";
import { answerRequests, tellsOfMachine, tellsOfMemory } from "../../../lib/capped/child.ts";
import { messageOf } from "../../../lib/failure.ts";
import { MarkupTooDeep } from "../../../lib/markup/tree.ts";
import { pageText } from "./page-text.ts";

/** A page on disk. */
export interface PageRequest {
  readonly path: string;
  /** What the server said of it. */
  readonly encoding: string | undefined;
  /** Its own address, for relative links. */
  readonly url: string;
}

/** Why a page gave no text. */
export type PageFailure = "memory" | "broken" | "unable" | "deep";

/** Sent piece by piece: one message of 32 MB would be a second copy of all. */
const PART_CHARS = 256 * 1024;

answerRequests<PageRequest, string, PageFailure>(
  async ({ path, encoding, url }, give) => {
    const text = pageText(await readFile(path), encoding, url);
    for (let at = 0; at < text.length; at += PART_CHARS) give(text.slice(at, at + PART_CHARS));
  },
  (error) => {
    if (error instanceof MarkupTooDeep) return "deep";
    if (tellsOfMemory(messageOf(error))) return "memory";
    return tellsOfMachine(error) ? "unable" : "broken";
  },
);
