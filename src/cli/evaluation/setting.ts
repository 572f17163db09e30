import { InvalidArgumentError } from "commander";
import { z } from "zod";
import { schemaProblems } from "../../lib/schema-issue.ts";
import type { SearchQuery } from "../../sync/remote/remote.ts";
import { SettingFields } from "../../wire/evaluation.ts";

/** The fields of a search that an evaluation compares. A filter is checked by the service. */
const Fields = z.strictObject({
  ...SettingFields,
  filter: z.record(z.string(), z.unknown()).optional(),
});

/** How questions are asked. */
export interface Setting extends Pick<SearchQuery, "filter" | "context"> {
  /** The setting in words; empty for a search without further fields. */
  readonly name: string;
}

/** A search without further fields. */
export const PLAIN: Setting = { name: "" };

/** Parses `--setting`, and adds it to those before it. */
export function settingOption(text: string, before: readonly Setting[] = []): readonly Setting[] {
  const given = parsed(text);
  const read = Fields.safeParse(given);
  if (!read.success) {
    const [problem] = schemaProblems(read.error, given);
    throw new InvalidArgumentError(
      `${problem?.path ?? ""}: ${problem?.message ?? ""}; such as {"expand": "section", "max_tokens": 1000}`,
    );
  }
  const { filter, ...context } = read.data;
  const entries = Object.entries(read.data).filter(([, value]) => value !== undefined);
  const name = entries
    .map(([field, value]) => `${field}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
  const setting = { name, ...(filter && { filter }), ...(Object.keys(context).length > 0 && { context }) };
  return [...before.filter((each) => each.name !== name), setting];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError('expected the fields of a search as JSON, such as {"expand": "section"}');
  }
}

/** Names a tier with its setting. */
export function settingName({ tier, setting }: { readonly tier: string; readonly setting?: string }): string {
  return setting === undefined || setting === "" ? tier : `${tier} ${setting}`;
}
