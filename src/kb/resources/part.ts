import { joinPages, type PartlyRead } from "../ingest/extract/extract.ts";
import { readingWords } from "../ingest/extract/unread-words.ts";
import type { ReadText } from "../ingest/ingest.ts";
import type { Resource } from "../store/resources.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";

/**
 * Returns the text that a document has while pages of its PDF are being read; undefined: it keeps its text until the new one is whole.
 *
 * The part makes the pages with a text layer searchable at once, and takes nothing away: a page that is being read has the text that
 * the stored version has at its number. This is its text already if another page was edited, and what a reader has today if not. If the
 * numbers of pages differ, pages may have moved, and the stored text stays. `isFirst`: no version of the document was ever whole.
 */
export async function partText(
  kb: Pick<KnowledgeBase, "records">,
  before: Resource,
  { texts, reading, fileMetadata }: PartlyRead,
  isFirst: boolean,
): Promise<ReadText | undefined> {
  const stored = isFirst ? new Map<number, string>() : await storedPages(kb, before, texts.length);
  if (stored === undefined) return undefined;
  const pages = [...texts];
  for (const page of reading) pages[page - 1] = stored.get(page) ?? "";
  const hasStored = reading.some((page) => stored.has(page));
  return { ...joinPages(pages), fileMetadata, warning: readingWords(reading, hasStored) };
}

/** Returns the texts of the stored version by page; undefined if it does not have so many pages. */
async function storedPages(
  { records }: Pick<KnowledgeBase, "records">,
  { accountId, id, version, content, metadata }: Resource,
  count: number,
): Promise<ReadonlyMap<number, string> | undefined> {
  if (metadata["pages"] !== count) return undefined;
  const found = await records.chunks({ accountId, id });
  if (found?.version !== version) return undefined;
  // Every page has a location in the chunks of its text.
  const starts = new Map(found.chunks.flatMap(({ locations }) => locations.map((one) => [one.start, one])));
  const located = [...starts.values()].toSorted((a, b) => a.start - b.start);
  return new Map(
    located.flatMap(({ page, start }, at) =>
      page === undefined ? [] : [[page, content.slice(start, located[at + 1]?.start).trimEnd()]],
    ),
  );
}
