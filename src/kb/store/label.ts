import type { UserMetadata } from "../../wire/metadata.ts";

/** Most words of a label: every chunk of the resource is found by all of them, so many would drown its own words. */
const LABEL_WORDS_MAX = 64;
/** Also splits joined words, such as `snake_case`; the index splits there as well. */
const NO_WORD = /[^\p{L}\p{N}\p{M}\p{Co}]+/u;

/**
 * Returns the words of a resource's path, name and tags that its title does not have, each once, separated by spaces. Words
 * find the resource by them, as by its title; they are in no chunk and no vector. Empty without such metadata. Pure.
 */
export function labelOf(title: string, { path, name, tags }: UserMetadata): string {
  const inTitle = new Set(wordsOf(title));
  const words = [path, name, tags]
    .flat()
    .flatMap((value) => (typeof value === "string" ? wordsOf(value) : []))
    .filter((word) => !inTitle.has(word));
  return [...new Set(words)].slice(0, LABEL_WORDS_MAX).join(" ");
}

function wordsOf(text: string): string[] {
  return text
    .toLowerCase()
    .split(NO_WORD)
    .filter((word) => word !== "");
}
