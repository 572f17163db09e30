import type Database from "better-sqlite3";
import type { Schema } from "../../../../lib/upgrade.ts";
import { encodeSegment } from "../../../index/words/segment.ts";
import { titleKeyOf } from "../../title-key.ts";
import { NAMES } from "../../rows/parts.ts";

/** Defines the functions that the scripts use. */
export function defineFunctions(db: Database.Database): void {
  db.function("title_key", { deterministic: true, directOnly: true }, (title) => titleKeyOf(String(title)));
  db.aggregate("encode_segment", {
    start: (): string[] => [],
    step: (texts: string[], text: string) => [...texts, text],
    result: (texts: string[]) => encodeSegment(texts).data,
    directOnly: true,
  });
}

/** Tables of the store. A release that changes them adds a script; a released script never changes. */
export const SCHEMA: Schema = {
  baseline: 18,
  scripts: [
    `
  CREATE TABLE account (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE api_key (
    sha256 TEXT PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES account (id),
    name TEXT NOT NULL,
    -- The first characters of the key, for people to recognise it.
    hint TEXT NOT NULL,
    scopes TEXT NOT NULL CHECK (json_valid(scopes)),
    created_at TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX api_key_of_account ON api_key (account_id);

  CREATE TABLE collection (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    tier TEXT NOT NULL CHECK (tier IN ('fastest', 'moderate', 'high_accuracy')),
    UNIQUE (account_id, tier)
  ) STRICT, WITHOUT ROWID;

  -- One owner's part of a collection; see rows.ts. Counts live records only; BM25 reads the counts.
  CREATE TABLE scope (
    number INTEGER PRIMARY KEY,
    collection_id TEXT NOT NULL REFERENCES collection (id),
    owner_id TEXT NOT NULL,
    next_sequence INTEGER NOT NULL DEFAULT 0,
    resources INTEGER NOT NULL DEFAULT 0 CHECK (resources >= 0),
    chunks INTEGER NOT NULL DEFAULT 0 CHECK (chunks >= 0),
    words INTEGER NOT NULL DEFAULT 0 CHECK (words >= 0),
    -- Grows when existing chunks get other terms, which makes posting lists in memory stale.
    retitled INTEGER NOT NULL DEFAULT 0,
    -- Grows with every change that a filter may depend on, so that the result of a filter can be cached.
    refiltered INTEGER NOT NULL DEFAULT 0,
    -- The model whose vectors searches compare with; another one replaces it when every chunk has a vector of that model.
    serving_model INTEGER REFERENCES embedding_model (number),
    UNIQUE (collection_id, owner_id)
  ) STRICT;
  -- Numbers of owners without any record are reused.
  CREATE INDEX scope_empty ON scope (number) WHERE resources = 0;

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
    chunks INTEGER NOT NULL,
    -- Grows with every change of the record; ETags contain it.
    revision INTEGER NOT NULL DEFAULT 1,
    status TEXT NOT NULL DEFAULT 'chunked' CHECK (status IN ('queued', 'chunked', 'error')),
    -- Why the last ingest failed, as a message and a code; shown if the status is error.
    status_message TEXT,
    status_error TEXT,
    metadata TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata)),
    file_token TEXT,
    -- The strategy that split the text into its chunks; null before the first text.
    strategy_used TEXT,
    -- Which parts of the document could not be read.
    warning TEXT
  ) STRICT;
  CREATE INDEX resource_of_scope ON resource (scope, id) WHERE is_deleted = 0;
  CREATE INDEX resource_deleted ON resource (scope, id) WHERE is_deleted = 1;
  CREATE INDEX resource_of_file ON resource (file_token) WHERE file_token IS NOT NULL AND is_deleted = 0;
  -- Covers the query for the rows of the resources that match a filter.
  CREATE INDEX resource_place ON resource (scope, number, first_row, chunks) WHERE is_deleted = 0;
  CREATE INDEX resource_failed ON resource (account_id) WHERE status = 'error' AND is_deleted = 0;

  -- Text, headings and the resource's title and label are analysed together into chunk_index; words is their number.
  CREATE TABLE chunk (
    row INTEGER PRIMARY KEY,
    resource INTEGER NOT NULL REFERENCES resource (number),
    start INTEGER NOT NULL,
    words INTEGER NOT NULL,
    headings TEXT NOT NULL,
    text TEXT NOT NULL,
    -- The text up to the next chunk, which completes the whole text (parts.ts).
    gap TEXT NOT NULL
  ) STRICT;
  -- The purge of a deleted record checks whether a chunk refers to it; without the index that scans all chunks.
  CREATE INDEX chunk_of_resource ON chunk (resource);

  -- The rows of each term, and whether it is heavy there (index-text.ts). The text itself is in chunk.
  CREATE VIRTUAL TABLE chunk_index USING fts5 (
    terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
  );
  -- Fewer, larger merges than by default (4): an initial load does 5 % less work, and searches read few more segments.
  INSERT INTO chunk_index (chunk_index, rank) VALUES ('automerge', 8);

  CREATE TABLE embedding_model (
    number INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE
  ) STRICT;

  -- A chunk has one vector per model: the old ones serve while those of a new model are made.
  CREATE TABLE vector (
    number INTEGER PRIMARY KEY,
    row INTEGER NOT NULL REFERENCES chunk (row),
    model INTEGER NOT NULL REFERENCES embedding_model (number),
    value BLOB NOT NULL,
    UNIQUE (row, model)
  ) STRICT;

  -- Ranges of rows whose vectors were added or removed, for the searchers' codes in memory. Only the newest remain.
  CREATE TABLE vector_change (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    scope INTEGER NOT NULL,
    first_row INTEGER NOT NULL,
    last_row INTEGER NOT NULL
  ) STRICT;

  -- Chunks whose vectors are of an older title of their document, with the revision that has the new title.
  CREATE TABLE stale_vector (
    row INTEGER PRIMARY KEY REFERENCES chunk (row),
    revision INTEGER NOT NULL
  ) STRICT;

  -- Packed vectors of the sentences of each chunk in collections of the tier high_accuracy, of one model.
  CREATE TABLE sentence_vectors (
    row INTEGER PRIMARY KEY REFERENCES chunk (row),
    model INTEGER NOT NULL REFERENCES embedding_model (number),
    vectors BLOB NOT NULL
  ) STRICT;

  CREATE TABLE stored_file (
    token TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    created_at TEXT NOT NULL,
    -- When a resource last stopped using the file.
    released_at TEXT,
    -- The media type that the sender declared.
    declared_type TEXT
  ) STRICT, WITHOUT ROWID;

  -- Every value of the metadata of live resources; kind distinguishes true from 1. The values of a resource are known from
  -- its own row, so no second index is needed to find them. See docs/adr.
  CREATE TABLE metadata_value (
    scope INTEGER NOT NULL,
    path TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('s', 'n', 'b', 'z')),
    value ANY NOT NULL,
    resource INTEGER NOT NULL,
    PRIMARY KEY (scope, path, kind, value, resource)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE link_fetch (
    number INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    url TEXT NOT NULL,
    text_sha256 TEXT NOT NULL,
    etag TEXT,
    last_modified TEXT,
    UNIQUE (account_id, url)
  ) STRICT;

  CREATE TABLE kept_answer (
    number INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    key TEXT NOT NULL,
    body_sha256 TEXT NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    kept_ms INTEGER NOT NULL,
    -- The resource whose text is in the body, so that its delete removes the text; null if the body has no text.
    text_of TEXT,
    -- Ascends with time in each account.
    sequence INTEGER NOT NULL,
    UNIQUE (account_id, key)
  ) STRICT;
  CREATE INDEX kept_answer_by_age ON kept_answer (kept_ms);
  CREATE INDEX kept_answer_of_text ON kept_answer (text_of) WHERE text_of IS NOT NULL;
  CREATE INDEX kept_answer_of_account ON kept_answer (account_id, sequence);

  CREATE TABLE webhook_endpoint (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES account (id),
    url TEXT NOT NULL,
    description TEXT NOT NULL,
    events TEXT NOT NULL CHECK (json_valid(events)),
    secrets TEXT NOT NULL CHECK (json_valid(secrets)),
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    delivered_at TEXT,
    problem TEXT
  ) STRICT;
  CREATE INDEX webhook_endpoint_of_account ON webhook_endpoint (account_id);

  CREATE TABLE agent (
    account_id TEXT NOT NULL REFERENCES account (id),
    id TEXT NOT NULL,
    body TEXT NOT NULL CHECK (json_valid(body)),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
  ) STRICT, WITHOUT ROWID;

  -- The agent may be from the configuration, which has no row.
  CREATE TABLE chat_thread (
    number INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    agent_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    used_at TEXT NOT NULL,
    UNIQUE (account_id, agent_id, thread_id)
  ) STRICT;
  CREATE INDEX chat_thread_by_use ON chat_thread (used_at);

  CREATE TABLE chat_turn (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    thread INTEGER NOT NULL REFERENCES chat_thread (number),
    message_id TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    user TEXT NOT NULL,
    answer TEXT NOT NULL
  ) STRICT;
  CREATE INDEX chat_turn_of_thread ON chat_turn (thread, number);

  CREATE TABLE chat_image (
    thread INTEGER NOT NULL REFERENCES chat_thread (number),
    token TEXT NOT NULL,
    linked_at TEXT NOT NULL,
    -- Ascends within the thread.
    position INTEGER NOT NULL,
    -- The image came with the first turn of the thread whose number is higher.
    after_turn INTEGER NOT NULL,
    PRIMARY KEY (thread, token)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX chat_image_by_age ON chat_image (linked_at);
  CREATE INDEX chat_image_of_file ON chat_image (token);

  -- The queue: work that continues after its request was answered.
  CREATE TABLE job (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES account (id),
    owner_id TEXT NOT NULL DEFAULT '',
    line TEXT NOT NULL,
    name TEXT NOT NULL,
    -- A dead letter.
    is_dead INTEGER NOT NULL DEFAULT 0 CHECK (is_dead IN (0, 1)),
    -- 0: due at once.
    due_ms INTEGER NOT NULL,
    waits_from_ms INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    -- The worker that has the lease; null: none.
    worker TEXT,
    token INTEGER NOT NULL DEFAULT 0,
    leased_until_ms INTEGER NOT NULL DEFAULT 0,
    is_working INTEGER NOT NULL DEFAULT 0 CHECK (is_working IN (0, 1)),
    problem TEXT,
    file_token TEXT,
    chars INTEGER NOT NULL DEFAULT 0,
    -- The last column, so that the others are read without it.
    body TEXT NOT NULL CHECK (json_valid(body))
  ) STRICT;
  CREATE INDEX job_of_line ON job (queue, is_dead, line, due_ms, number);
  CREATE INDEX job_of_account ON job (queue, is_dead, account_id, created_ms, chars);
  CREATE INDEX job_in_order ON job (queue, is_dead, number);
  CREATE INDEX job_of_file ON job (file_token) WHERE file_token IS NOT NULL;
  CREATE INDEX job_due ON job (queue, is_dead, due_ms);
  CREATE INDEX job_leased ON job (worker) WHERE worker IS NOT NULL;
  `,
    `
  -- Line of the text in which the chunk starts, from 1; null for chunks from before this script, until an update.
  ALTER TABLE chunk ADD COLUMN line INTEGER;
  -- SHA-256 of the text; null for texts from before this script, until an update, and for deleted resources.
  ALTER TABLE resource ADD COLUMN sha256 BLOB;
  -- Where the text of each page begins; null for a text without pages.
  ALTER TABLE resource ADD COLUMN pages TEXT CHECK (json_valid(pages));
  `,
    `
  -- Words of the metadata by which the resource is found (label.ts); empty for metadata from before this script, until a change.
  ALTER TABLE resource ADD COLUMN label TEXT NOT NULL DEFAULT '';
  `,
    `
  -- Where the parts of the text begin, and where the source file has them (StoredLocation); null if that is unknown.
  ALTER TABLE resource RENAME COLUMN pages TO locations;
  UPDATE resource SET locations = (
    SELECT json_group_array(json_object('start', value, 'page', key + 1)) FROM json_each(locations)
    WHERE value IS NOT NULL
  ) WHERE locations IS NOT NULL;
  `,
    `
  -- Id of the resource that last stopped using the file; null: none did, or it did before this script.
  ALTER TABLE stored_file ADD COLUMN released_of TEXT;
  -- Ids of the resources whose passages the answer was given, as JSON; null: from before this script.
  ALTER TABLE chat_turn ADD COLUMN reads TEXT CHECK (json_valid(reads));
  `,
    `
  -- Every search counts what its scope has not finished.
  CREATE INDEX resource_unfinished ON resource (scope, status) WHERE status <> 'chunked' AND is_deleted = 0;
  `,
    `
  -- Changes of documents, for readers that follow them. Each account counts its own from 1. Old ones are removed, but not
  -- the newest of an account: a reader that has read everything continues after it.
  CREATE TABLE document_change (
    account_id TEXT NOT NULL REFERENCES account (id),
    ordinal INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('created', 'updated', 'deleted')),
    resource_id TEXT NOT NULL,
    collection_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    at TEXT NOT NULL,
    version INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    status TEXT NOT NULL,
    -- Of the text; null without one.
    sha256 BLOB,
    -- The string "path" of the metadata.
    path TEXT,
    PRIMARY KEY (account_id, ordinal)
  ) STRICT, WITHOUT ROWID;
  -- An erasure removes what the changes of its documents say of them.
  CREATE INDEX document_change_of_resource ON document_change (resource_id);
  `,
    `
  -- What models of other services have cost, in billionths of the currency of the prices.
  CREATE TABLE spending (
    day TEXT NOT NULL,
    spender TEXT NOT NULL,
    nanos INTEGER NOT NULL,
    PRIMARY KEY (day, spender)
  ) STRICT, WITHOUT ROWID;
  `,
    `
  -- Sessions of the console, and links that open one; see SessionRecord.
  CREATE TABLE console_session (
    sha256 TEXT PRIMARY KEY,
    key_sha256 TEXT NOT NULL REFERENCES api_key (sha256),
    kind TEXT NOT NULL CHECK (kind IN ('session', 'link')),
    expires_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX console_session_by_end ON console_session (expires_ms);
  `,
    `
  -- Of a grant (GrantFacts); all null for any other key.
  ALTER TABLE api_key ADD COLUMN parent_id TEXT;
  ALTER TABLE api_key ADD COLUMN family_sha256 TEXT;
  ALTER TABLE api_key ADD COLUMN refresh_sha256 TEXT;
  ALTER TABLE api_key ADD COLUMN access_until TEXT;
  `,
    `
  -- What the document's file says about itself; metadata overrides it. Filters find both.
  ALTER TABLE resource ADD COLUMN file_metadata TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(file_metadata));
  `,
    `
  -- The index of words (kb/index/words). A segment has chunks of one write, from its first row on.
  CREATE TABLE word_segment (
    first_row INTEGER PRIMARY KEY,
    data BLOB NOT NULL
  ) STRICT;
  -- A run is merged from segments and runs; its terms are in the pages whose numbers begin with its own.
  CREATE TABLE word_run (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    scope INTEGER NOT NULL,
    -- Sequence of its first chunk.
    first INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    sequences BLOB NOT NULL,
    lengths BLOB NOT NULL,
    directory BLOB NOT NULL,
    filter BLOB NOT NULL
  ) STRICT;
  CREATE INDEX word_run_of_scope ON word_run (scope, first, rows);
  CREATE TABLE word_page (
    number INTEGER PRIMARY KEY,
    data BLOB NOT NULL
  ) STRICT;
  -- Sequences of chunks that were removed, until a merge drops them.
  CREATE TABLE word_removal (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    scope INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX word_removal_of_scope ON word_removal (scope, number, first, last);
  -- Grows with every merge, after which readers read the scope's parts anew.
  ALTER TABLE scope RENAME COLUMN retitled TO merged;
  INSERT INTO word_segment (first_row, data)
    SELECT min(row), encode_segment(${NAMES} || char(10) || headings || char(10) || text ORDER BY row)
    FROM chunk JOIN resource ON resource.number = chunk.resource
    GROUP BY chunk.resource, (row - first_row) / 128;
  DROP TABLE chunk_index;
  `,
    `
  -- What accounts used, by hour since 1970 (UTC); see HourUsage. Searches is a JSON array of counts.
  CREATE TABLE usage (
    account_id TEXT NOT NULL REFERENCES account (id),
    hour INTEGER NOT NULL,
    documents INTEGER NOT NULL,
    queued INTEGER NOT NULL,
    searches TEXT NOT NULL CHECK (json_valid(searches)),
    PRIMARY KEY (account_id, hour)
  ) STRICT, WITHOUT ROWID;
  `,
    `
  -- What people see of the answer, as JSON (chat/threads.ts); null: from before this script.
  ALTER TABLE chat_turn ADD COLUMN shown TEXT CHECK (json_valid(shown));
  CREATE INDEX chat_thread_of_agent ON chat_thread (account_id, agent_id, used_at, number);
  `,
    `
  -- Lists of documents read one index per order, with the status, so that a page costs what it shows.
  ALTER TABLE resource ADD COLUMN title_key TEXT NOT NULL DEFAULT '';
  UPDATE resource SET title_key = title_key(title);
  DROP INDEX resource_of_scope;
  CREATE INDEX resource_of_scope ON resource (scope, id, status) WHERE is_deleted = 0;
  CREATE INDEX resource_by_update ON resource (scope, updated_at, id, status) WHERE is_deleted = 0;
  CREATE INDEX resource_by_title ON resource (scope, title_key, id, status) WHERE is_deleted = 0;
  `,
    `
  -- Work on many documents; see BatchRecords.
  CREATE TABLE batch (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES account (id),
    kind TEXT NOT NULL CHECK (kind IN ('delete', 'retry')),
    total INTEGER NOT NULL,
    is_stopped INTEGER NOT NULL DEFAULT 0 CHECK (is_stopped IN (0, 1)),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
  ) STRICT;
  CREATE INDEX batch_of_account ON batch (account_id, number);
  -- A document is removed when the work on it succeeded; code and message are of one on which it failed.
  CREATE TABLE batch_item (
    batch INTEGER NOT NULL REFERENCES batch (number),
    position INTEGER NOT NULL,
    resource_id TEXT NOT NULL,
    code TEXT,
    message TEXT,
    PRIMARY KEY (batch, position)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX batch_item_pending ON batch_item (batch, position) WHERE code IS NULL;
  CREATE INDEX batch_item_of_resource ON batch_item (resource_id);
  `,
    `
  -- What models have cost for each account, from this script on; spending has the sums of all.
  CREATE TABLE account_spending (
    account_id TEXT NOT NULL REFERENCES account (id),
    day TEXT NOT NULL,
    nanos INTEGER NOT NULL,
    PRIMARY KEY (account_id, day)
  ) STRICT, WITHOUT ROWID;
  `,
    `
  -- What codes are centred on (kb/index/codes.ts); null while no run has codes of the model.
  ALTER TABLE embedding_model ADD COLUMN mean BLOB;
  -- Codes of the vectors of a range of rows, so that a start need not make them from all vectors.
  CREATE TABLE code_run (
    number INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    model INTEGER NOT NULL REFERENCES embedding_model (number),
    first_row INTEGER NOT NULL,
    last_row INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (scope, last_row, model)
  ) STRICT;
  -- Ranges of rows whose vectors changed since their run was written.
  CREATE TABLE code_change (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    scope INTEGER NOT NULL,
    first_row INTEGER NOT NULL,
    last_row INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX code_change_of_scope ON code_change (scope, first_row, last_row);
  `,
  ],
};
