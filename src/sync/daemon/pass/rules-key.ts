import { hash } from "node:crypto";
import { METADATA_VERSION } from "../../send/observe.ts";
import { CONVERTER_VERSION, EXTRACTOR_VERSION } from "../../plan/versions.ts";
import type { RelativePath } from "../../plan/model.ts";
import type { Rules } from "../../scan/rules/rules.ts";

/** Descriptions of folders whose key is cached. */
const KEYS_MAX = 10_000;

/**
 * Returns a key for everything that turns the same bytes into a recipe. Under another value each file is read again.
 */
export function rulesKeyOf({ source }: Rules): number {
  const { collection, ownerId, settings, rules, allowSecrets } = source;
  const described = rules.flatMap(({ match, description }) =>
    description === undefined ? [] : [[match, description]],
  );
  return keyOf([
    EXTRACTOR_VERSION,
    CONVERTER_VERSION,
    collection,
    ownerId,
    settings,
    described,
    allowSecrets,
  ]);
}

function keyOf(parts: readonly unknown[]): number {
  // 48 bits, so that it is a whole number for SQLite and JavaScript; 0 means "never".
  return Number.parseInt(hash("sha256", JSON.stringify(parts)).slice(0, 12), 16) || 1;
}

/**
 * Returns such keys by path. For a service that takes metadata, what turns a file into metadata counts as well: the
 * configuration, and the descriptions of its folders.
 */
export function rulesKeysOf(rules: Rules, takesMetadata: () => boolean): (path: RelativePath) => number {
  const plain = rulesKeyOf(rules);
  const set = rules.source.rules.map(({ match, metadata }) => [match, metadata]);
  const known = new Map<string, number>();
  return (path) => {
    if (!takesMetadata()) return plain;
    const folderDescription = rules.folderDescription(path) ?? "";
    const found = known.get(folderDescription);
    if (found !== undefined) return found;
    if (known.size === KEYS_MAX) known.clear();
    const key = keyOf([plain, METADATA_VERSION, set, folderDescription]);
    known.set(folderDescription, key);
    return key;
  };
}
