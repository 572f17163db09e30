/** Parameters of an address that hold a password. */
const PASSWORD = "password";

/** Returns why a text is no address of a PostgreSQL database, without the text; undefined if it is one. */
export function databaseProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^postgres(?:ql)?:$/.test(url.protocol))
    return "expected an address such as postgres://user@host/database";
  if (!isDecodable(url.hostname) || !isDecodable(url.pathname))
    return "expected two hexadecimal digits behind each % of the address";
  const hosts = [decodeURIComponent(url.hostname), ...url.searchParams.getAll("host")];
  if (hosts.some((host) => host.includes(",")))
    return "expected one host: to reach the server that is the primary at present, use a name or a proxy that follows it (docs/SCALE.md)";
  if (url.pathname.length <= 1) return "expected the name of the database at the end of the address";
  return undefined;
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** Reports whether the address of a database contains a password. */
export function hasPassword(address: string): boolean {
  const url = new URL(address);
  return url.password !== "" || url.searchParams.has(PASSWORD);
}

/** Returns the same address with this password. As a parameter, because an address without a host has no place for one. */
export function withPassword(address: string, password: string): string {
  const url = new URL(address);
  url.searchParams.set(PASSWORD, password);
  return url.href;
}

/** Returns the name of a database within its server. */
export function databaseName(address: string): string {
  return decodeURIComponent(new URL(address).pathname.slice(1));
}

/** Returns the host of a database; undefined: it is reached through a Unix socket. */
export function databaseHost(address: string): string | undefined {
  const url = new URL(address);
  const host = url.searchParams.get("host") ?? decodeURIComponent(url.hostname);
  return host === "" || host.startsWith("/") ? undefined : host;
}
