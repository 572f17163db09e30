/** Part of a file: first and last byte, both included. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Reads a `Range` header against a file of `sizeBytes` (RFC 9110, 14.2). `whole`: no header, one that is malformed or
 * asks for several ranges, all of which may be ignored. `unsatisfiable`: it asks for nothing that the file has.
 */
export function readRange(
  header: string | undefined,
  sizeBytes: number,
): ByteRange | "whole" | "unsatisfiable" {
  const match = header === undefined ? null : /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(header.trim());
  if (match === null) return "whole";
  const [, from = "", to = ""] = match;
  if (from === "" && to === "") return "whole";
  if (from === "") {
    const length = Number(to);
    if (length === 0) return "unsatisfiable";
    return { first: Math.max(0, sizeBytes - length), last: sizeBytes - 1 };
  }
  const first = Number(from);
  const last = to === "" ? sizeBytes - 1 : Math.min(Number(to), sizeBytes - 1);
  if (to !== "" && Number(to) < first) return "whole";
  return first < sizeBytes ? { first, last } : "unsatisfiable";
}
