/** Paths of the operations, below the address group each belongs to (api, db or resources). */
export const ROUTES = {
  /** api: operation 1, upload a file. */
  upload: "/image/processing/upload",
  /** db: operations 2, 4, 5 (with `/<doc_id>` for the latter two). */
  resource: "/api/rag/resource",
  /** db: operation 6, list. */
  byCollection: "/api/rag/resource/by-collection",
  /** db: an addition, the account's collections. */
  collections: "/api/rag/collections",
  /** db: an addition, the owners with resources in the account's collections. */
  owners: "/api/rag/owners",
  /** db: an addition, an owner's documents without their texts. */
  documents: "/api/rag/documents",
  /** api: operation 3, search. */
  query: "/rag/query",
  /** api: operation 7, chat completion. */
  chat: "/api/v2/model/chat/completion",
  /** api: operation 8, upload an image for chat. */
  chatUpload: "/files/upload",
  /** api: an addition, the agents of chat completion; `/<id>` below. */
  agents: "/v1/agents",
  /** api: additions, the threads of an agent; their turns at `/turns` below. */
  threads: "/v1/threads",
  /** api: an addition, the keys of the caller's account; `/<id>` and `/<id>/rotate` below. */
  keys: "/v1/keys",
  /** api: an addition, this API as an OpenAPI document. */
  openApi: "/openapi.json",
  /** api: an addition, endpoints for events; `/<id>` and `/<id>/test` below. */
  webhooks: "/v1/webhooks",
  /** api: an addition, follows the account as server-sent events. */
  events: "/v1/events",
  /** api: an addition, the key of the caller. */
  me: "/v1/me",
  /** api: an addition, signs in to the console and out again. */
  consoleSession: "/console/session",
  /** api: an addition, links that sign in to the console. */
  consoleLinks: "/console/links",
  /** resources: prefix of uploaded files. */
  files: "/files",
} as const;

/** The header that carries the caller's key. Its value is never logged. */
export const KEY_HEADER = "pauthkey";
/** The console sends it, with the value 1, in requests that change something: a form on another page cannot. */
export const CONSOLE_HEADER = "x-kbsync-console";
/** A retry carries the same value; services that support it repeat the first answer. */
export const IDEMPOTENCY_HEADER = "idempotency-key";
/** The header of every answer with the id of its request, which the service's log also holds. */
export const REQUEST_ID_HEADER = "x-request-id";
