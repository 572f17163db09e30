/**
 * An address in one spelling: a service may write one down as its library does, and one on this machine tells its files'
 * addresses under the port that it has now.
 */
export function spelledAddress(url: string | null | undefined): string | undefined {
  if (url === null || url === undefined) return undefined;
  const parsed = URL.parse(url);
  if (parsed === null) return url;
  if (!isLoopback(parsed)) return parsed.href;
  return `loopback${parsed.pathname}${parsed.search}${parsed.hash}`;
}

/** Whether an address is of this machine alone. */
export function isLoopback({ hostname }: URL): boolean {
  return LOOPBACK.has(hostname);
}

const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);
