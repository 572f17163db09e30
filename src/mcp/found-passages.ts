import { z } from "zod";
import { locationWords, rangeWords } from "../wire/location.ts";
import type { SearchResult } from "../wire/search.ts";
import { cutText } from "./budget.ts";
import type { KnownFiles } from "./known-files.ts";
import { SearchOutput, Place } from "./search-schema.ts";

/** Longest text of a passage of a service without a budget. */
const PASSAGE_CHARS_MAX = 8000;

/** A passage as the tool returns it. */
export type Found = SearchOutput["results"][number];

/** Returns a hit as a passage, with the file that its document was made from. */
export function foundAt({ id, score, version, payload }: SearchResult, files: KnownFiles): Found {
  const file = files.fileOf(payload.resourceId);
  const { hits } = payload;
  return {
    score,
    document_id: payload.resourceId,
    title: payload.title ?? null,
    path: file?.path ?? payload.filePath ?? null,
    folder: file?.folder ?? null,
    ...(payload.folderDescription !== undefined && { folder_description: payload.folderDescription }),
    owner_id: payload.ownerId,
    collection_id: payload.collectionId,
    chunk_id: id,
    version,
    ...placeOf(payload),
    text: hits === undefined ? cutText(payload.content, PASSAGE_CHARS_MAX) : payload.content,
    ...(hits !== undefined && {
      hits: hits.map((hit) => ({ chunk_id: hit.id, score: hit.score, start: hit.start, end: hit.end })),
    }),
  };
}

function placeOf(payload: SearchResult["payload"]): z.infer<typeof Place> {
  const { path, start, end, lines, pages, locations, sha256, fileUrl } = payload;
  return { heading_path: path, start, end, lines, pages, locations, sha256, file_url: fileUrl };
}

/** Returns the passages as text for a model. */
export function resultText({ results }: Pick<SearchOutput, "results">): string {
  if (results.length === 0) return "Nothing was found.";
  const described = new Set<string | undefined>([undefined]);
  const passages = results.map((result) => {
    const { score, path, title, document_id, lines, locations, text, folder_description } = result;
    const name = path ?? title;
    const where = name === null ? `document ${document_id}` : `${name} (document ${document_id})`;
    const within = locations === undefined ? rangeWords("line", lines) : [locationWords(locations)];
    // Once for all passages of a folder.
    const about = described.has(folder_description) ? "" : `\nFolder: ${folder_description}`;
    described.add(folder_description);
    return `[${score.toFixed(2)}] ${[where, ...within].join(", ")}${about}\n${text}`;
  });
  return passages.join("\n\n");
}
