import type { NamedKind } from "./kinds.ts";

/** A larger file is not a shortcut. */
const SHORTCUT_BYTES_MAX = 64 * 1024;

/** Why a file is too large to become a resource, for a person; undefined if its size is acceptable. */
export function refusalBySize(named: NamedKind, sizeBytes: number, maxFileBytes: number): string | undefined {
  if (sizeBytes > maxFileBytes) return `${sizeBytes} bytes, larger than maxFileBytes (${maxFileBytes})`;
  if (named.kind === "link" && sizeBytes > SHORTCUT_BYTES_MAX)
    return `${sizeBytes} bytes, too large for a shortcut`;
  return undefined;
}
