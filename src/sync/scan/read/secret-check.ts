import type { UserMetadata } from "../../../wire/metadata.ts";
import { findSecret } from "../../../formats/secrets.ts";
import type { Rules } from "../rules/rules.ts";
import type { SourceDocument } from "./outcome.ts";

/** Returns why a document must not be sent, for a person and without the secret; undefined: nothing speaks against it. */
export type SecretCheck = (
  document: SourceDocument,
  rules: Rules,
  metadata: UserMetadata | undefined,
) => Promise<string | undefined>;

/** Checks the text of a document, its title, description and metadata. A file that is uploaded as it is has no text here. */
export const checkSecrets: SecretCheck = async (document, rules, metadata) => {
  const { path } = document.entry;
  if (rules.allowsSecrets(path)) return undefined;
  const { title, description } = document.recipe;
  const names = [title, description, JSON.stringify(metadata ?? {})].join("\n");
  const found = await findSecret(textOf(document));
  const inNames = found === undefined ? await findSecret(names) : undefined;
  const refused = (where: string, rule: string): string =>
    `${where} looks like a secret (${rule}), so it is not sent; remove it, or allow the file in its source of the configuration: "allowSecrets": ${JSON.stringify([`/${path}`])}`;
  if (found !== undefined) return refused(`line ${found.line}`, found.rule);
  return inNames && refused("its title, description or metadata", inNames.rule);
};

function textOf(document: SourceDocument): string {
  if (document.kind === "link") return document.url;
  if (document.kind === "file") return "";
  return document.content;
}
