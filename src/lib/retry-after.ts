/**
 * Parses a `Retry-After` header into milliseconds: seconds, with a fraction as some services send it, or a date (RFC 9110,
 * section 10.2.3). Compares a date with the service's clock if the response has a `Date` header, because ours may differ.
 * Undefined for a missing or malformed header. Unbounded: the caller applies its own limit.
 */
export function retryAfterMs(
  header: string | string[] | null | undefined,
  nowMs: number,
  serviceDate?: string,
): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? "";
  if (/^\d{1,9}(?:\.\d{1,9})?$/.test(text)) return Number(text) * 1000;
  const atMs = Date.parse(text);
  if (Number.isNaN(atMs)) return undefined;
  const serviceMs = Date.parse(serviceDate ?? "");
  return Math.max(0, atMs - (Number.isNaN(serviceMs) ? nowMs : serviceMs));
}
