import type { Schema } from "../../../../lib/upgrade.ts";

/**
 * Tables of the store. A release that changes them adds a script; a released script never changes. Long columns come last in their
 * tables, so that the others are read without them.
 */
export const SCHEMA: Schema = {
  baseline: 42,
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

  -- Sessions of the console, and links that open one; see SessionRecord.
  CREATE TABLE console_session (
    sha256 TEXT PRIMARY KEY,
    key_sha256 TEXT NOT NULL REFERENCES api_key (sha256),
    kind TEXT NOT NULL CHECK (kind IN ('session', 'link')),
    expires_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX console_session_by_end ON console_session (expires_ms);

  CREATE TABLE collection (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    tier TEXT NOT NULL CHECK (tier IN ('fastest', 'moderate', 'high_accuracy')),
    UNIQUE (account_id, tier)
  ) STRICT, WITHOUT ROWID;

  -- One owner's part of a collection; see kb/index/rows.ts. Counts live records only; BM25 reads the counts.
  CREATE TABLE scope (
    number INTEGER PRIMARY KEY,
    collection_id TEXT NOT NULL REFERENCES collection (id),
    owner_id TEXT NOT NULL,
    next_sequence INTEGER NOT NULL DEFAULT 0,
    resources INTEGER NOT NULL DEFAULT 0 CHECK (resources >= 0),
    chunks INTEGER NOT NULL DEFAULT 0 CHECK (chunks >= 0),
    words INTEGER NOT NULL DEFAULT 0 CHECK (words >= 0),
    -- Grows with every merge, after which readers read the scope's parts anew.
    merged INTEGER NOT NULL DEFAULT 0,
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
    -- Words of the metadata by which the resource is found (label.ts).
    label TEXT NOT NULL DEFAULT '',
    description TEXT NOT NULL,
    url TEXT,
    file_token TEXT,
    settings TEXT NOT NULL CHECK (json_valid(settings)),
    created_at TEXT NOT NULL,
    refreshed_at TEXT,
    updated_at TEXT NOT NULL,
    is_deleted INTEGER NOT NULL DEFAULT 0 CHECK (is_deleted IN (0, 1)),
    version INTEGER NOT NULL DEFAULT 1,
    -- Grows with every change of the record; ETags contain it.
    revision INTEGER NOT NULL DEFAULT 1,
    first_row INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'chunked' CHECK (status IN ('queued', 'chunked', 'error')),
    -- Why the last ingest failed, as a message and a code; shown if the status is error.
    status_message TEXT,
    status_error TEXT,
    -- The strategy that split the text into its chunks; null before the first text.
    strategy_used TEXT,
    -- Which parts of the document could not be read.
    warning TEXT,
    -- SHA-256 of the text; null without one.
    sha256 BLOB,
    metadata TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata)),
    -- What the document's file says about itself; metadata overrides it. Filters find both.
    file_metadata TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(file_metadata)),
    -- Where the parts of the text begin, and where the source file has them (StoredLocation); null if that is unknown.
    locations TEXT CHECK (json_valid(locations)),
    -- The text before the first chunk: white space, or all of a text without chunks.
    head TEXT NOT NULL
  ) STRICT;
  -- Lists of documents read one index per order, with the status, so that a page costs what it shows.
  CREATE INDEX resource_of_scope ON resource (scope, id, status) WHERE is_deleted = 0;
  CREATE INDEX resource_by_update ON resource (scope, updated_at, id, status) WHERE is_deleted = 0;
  CREATE INDEX resource_deleted ON resource (scope, id) WHERE is_deleted = 1;
  CREATE INDEX resource_of_file ON resource (file_token) WHERE file_token IS NOT NULL AND is_deleted = 0;
  -- Covers the query for the rows of the resources that match a filter.
  CREATE INDEX resource_place ON resource (scope, number, first_row, chunks) WHERE is_deleted = 0;
  -- Every search counts what its scope has not finished.
  CREATE INDEX resource_unfinished ON resource (scope, status) WHERE status <> 'chunked' AND is_deleted = 0;
  CREATE INDEX resource_failed ON resource (account_id) WHERE status = 'error' AND is_deleted = 0;

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

  -- Text, headings and the resource's title and label are analysed together into the index of words; words is their number.
  CREATE TABLE chunk (
    row INTEGER PRIMARY KEY,
    resource INTEGER NOT NULL REFERENCES resource (number),
    start INTEGER NOT NULL,
    -- Line of the text in which the chunk starts, from 1.
    line INTEGER NOT NULL,
    words INTEGER NOT NULL,
    headings TEXT NOT NULL,
    text TEXT NOT NULL,
    -- The text up to the next chunk, which completes the whole text (parts.ts).
    gap TEXT NOT NULL
  ) STRICT;
  -- The purge of a deleted record checks whether a chunk refers to it; without the index that scans all chunks.
  CREATE INDEX chunk_of_resource ON chunk (resource);

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

  CREATE TABLE embedding_model (
    number INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    -- What codes are centred on (kb/index/codes.ts); null while no run has codes of the model.
    mean BLOB
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

  CREATE TABLE stored_file (
    token TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    -- The media type that the sender declared.
    declared_type TEXT,
    size_bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    created_at TEXT NOT NULL,
    -- When a resource last stopped using the file, and the id of that resource; null: none did.
    released_at TEXT,
    released_of TEXT
  ) STRICT, WITHOUT ROWID;

  -- The queue: work that continues after its request was answered.
  CREATE TABLE job (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES account (id),
    owner_id TEXT NOT NULL DEFAULT '',
    line TEXT NOT NULL,
    name TEXT NOT NULL,
    -- A webhook message that was given up; it is only counted.
    is_failed INTEGER NOT NULL DEFAULT 0 CHECK (is_failed IN (0, 1)),
    -- When it may be leased: the end of a wait, or of the lease that a worker has. 0: at once.
    due_ms INTEGER NOT NULL,
    -- When that wait or lease began, or the work under the lease was last known to go on.
    waits_from_ms INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL,
    -- When it was put; in the queue 'ingest' the last change of its document.
    changed_ms INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    -- The worker that has the lease; null: none.
    worker TEXT,
    token INTEGER NOT NULL DEFAULT 0,
    is_working INTEGER NOT NULL DEFAULT 0 CHECK (is_working IN (0, 1)),
    file_token TEXT,
    chars INTEGER NOT NULL DEFAULT 0,
    body TEXT NOT NULL CHECK (json_valid(body)),
    -- The pages of its file that were read already (Queue.keepPages).
    pages TEXT
  ) STRICT;
  CREATE INDEX job_with_pages ON job (account_id) WHERE pages IS NOT NULL;
  CREATE INDEX job_of_line ON job (queue, is_failed, line, due_ms, number);
  CREATE INDEX job_changed ON job (queue, is_failed, line, changed_ms, number, due_ms);
  CREATE INDEX job_of_account ON job (queue, is_failed, account_id, created_ms, chars);
  -- One entry for each document.
  CREATE UNIQUE INDEX job_of_document ON job (account_id, name) WHERE queue = 'ingest';
  CREATE INDEX job_of_file ON job (file_token) WHERE file_token IS NOT NULL;
  CREATE INDEX job_due ON job (queue, is_failed, due_ms);
  CREATE INDEX job_leased ON job (worker) WHERE worker IS NOT NULL;

  -- What requests with an Idempotency-Key did; see StoredAnswer.
  CREATE TABLE kept_answer (
    number INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    key TEXT NOT NULL,
    body_sha256 TEXT NOT NULL,
    status INTEGER NOT NULL,
    kept_ms INTEGER NOT NULL,
    -- The resource whose text is in the body, so that its delete removes the text; null if the body has no text.
    text_of TEXT,
    -- Ascends with time in each account.
    sequence INTEGER NOT NULL,
    body TEXT NOT NULL,
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
    secret TEXT NOT NULL,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    delivered_at TEXT,
    problem TEXT
  ) STRICT;
  CREATE INDEX webhook_endpoint_of_account ON webhook_endpoint (account_id);

  CREATE TABLE chat_thread (
    number INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    agent_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    used_at TEXT NOT NULL,
    UNIQUE (account_id, agent_id, thread_id)
  ) STRICT;
  CREATE INDEX chat_thread_by_use ON chat_thread (used_at);
  CREATE INDEX chat_thread_of_agent ON chat_thread (account_id, agent_id, used_at, number);

  CREATE TABLE chat_turn (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    thread INTEGER NOT NULL REFERENCES chat_thread (number),
    message_id TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    -- Ids of the resources whose passages the answer was given, as JSON.
    reads TEXT NOT NULL CHECK (json_valid(reads)),
    user TEXT NOT NULL,
    answer TEXT NOT NULL,
    -- What people see of the answer, as JSON (chat/threads.ts).
    shown TEXT NOT NULL CHECK (json_valid(shown))
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
  `,
  ],
};
