/**
 * Milliseconds that a `Retry-After` header asks for: seconds, with a fraction as some services send it, or a date (RFC
 * 9110, section 10.2.3). A date is compared with the service's clock where the answer has a `Date` header, for ours may
 * differ. Undefined for no header and for one that makes no sense. Not bounded: the caller knows how long it may wait.
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
