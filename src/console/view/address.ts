/** An address of the console: a page, and what it shows. Both are in the part after `#`, which browsers do not send. */
export interface Route {
  /** Names of the path: `["documents", "65f…"]`. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

/** Reads the part of an address after `#`. */
export function readRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const names = path.split("/").filter((name) => name !== "");
  return { path: names.map(decoded), query: new URLSearchParams(query) };
}

/** Writes an address. Leaves out what is undefined or empty. */
export function addressOf(
  path: readonly string[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const set = Object.entries(query).filter((pair): pair is [string, string] => (pair[1] ?? "") !== "");
  const text = new URLSearchParams(set).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // typed by a person
  }
}
