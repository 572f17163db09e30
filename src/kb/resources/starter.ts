import { isMarkdownAtService } from "../../lib/markup/text-formats.ts";
import {
  type HeadedFile,
  type Heading,
  headingsOf,
  starterQuestions,
} from "../../lib/markup/starter-questions.ts";
import type { StarterAnswer, StarterQuery } from "../../wire/evaluation.ts";
import type { Resource } from "../store/resources.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";
import { noCollection } from "./list.ts";

/** Resources and characters that are read at a time. */
const READ_MAX = 100;
const READ_CHARS = 1024 * 1024;
/** Bounds of a starter: further documents are left out. */
const CHARS_MAX = 64 * 1024 * 1024;
const HEADINGS_MAX = 100_000;
/** Characters of a document that are searched for headings. */
const DOCUMENT_CHARS_MAX = 256 * 1024;

/**
 * Makes questions from the headings of an owner's documents in a collection (an addition). `turn` waits until the next part of the
 * work may run.
 */
export async function makeStarter(
  kb: KnowledgeBase,
  accountId: string,
  { collectionId, ownerId, limit }: StarterQuery,
  turn: () => Promise<void>,
): Promise<StarterAnswer["data"]> {
  const tier = await kb.collections.tierOf(accountId, collectionId);
  if (tier === undefined) throw noCollection(collectionId, "collectionId");
  const where = { accountId, collectionId, ownerId: ownerId.toWellFormed() };
  const files: HeadedFile[] = [];
  let [chars, headings] = [0, 0];
  let afterId: string | undefined;
  let isComplete = false;
  while (!isComplete && chars < CHARS_MAX && headings < HEADINGS_MAX) {
    await turn();
    const page = await kb.records.listResources({ ...where, afterId, limit: READ_MAX, charsMax: READ_CHARS });
    for (const resource of page.resources) {
      await turn();
      const file = await headedFile(resource, turn);
      chars += resource.content.length;
      headings += file?.headings.length ?? 0;
      if (file !== undefined) files.push(file);
    }
    afterId = page.resources.at(-1)?.id;
    isComplete = !page.more;
  }
  const { questions, headings: choice } = starterQuestions(files, limit);
  return {
    questions: questions.map(({ question, expect, answer }) =>
      answer === undefined ? { question, expect } : { question, expect, answer },
    ),
    headings: choice,
    isComplete,
  };
}

async function headedFile(
  { id, content, metadata }: Resource,
  turn: () => Promise<void>,
): Promise<HeadedFile | undefined> {
  const { path } = metadata;
  const isFile = typeof path === "string";
  if (isFile && !isMarkdownAtService(path)) return undefined;
  const headings: Heading[] = [];
  for (const heading of headingsOf(content, DOCUMENT_CHARS_MAX)) {
    headings.push(heading);
    await turn();
  }
  return { path: isFile ? path : id, source: undefined, headings };
}
