import { KEY_HEADER, ROUTES } from "../../wire/routes.ts";

/** A search, as its request has it. */
export interface SearchRequest {
  readonly query: string;
  readonly collection_id: string;
  readonly owner_id: string;
  readonly top_k: number;
  readonly score?: number;
}

/** The search as a command for a shell. The key stands in a variable: the console does not know it. */
export function asCurl(origin: string, body: SearchRequest): string {
  return [
    `curl ${quoted(`${origin}${ROUTES.query}`)}`,
    `-H "${KEY_HEADER}: $KBSYNC_KEY"`,
    "-H 'content-type: application/json'",
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(" \\\n  ");
}

/** The search as a call of the tool `search` of `kbsync mcp`, which knows neither collections nor a least score. */
export function asMcp({ query, owner_id: source, top_k }: SearchRequest): string {
  return JSON.stringify({ name: "search", arguments: { query, source, top_k } }, undefined, 2);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
