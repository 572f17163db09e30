import { oneLine } from "../../../lib/one-line.ts";
import { DESCRIPTION_CHARS_MAX, TITLE_CHARS_MAX } from "../../../wire/constants.ts";
import { cutText } from "../../plan/marker.ts";
import { EXTRACTOR_VERSION } from "../../plan/versions.ts";
import type { DocumentKind, Recipe, RelativePath } from "../../plan/model.ts";
import type { Rules } from "../rules/rules.ts";
import type { Naming } from "../../../formats/title.ts";

/**
 * Composes the recipe of a document from the title and description in the text and the descriptions of the rules. An empty
 * title or description becomes the path, because services require both.
 */
export function composeRecipe(
  path: RelativePath,
  kind: DocumentKind,
  naming: Naming,
  rules: Rules,
  extractorVersion = EXTRACTOR_VERSION,
): Recipe {
  const title = oneLine(naming.title ?? "") || path;
  const fill = (template: string): string =>
    template.replaceAll(/\{(path|name|title)\}/g, (_, word: string) => {
      if (word === "path") return path;
      return word === "name" ? path.slice(path.lastIndexOf("/") + 1) : title;
    });

  const template = rules.descriptionRule(path)?.description;
  const description = (template === undefined ? (naming.description ?? "") : fill(template)).trim();
  const { collection, ownerId, settings } = rules.source;
  return {
    title: cutText(title, TITLE_CHARS_MAX).toWellFormed(),
    description: cutText(description || path, DESCRIPTION_CHARS_MAX).toWellFormed(),
    settings,
    tier: collection,
    ownerId,
    kind,
    extractorVersion,
  };
}
