import type { RecipeOrigin } from "../../wire/daemon-files.ts";
import { CONVERTER_VERSION } from "../read/recipe.ts";
import { isMail, kindOfName } from "../document/kinds.ts";
import type { Recipe, RelativePath } from "../plan/model.ts";
import { compileGlob } from "../rules/globs.ts";
import type { WatchedSource } from "../rules/rules.ts";

/** Finds the origin of each part of a file's recipe. Pure. */
export function originOf(path: RelativePath, recipe: Recipe, source: WatchedSource): RecipeOrigin {
  const matching = source.rules.filter(({ match }) => compileGlob(match).matchesFile(path));
  // As when the rules are applied, a later rule overrides an earlier one.
  const ruleWith = (part: "title" | "description" | "settings"): string | undefined => {
    const rule = matching.findLast((each) => each[part] !== undefined);
    return rule === undefined ? undefined : `the rule for \`${rule.match}\``;
  };
  return {
    title: ruleWith("title") ?? (recipe.title === path ? "the path" : "the document itself"),
    description:
      ruleWith("description") ?? (recipe.description === path ? "the path" : "the document itself"),
    settings: ruleWith("settings") ?? "the source's `settings`",
    tier: "the source's `collection`",
    ownerId: "the source's `ownerId`, or its default",
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
