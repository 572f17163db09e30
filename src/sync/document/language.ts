import { certainLanguage } from "../../lib/language.ts";
import { frontMatterEnd } from "../../lib/markup/front-matter.ts";
import { type DocumentFields, NO_FIELDS } from "./fields.ts";

/** Returns the fields of a document with the language that its text is certainly in, unless they name one. */
export function withLanguage(fields: DocumentFields | undefined, text: string): DocumentFields | undefined {
  const { language, lang } = fields?.values ?? {};
  if (language !== undefined || lang !== undefined) return fields;
  const found = certainLanguage(text.slice(frontMatterEnd(text)));
  return found === undefined ? fields : { ...(fields ?? NO_FIELDS), language: found };
}
