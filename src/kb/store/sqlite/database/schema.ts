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
  // Work after the answer, webhooks, metadata, what is kept for a while.
  `
  -- Grows with every change of the record: what an ETag is made of.
  ALTER TABLE resource ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE resource ADD COLUMN status TEXT NOT NULL DEFAULT 'chunked'
    CHECK (status IN ('queued', 'chunked', 'error'));
  -- Why the last text could not be taken in; shown where the status is error.
  ALTER TABLE resource ADD COLUMN status_message TEXT;
  ALTER TABLE resource ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata));
  ALTER TABLE resource ADD COLUMN file_token TEXT;
  CREATE INDEX resource_of_file ON resource (file_token) WHERE file_token IS NOT NULL AND is_deleted = 0;
  CREATE INDEX resource_deleted ON resource (scope, id) WHERE is_deleted = 1;
  -- Where the chunks of the resources lie that a filter lets through, without reading their rows.
  CREATE INDEX resource_place ON resource (scope, number, first_row, chunks) WHERE is_deleted = 0;
  CREATE INDEX resource_failed ON resource (account_id) WHERE status = 'error' AND is_deleted = 0;
  -- The token of a file's address stands between the last slash and the one before it.
  UPDATE resource SET file_token = substr(url, length(rtrim(url, replace(url, '/', ''))) - 43, 43) WHERE origin = 'file';
  -- When a resource last stopped using the file.
  ALTER TABLE stored_file ADD COLUMN released_at TEXT;

  -- Grows with every change of what a filter looks at, so that what one found may be kept.
  ALTER TABLE scope ADD COLUMN refiltered INTEGER NOT NULL DEFAULT 0;
  -- Every value of the metadata of live resources; kind keeps true apart from 1. The resource's own row tells which
  -- values it has here, so that no second index is needed to find them. See docs/adr.
  CREATE TABLE metadata_value (
    scope INTEGER NOT NULL,
    path TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('s', 'n', 'b', 'z')),
    value ANY NOT NULL,
    resource INTEGER NOT NULL,
    PRIMARY KEY (scope, path, kind, value, resource)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE ingest_job (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    resource INTEGER NOT NULL REFERENCES resource (number),
    kind TEXT NOT NULL CHECK (kind IN ('create', 'update')),
    begun INTEGER NOT NULL DEFAULT 0,
    postponed INTEGER NOT NULL DEFAULT 0,
    due_ms INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    file_token TEXT,
    chars INTEGER NOT NULL,
    -- Last, so that what comes before is read without it.
    body TEXT NOT NULL CHECK (json_valid(body))
  ) STRICT;
  CREATE INDEX ingest_job_of_resource ON ingest_job (resource, number, due_ms);
  CREATE INDEX ingest_job_chars ON ingest_job (chars);
  CREATE INDEX ingest_job_due ON ingest_job (due_ms);
  CREATE INDEX ingest_job_of_file ON ingest_job (file_token) WHERE file_token IS NOT NULL;

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

  CREATE TABLE webhook_delivery (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id TEXT NOT NULL REFERENCES account (id),
    -- Null: the target is an address of the delivery's own.
    endpoint INTEGER REFERENCES webhook_endpoint (number),
    target TEXT CHECK (json_valid(target)),
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'dead')),
    attempts INTEGER NOT NULL DEFAULT 0,
    due_ms INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    problem TEXT,
    body TEXT NOT NULL,
    CHECK ((endpoint IS NULL) <> (target IS NULL))
  ) STRICT;
  CREATE INDEX webhook_delivery_due ON webhook_delivery (endpoint, due_ms) WHERE state = 'waiting';
  CREATE INDEX webhook_delivery_dead ON webhook_delivery (account_id, number) WHERE state = 'dead';
  CREATE INDEX webhook_delivery_of_account ON webhook_delivery (account_id, state, endpoint);
  `,
  // Keys that can be listed, revoked and rotated; what the servers of links said.
  `
  ALTER TABLE api_key ADD COLUMN id TEXT NOT NULL DEFAULT '';
  UPDATE api_key SET id = lower(hex(randomblob(12)));
  CREATE UNIQUE INDEX api_key_by_id ON api_key (id);
  CREATE INDEX api_key_of_account ON api_key (account_id);
  -- The first characters of the key, for people; empty for keys made before this was kept.
  ALTER TABLE api_key ADD COLUMN hint TEXT NOT NULL DEFAULT '';
  ALTER TABLE api_key ADD COLUMN revoked_at TEXT;

  CREATE TABLE link_fetch (
    number INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    url TEXT NOT NULL,
    text_sha256 TEXT NOT NULL,
    etag TEXT,
    last_modified TEXT,
    UNIQUE (account_id, url)
  ) STRICT;
  `,
  // The vectors of the sentences of each chunk in collections of the tier high_accuracy: those of one model, packed.
  `
  CREATE TABLE sentence_vectors (
    row INTEGER PRIMARY KEY REFERENCES chunk (row),
    model INTEGER NOT NULL REFERENCES embedding_model (number),
    vectors BLOB NOT NULL
  ) STRICT;
  `,
  // How a text was split, and which model's vectors answer where.
  `
  -- The strategy by which the chunks came about; null: the one of the settings, before others were there.
  ALTER TABLE resource ADD COLUMN strategy_used TEXT;
  -- The model whose vectors a search here compares with; another one takes its place when every chunk has its vector.
  ALTER TABLE scope ADD COLUMN serving_model INTEGER REFERENCES embedding_model (number);
  UPDATE scope SET serving_model = (
    SELECT model FROM vector WHERE row BETWEEN scope.number << 32 AND (scope.number << 32) + 4294967295
    ORDER BY vector.row LIMIT 1
  );
  -- Chunks whose vectors are of an older title of their document, and the revision of the document that has the new one.
  CREATE TABLE stale_vector (
    row INTEGER PRIMARY KEY REFERENCES chunk (row),
    revision INTEGER NOT NULL
  ) STRICT;
  `,
  // What a deleted record's purge asks: whether a chunk refers to it. Without the index that reads all chunks, for each.
  `
  CREATE INDEX chunk_of_resource ON chunk (resource);
  `,
  // Agents, their threads, and questions that are answered after their request.
  `
  CREATE TABLE agent (
    account_id TEXT NOT NULL REFERENCES account (id),
    id TEXT NOT NULL,
    body TEXT NOT NULL CHECK (json_valid(body)),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
  ) STRICT, WITHOUT ROWID;

  -- The agent may be one of the configuration, which has no row.
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
    PRIMARY KEY (thread, token)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX chat_image_by_age ON chat_image (linked_at);
  CREATE INDEX chat_image_of_file ON chat_image (token);

  CREATE TABLE chat_job (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id TEXT NOT NULL REFERENCES account (id),
    message_id TEXT NOT NULL,
    begun INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL,
    body TEXT NOT NULL CHECK (json_valid(body))
  ) STRICT;
  `,
  // Documents whose text was read in part.
  `
  ALTER TABLE resource ADD COLUMN warning TEXT;
  `,
  // Answers that hold a text are found when it is deleted.
  `
  -- The resource whose text stands in the body; null where none does.
  ALTER TABLE kept_answer ADD COLUMN text_of TEXT;
  UPDATE kept_answer SET text_of = CASE WHEN json_valid(body) THEN coalesce(
    CASE WHEN json_extract(body, '$.resource.content') <> '' THEN json_extract(body, '$.resource.id') END,
    CASE WHEN json_extract(body, '$.data.content') <> '' THEN json_extract(body, '$.data._id') END
  ) END;
  CREATE INDEX kept_answer_of_text ON kept_answer (text_of) WHERE text_of IS NOT NULL;
  `,
  // The code of what a document could not be taken in for, beside the words in status_message.
  `
  ALTER TABLE resource ADD COLUMN status_error TEXT;
  `,
  // What the sender of a file called it.
  `
  ALTER TABLE stored_file ADD COLUMN declared_type TEXT;
  `,
  // Each account has a share of the queues.
  `
  ALTER TABLE ingest_job ADD COLUMN account_id TEXT REFERENCES account (id);
  UPDATE ingest_job SET account_id = (SELECT account_id FROM resource WHERE number = ingest_job.resource);
  DROP INDEX ingest_job_chars;
  CREATE INDEX ingest_job_of_account ON ingest_job (account_id, chars);
  CREATE INDEX chat_job_of_account ON chat_job (account_id);
  `,
  // Notes of requests are bounded by account, and numbers of owners that have nothing any more are used again.
  `
  -- Ascends with time in each account.
  ALTER TABLE kept_answer ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;
  UPDATE kept_answer SET sequence = counted.sequence FROM (
    SELECT number, row_number() OVER (PARTITION BY account_id ORDER BY number) AS sequence FROM kept_answer
  ) AS counted WHERE counted.number = kept_answer.number;
  CREATE INDEX kept_answer_of_account ON kept_answer (account_id, sequence);
  CREATE INDEX scope_empty ON scope (number) WHERE resources = 0;
  `,
  // The order of a thread's images, and the questions that they came with.
  `
  -- Ascends within the thread; 0 of all that were linked before this column.
  ALTER TABLE chat_image ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
  -- It came with the thread's first turn of a higher number.
  ALTER TABLE chat_image ADD COLUMN after_turn INTEGER NOT NULL DEFAULT 0;
  UPDATE chat_image SET after_turn = coalesce((
    SELECT max(number) FROM chat_turn
    WHERE chat_turn.thread = chat_image.thread AND chat_turn.created_at < chat_image.linked_at), 0);
  `,
];
