/**
 * Schema of the store, one script a version, forward only: version n is reached by running the first n scripts.
 * A script that has been released is never changed; a new one is added behind it.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE account (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE api_key (
    sha256 TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    name TEXT NOT NULL,
    scopes TEXT NOT NULL CHECK (json_valid(scopes)),
    created_at TEXT NOT NULL,
    expires_at TEXT
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE collection (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    tier TEXT NOT NULL CHECK (tier IN ('fastest', 'moderate', 'high_accuracy')),
    UNIQUE (account_id, tier)
  ) STRICT, WITHOUT ROWID;

  -- One owner's part of a collection; see rows.ts. The counts are of what is live; BM25 reads them.
  CREATE TABLE scope (
    number INTEGER PRIMARY KEY,
    collection_id TEXT NOT NULL REFERENCES collection (id),
    owner_id TEXT NOT NULL,
    next_sequence INTEGER NOT NULL DEFAULT 0,
    resources INTEGER NOT NULL DEFAULT 0 CHECK (resources >= 0),
    chunks INTEGER NOT NULL DEFAULT 0 CHECK (chunks >= 0),
    words INTEGER NOT NULL DEFAULT 0 CHECK (words >= 0),
    -- Grows when chunks that stay get other terms, so that posting lists in memory are read anew.
    retitled INTEGER NOT NULL DEFAULT 0,
    UNIQUE (collection_id, owner_id)
  ) STRICT;

  CREATE TABLE resource (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES account (id),
    scope INTEGER NOT NULL REFERENCES scope (number),
    origin TEXT NOT NULL CHECK (origin IN ('content', 'file', 'link')),
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    url TEXT,
    -- The text before the first chunk: white space, or all of a text without chunks.
    head TEXT NOT NULL,
    settings TEXT NOT NULL CHECK (json_valid(settings)),
    created_at TEXT NOT NULL,
    refreshed_at TEXT,
    updated_at TEXT NOT NULL,
    is_deleted INTEGER NOT NULL DEFAULT 0 CHECK (is_deleted IN (0, 1)),
    version INTEGER NOT NULL DEFAULT 1,
    first_row INTEGER NOT NULL,
    chunks INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX resource_of_scope ON resource (scope, id) WHERE is_deleted = 0;

  -- Text, title and headings of a chunk are analysed together into chunk_index; words is their number.
  CREATE TABLE chunk (
    row INTEGER PRIMARY KEY,
    resource INTEGER NOT NULL REFERENCES resource (number),
    start INTEGER NOT NULL,
    words INTEGER NOT NULL,
    headings TEXT NOT NULL,
    text TEXT NOT NULL,
    -- What follows the chunk up to the next one: with it the chunks give the whole text (parts.ts).
    gap TEXT NOT NULL
  ) STRICT;

  -- Which rows hold which term, and whether it is heavy there (index-text.ts); the text itself stands in chunk.
  CREATE VIRTUAL TABLE chunk_index USING fts5 (
    terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
  );
  -- Fewer, larger merges than by default (4): 5 % less work in an initial load, and searches read few more segments.
  INSERT INTO chunk_index (chunk_index, rank) VALUES ('automerge', 8);

  CREATE TABLE embedding_model (
    number INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE
  ) STRICT;

  -- A chunk has one vector for each model: the old ones serve while a new model's are made.
  CREATE TABLE vector (
    number INTEGER PRIMARY KEY,
    row INTEGER NOT NULL REFERENCES chunk (row),
    model INTEGER NOT NULL REFERENCES embedding_model (number),
    value BLOB NOT NULL,
    UNIQUE (row, model)
  ) STRICT;

  -- Ranges of rows whose vectors came or went, for the searchers' codes in memory. The newest few are kept.
  CREATE TABLE vector_change (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    scope INTEGER NOT NULL,
    first_row INTEGER NOT NULL,
    last_row INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE stored_file (
    token TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    created_at TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE kept_answer (
    number INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    key TEXT NOT NULL,
    body_sha256 TEXT NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    kept_ms INTEGER NOT NULL,
    UNIQUE (account_id, key)
  ) STRICT;
  CREATE INDEX kept_answer_by_age ON kept_answer (kept_ms);
  `,
];
