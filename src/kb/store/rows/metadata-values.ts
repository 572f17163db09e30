import type { MetadataScalar } from "../../../wire/filter.ts";

/** Kinds of values in `metadata_value`. SQLite would treat true and 1 as equal. */
type ValueKind = "s" | "n" | "b" | "z";

/** Converts a value to the columns of the table. */
export function storedValue(value: MetadataScalar): {
  readonly kind: ValueKind;
  readonly value: string | number;
} {
  if (value === null) return { kind: "z", value: 0 };
  if (typeof value === "boolean") return { kind: "b", value: value ? 1 : 0 };
  return typeof value === "number" ? { kind: "n", value } : { kind: "s", value };
}
