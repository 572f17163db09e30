const NAMES: ReadonlySet<string> = new Set(["localhost", "::1", "[::1]"]);

/** Whether a host, as given or as a URL writes it, is reached from this machine alone. */
export function isLoopback(host: string): boolean {
  return NAMES.has(host) || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** The host by which this machine itself reaches what listens on a host: one that means all addresses is none. */
export function reachedAt(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::" || host === "[::]") return "[::1]";
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}
