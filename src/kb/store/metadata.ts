import type { MetadataScalar } from "../../wire/filter.ts";
import type { UserMetadata } from "../../wire/metadata.ts";

/** A value of metadata with its path. Each item of a list has the list's path. */
export interface MetadataEntry {
  readonly path: string;
  readonly value: MetadataScalar;
}

/** Returns all values of an object with their paths, each pair once. Keys of nested objects are joined by a dot. */
export function metadataEntries(metadata: UserMetadata): MetadataEntry[] {
  const found = new Map<string, MetadataEntry>();
  const walk = (path: string, value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) walk(path, item);
    else if (typeof value === "object" && value !== null) {
      for (const [key, inner] of Object.entries(value)) walk(path === "" ? key : `${path}.${key}`, inner);
    } else {
      const scalar = value as MetadataScalar; // JSON holds nothing else
      found.set(JSON.stringify([path, scalar]), { path, value: scalar });
    }
  };
  walk("", metadata);
  return [...found.values()];
}
