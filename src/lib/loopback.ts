const NAMES: ReadonlySet<string> = new Set(["localhost", "::1", "[::1]"]);

/** Whether a host, as given or as a URL writes it, is reached from this machine alone. */
export function isLoopback(host: string): boolean {
  return NAMES.has(host) || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Where something listens, and the address that it gives out where that is another one (a proxy's). */
export interface ListenAddress {
  readonly host: string;
  readonly publicUrl?: string | undefined;
}

/**
 * Whether others than this machine reach what listens there: by the host, or through a proxy on this machine, of which the
 * address tells that is given out.
 */
export function isExposed({ host, publicUrl }: ListenAddress): boolean {
  if (!isLoopback(host)) return true;
  // What is no address at all is refused where it is read, with words of its own.
  const hostname = publicUrl === undefined ? undefined : URL.parse(publicUrl)?.hostname;
  return hostname !== undefined && !isLoopback(hostname);
}

/** The host by which this machine itself reaches what listens on a host: one that means all addresses is none. */
export function reachedAt(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::" || host === "[::]") return "[::1]";
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}
