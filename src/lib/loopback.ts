const NAMES: ReadonlySet<string> = new Set(["localhost", "::1", "[::1]"]);

/** Whether a host, in plain or URL form, is reachable from this machine only. */
export function isLoopback(host: string): boolean {
  return NAMES.has(host) || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** The address a server listens on, and its public URL if a proxy has another one. */
export interface ListenAddress {
  readonly host: string;
  readonly publicUrl?: string | undefined;
}

/**
 * Whether other machines can reach the server: directly by its host, or through a local proxy, as its public URL shows.
 */
export function isExposed({ host, publicUrl }: ListenAddress): boolean {
  if (!isLoopback(host)) return true;
  // The configuration schema refuses an invalid URL with a message of its own.
  const hostname = publicUrl === undefined ? undefined : URL.parse(publicUrl)?.hostname;
  return hostname !== undefined && !isLoopback(hostname);
}

/** Returns the host by which this machine reaches a server that listens on `host`; a wildcard becomes loopback. */
export function reachedAt(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::" || host === "[::]") return "[::1]";
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}
