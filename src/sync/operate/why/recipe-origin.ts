import type { RecipeOrigin } from "../../../wire/daemon-files.ts";
import { CONVERTER_VERSION } from "../../plan/versions.ts";
import { isMail, kindOfName } from "../../../formats/kinds.ts";
import type { Recipe, RelativePath } from "../../plan/model.ts";
import type { Rules } from "../../scan/rules/rules.ts";

/** Finds the origin of those parts of a file's recipe that the source does not decide alone. Pure. */
export function originOf(path: RelativePath, recipe: Recipe, rules: Rules): RecipeOrigin {
  const rule = rules.descriptionRule(path);
  const ownOrPath = (text: string): string => (text === path ? "the path" : "the document itself");
  return {
    title: ownOrPath(recipe.title),
    description: rule === undefined ? ownOrPath(recipe.description) : `the rule for \`${rule.match}\``,
    kind: kindWords(path, recipe),
  };
}

function kindWords(path: RelativePath, { kind, extractorVersion }: Recipe): string {
  if (isMail(kindOfName(path))) {
    if (kind === "file") return "it is a mail with PDFs or images, which the service reads";
    // Such a mail has none, or the service does not read mails, or an attachment can only be read here.
    if (extractorVersion === CONVERTER_VERSION)
      return "it is a mail, sent as text; a PDF or image attached to it is listed in the text, and not read";
  }
  if (kind === "content" && extractorVersion === CONVERTER_VERSION)
    return "its text is extracted and sent as Markdown";
  return KIND_WORDS[kind];
}

const KIND_WORDS: Readonly<Record<Recipe["kind"], string>> = {
  content: "its bytes are text",
  file: "its name and bytes say that it is a PDF or an image",
  link: "it is a shortcut that holds an address",
};
