import { SCOPE_NUMBER_MAX } from "../../../index/rows.ts";

/** Parts of each table that grows with the documents. The number is part of the schema: another one is a new schema. */
const PARTITIONS = 16;

/** Text in the order of its bytes, as in SQLite, whatever the locale of the database. */
const TEXT = 'text COLLATE "C"';

/** Returns the script of a table that is partitioned by its account. Its primary key begins with the account. */
function partitioned(name: string, columns: string): string {
  const parts = Array.from(
    { length: PARTITIONS },
    (_, at) =>
      `CREATE TABLE ${name}_${at} PARTITION OF ${name} FOR VALUES WITH (MODULUS ${PARTITIONS}, REMAINDER ${at});`,
  );
  return `CREATE TABLE ${name} (${columns}) PARTITION BY HASH (account_id);\n${parts.join("\n")}`;
}

/** The schema of a database, version by version. */
export interface Schema {
  /** Version that the first script creates. Earlier versions were never released and are refused. */
  readonly baseline: number;
  /** The first creates the tables; each later one leads from one version to the next. A released script never changes. */
  readonly scripts: readonly Script[];
}

/** One step from a version to the next. */
export interface Script {
  readonly sql: string;
  /**
   * Version of the oldest program that works with the tables after this step. A step that only adds leaves it as it is; one that
   * removes something comes a release after the last program that used it.
   */
  readonly minimum: number;
}

/**
 * Tables of the store. Names and meanings are those of the schema for SQLite. Tables that grow with the documents are partitioned by
 * account. Times are ISO texts, and JSON is text, because the code of both stores reads them the same way.
 */
export const SCHEMA: Schema = {
  baseline: 10,
  scripts: [
    {
      minimum: 10,
      sql: `
  CREATE TABLE account (
    id ${TEXT} PRIMARY KEY,
    name ${TEXT} NOT NULL UNIQUE
  );

  CREATE TABLE api_key (
    sha256 ${TEXT} PRIMARY KEY,
    id ${TEXT} NOT NULL UNIQUE,
    account_id ${TEXT} NOT NULL REFERENCES account (id),
    name ${TEXT} NOT NULL,
    hint ${TEXT} NOT NULL,
    scopes ${TEXT} NOT NULL,
    created_at ${TEXT} NOT NULL,
    expires_at ${TEXT},
    revoked_at ${TEXT}
  );
  CREATE INDEX api_key_of_account ON api_key (account_id);

  CREATE TABLE console_session (
    sha256 ${TEXT} PRIMARY KEY,
    key_sha256 ${TEXT} NOT NULL REFERENCES api_key (sha256),
    kind ${TEXT} NOT NULL CHECK (kind IN ('session', 'link')),
    expires_ms bigint NOT NULL
  );
  CREATE INDEX console_session_by_end ON console_session (expires_ms);
  CREATE INDEX console_session_of_key ON console_session (key_sha256);

  CREATE TABLE collection (
    id ${TEXT} PRIMARY KEY,
    account_id ${TEXT} NOT NULL REFERENCES account (id),
    tier ${TEXT} NOT NULL CHECK (tier IN ('fastest', 'moderate', 'high_accuracy')),
    UNIQUE (account_id, tier)
  );

  CREATE TABLE job (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue ${TEXT} NOT NULL,
    account_id ${TEXT} NOT NULL REFERENCES account (id),
    owner_id ${TEXT} NOT NULL DEFAULT '',
    line ${TEXT} NOT NULL,
    name ${TEXT} NOT NULL,
    is_failed boolean NOT NULL DEFAULT false,
    due_ms bigint NOT NULL,
    waits_from_ms bigint NOT NULL DEFAULT 0,
    created_ms bigint NOT NULL,
    changed_ms bigint NOT NULL DEFAULT 0,
    attempts integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    worker ${TEXT},
    token bigint NOT NULL DEFAULT 0,
    is_working boolean NOT NULL DEFAULT false,
    file_token ${TEXT},
    chars bigint NOT NULL DEFAULT 0,
    body ${TEXT} NOT NULL,
    pages ${TEXT}
  ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
  CREATE INDEX job_with_pages ON job (account_id) WHERE pages IS NOT NULL;
  CREATE INDEX job_of_line ON job (queue, line, number) WHERE NOT is_failed;
  CREATE INDEX job_due_in_line ON job (queue, line, due_ms, number) WHERE NOT is_failed;
  CREATE INDEX job_changed ON job (line, changed_ms, number) WHERE queue = 'ingest' AND NOT is_failed;
  CREATE INDEX job_of_account ON job (queue, account_id, created_ms) INCLUDE (chars) WHERE NOT is_failed;
  CREATE UNIQUE INDEX job_of_document ON job (account_id, name) WHERE queue = 'ingest';
  CREATE INDEX job_due ON job (queue, due_ms) WHERE NOT is_failed;
  CREATE INDEX job_failed ON job (queue, account_id, number) WHERE is_failed;
  CREATE INDEX job_of_file ON job (file_token) WHERE file_token IS NOT NULL;
  CREATE INDEX job_leased ON job (worker) WHERE worker IS NOT NULL;

  -- Names that one process holds at a time (kb/queue/claims.ts). Lost in a crash of the server, and written without a flush.
  CREATE UNLOGGED TABLE claim (
    name ${TEXT} PRIMARY KEY,
    holder ${TEXT} NOT NULL,
    ends_at timestamptz NOT NULL
  ) WITH (fillfactor = 70);

  -- Rates that processes share (kb/store/token-buckets.ts), each as the time at which its bucket is full, with what was given last.
  CREATE UNLOGGED TABLE token_bucket (
    name ${TEXT} PRIMARY KEY,
    full_at timestamptz NOT NULL,
    given integer NOT NULL
  ) WITH (fillfactor = 70);

  CREATE TABLE embedding_model (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fingerprint ${TEXT} NOT NULL UNIQUE
  );

  -- One owner's part of a collection; see kb/index/rows.ts. A transaction that writes to a scope locks its row first, so rows and
  -- counters are committed in order.
  CREATE SEQUENCE scope_number MAXVALUE ${SCOPE_NUMBER_MAX};
  CREATE TABLE scope (
    number bigint PRIMARY KEY DEFAULT nextval('scope_number'),
    collection_id ${TEXT} NOT NULL REFERENCES collection (id),
    owner_id ${TEXT} NOT NULL,
    next_sequence bigint NOT NULL DEFAULT 0,
    resources bigint NOT NULL DEFAULT 0 CHECK (resources >= 0),
    chunks bigint NOT NULL DEFAULT 0 CHECK (chunks >= 0),
    words bigint NOT NULL DEFAULT 0 CHECK (words >= 0),
    -- Grows with every merge, after which readers read the scope's parts anew.
    merged bigint NOT NULL DEFAULT 0,
    -- Grows with every change that a filter may depend on.
    refiltered bigint NOT NULL DEFAULT 0,
    -- Segments of the index of words, and chunks whose removal it notes: they decide about a merge.
    segments bigint NOT NULL DEFAULT 0,
    removed bigint NOT NULL DEFAULT 0,
    -- Number of the newest row of vector_change.
    vector_changes bigint NOT NULL DEFAULT 0,
    serving_model integer REFERENCES embedding_model (number),
    UNIQUE (collection_id, owner_id)
  ) WITH (fillfactor = 50);

  CREATE SEQUENCE resource_number;
  ${partitioned(
    "resource",
    `
    number bigint NOT NULL DEFAULT nextval('resource_number'),
    id ${TEXT} NOT NULL,
    account_id ${TEXT} NOT NULL,
    scope bigint NOT NULL,
    origin ${TEXT} NOT NULL CHECK (origin IN ('content', 'file', 'link')),
    title ${TEXT} NOT NULL,
    label ${TEXT} NOT NULL,
    description ${TEXT} NOT NULL,
    url ${TEXT},
    head ${TEXT} NOT NULL,
    settings ${TEXT} NOT NULL,
    created_at ${TEXT} NOT NULL,
    refreshed_at ${TEXT},
    updated_at ${TEXT} NOT NULL,
    is_deleted boolean NOT NULL DEFAULT false,
    version bigint NOT NULL,
    first_row bigint NOT NULL,
    chunks bigint NOT NULL,
    revision bigint NOT NULL DEFAULT 1,
    status ${TEXT} NOT NULL CHECK (status IN ('queued', 'chunked', 'error')),
    status_message ${TEXT},
    status_error ${TEXT},
    metadata ${TEXT} NOT NULL,
    file_metadata ${TEXT} NOT NULL,
    file_token ${TEXT},
    strategy_used ${TEXT},
    warning ${TEXT},
    sha256 bytea,
    locations ${TEXT},
    PRIMARY KEY (account_id, id)`,
  )}
  CREATE INDEX resource_by_number ON resource (account_id, number);
  CREATE INDEX resource_of_scope ON resource (scope, id) INCLUDE (status) WHERE NOT is_deleted;
  CREATE INDEX resource_by_update ON resource (scope, updated_at, id) INCLUDE (status) WHERE NOT is_deleted;
  CREATE INDEX resource_place ON resource (scope, number) INCLUDE (first_row, chunks) WHERE NOT is_deleted;
  CREATE INDEX resource_unfinished ON resource (scope, status) WHERE status <> 'chunked' AND NOT is_deleted;
  CREATE INDEX resource_deleted ON resource (scope, id) WHERE is_deleted;
  CREATE INDEX resource_deleted_by_time ON resource (updated_at) WHERE is_deleted;
  CREATE INDEX resource_of_file ON resource (file_token) WHERE file_token IS NOT NULL AND NOT is_deleted;
  CREATE INDEX resource_failed ON resource (account_id) WHERE status = 'error' AND NOT is_deleted;

  ${partitioned(
    "chunk",
    `
    account_id ${TEXT} NOT NULL,
    row bigint NOT NULL,
    resource bigint NOT NULL,
    start integer NOT NULL,
    line integer NOT NULL,
    words integer NOT NULL,
    headings ${TEXT} NOT NULL,
    text ${TEXT} NOT NULL,
    -- The text up to the next chunk, which completes the whole text (rows/parts.ts).
    gap ${TEXT} NOT NULL,
    PRIMARY KEY (account_id, row)`,
  )}

  -- A chunk has one vector per model: the old ones serve while those of a new model are made.
  ${partitioned(
    "chunk_vector",
    `
    account_id ${TEXT} NOT NULL,
    row bigint NOT NULL,
    model integer NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (account_id, row, model)`,
  )}
  -- Chunks whose vectors are of an older title of their document, with the revision that has the new title.
  ${partitioned(
    "stale_vector",
    `
    account_id ${TEXT} NOT NULL,
    row bigint NOT NULL,
    revision bigint NOT NULL,
    PRIMARY KEY (account_id, row)`,
  )}
  -- Packed vectors of the sentences of each chunk in collections of the tier high_accuracy, of one model.
  ${partitioned(
    "sentence_vectors",
    `
    account_id ${TEXT} NOT NULL,
    row bigint NOT NULL,
    model integer NOT NULL,
    vectors bytea NOT NULL,
    PRIMARY KEY (account_id, row)`,
  )}

  -- A segment of the index of words (kb/index/words) has chunks of one write, from its first row on.
  ${partitioned(
    "word_segment",
    `
    account_id ${TEXT} NOT NULL,
    first_row bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (account_id, first_row)`,
  )}
  -- Sequences of chunks that were removed, until a merge drops them.
  CREATE SEQUENCE word_removal_number;
  ${partitioned(
    "word_removal",
    `
    account_id ${TEXT} NOT NULL,
    scope bigint NOT NULL,
    number bigint NOT NULL DEFAULT nextval('word_removal_number'),
    first bigint NOT NULL,
    last bigint NOT NULL,
    PRIMARY KEY (account_id, scope, number)`,
  )}

  -- A run is merged from segments and runs. Two of its pages fill one of the database.
  CREATE SEQUENCE word_run_number;
  ${partitioned(
    "word_run",
    `
    account_id ${TEXT} NOT NULL,
    number bigint NOT NULL,
    scope bigint NOT NULL,
    -- Sequence of its first chunk.
    first bigint NOT NULL,
    rows bigint NOT NULL,
    sequences bytea NOT NULL,
    lengths bytea NOT NULL,
    directory bytea NOT NULL,
    filter bytea NOT NULL,
    PRIMARY KEY (account_id, scope, number)`,
  )}
  ${partitioned(
    "word_page",
    `
    account_id ${TEXT} NOT NULL,
    run bigint NOT NULL,
    page integer NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (account_id, run, page)`,
  )}
  -- Ranges of rows whose vectors were added or removed, for the codes in memory. Each scope counts from 1; only the newest remain.
  ${partitioned(
    "vector_change",
    `
    account_id ${TEXT} NOT NULL,
    scope bigint NOT NULL,
    number bigint NOT NULL,
    first_row bigint NOT NULL,
    last_row bigint NOT NULL,
    PRIMARY KEY (account_id, scope, number)`,
  )}
  -- What is compact already is not compressed.
  ALTER TABLE word_segment ALTER COLUMN data SET STORAGE EXTERNAL;
  ALTER TABLE word_page ALTER COLUMN data SET STORAGE PLAIN;
  ALTER TABLE chunk_vector ALTER COLUMN value SET STORAGE EXTERNAL;
  ALTER TABLE sentence_vectors ALTER COLUMN vectors SET STORAGE EXTERNAL;

  -- Every value of the metadata of live resources; kind distinguishes true from 1.
  ${partitioned(
    "metadata_value",
    `
    account_id ${TEXT} NOT NULL,
    scope bigint NOT NULL,
    path ${TEXT} NOT NULL,
    kind ${TEXT} NOT NULL CHECK (kind IN ('s', 'n', 'b', 'z')),
    number double precision,
    text ${TEXT},
    resource bigint NOT NULL`,
  )}
  CREATE INDEX metadata_value_by_text ON metadata_value (scope, path, kind, left(text, 200), resource) WHERE text IS NOT NULL;
  CREATE INDEX metadata_value_by_number ON metadata_value (scope, path, kind, number, resource) WHERE text IS NULL;
  CREATE INDEX metadata_value_of_resource ON metadata_value (scope, resource);

  ${partitioned(
    "kept_answer",
    `
    account_id ${TEXT} NOT NULL,
    key ${TEXT} NOT NULL,
    body_sha256 ${TEXT} NOT NULL,
    status integer NOT NULL,
    body ${TEXT} NOT NULL,
    kept_ms bigint NOT NULL,
    -- The resource whose text is in the body, so that its delete removes the text.
    text_of ${TEXT},
    -- The resource, or the file, that the body is about, so that an erasure finds the note.
    about ${TEXT},
    sequence bigint NOT NULL,
    PRIMARY KEY (account_id, key)`,
  )}
  CREATE INDEX kept_answer_by_age ON kept_answer (kept_ms);
  CREATE INDEX kept_answer_about ON kept_answer (about) WHERE about IS NOT NULL;
  CREATE INDEX kept_answer_of_account ON kept_answer (account_id, sequence);

  CREATE TABLE stored_file (
    token ${TEXT} PRIMARY KEY,
    account_id ${TEXT} NOT NULL REFERENCES account (id),
    name ${TEXT} NOT NULL,
    media_type ${TEXT} NOT NULL,
    declared_type ${TEXT},
    size_bytes bigint NOT NULL,
    sha256 ${TEXT} NOT NULL,
    created_at ${TEXT} NOT NULL,
    released_at ${TEXT},
    released_of ${TEXT}
  );
  CREATE INDEX stored_file_of_account ON stored_file (account_id);
  CREATE INDEX stored_file_by_use ON stored_file (greatest(created_at, coalesce(released_at, created_at)));

  CREATE TABLE webhook_endpoint (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id ${TEXT} NOT NULL UNIQUE,
    account_id ${TEXT} NOT NULL REFERENCES account (id),
    url ${TEXT} NOT NULL,
    description ${TEXT} NOT NULL,
    events ${TEXT} NOT NULL,
    secret ${TEXT} NOT NULL,
    enabled boolean NOT NULL,
    created_at ${TEXT} NOT NULL,
    updated_at ${TEXT} NOT NULL,
    delivered_at ${TEXT},
    problem ${TEXT}
  );
  CREATE INDEX webhook_endpoint_of_account ON webhook_endpoint (account_id);

  CREATE TABLE chat_thread (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id ${TEXT} NOT NULL REFERENCES account (id),
    agent_id ${TEXT} NOT NULL,
    thread_id ${TEXT} NOT NULL,
    used_at ${TEXT} NOT NULL,
    UNIQUE (account_id, agent_id, thread_id)
  );
  CREATE INDEX chat_thread_by_use ON chat_thread (used_at);
  CREATE INDEX chat_thread_of_agent ON chat_thread (account_id, agent_id, used_at, number);
  CREATE TABLE chat_turn (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread bigint NOT NULL REFERENCES chat_thread (number),
    message_id ${TEXT} NOT NULL UNIQUE,
    created_at ${TEXT} NOT NULL,
    "user" ${TEXT} NOT NULL,
    answer ${TEXT} NOT NULL,
    -- What people see of the answer, as JSON (chat/threads.ts).
    shown ${TEXT} NOT NULL,
    -- Ids of the resources whose passages the answer was given.
    reads text[] COLLATE "C" NOT NULL
  );
  CREATE INDEX chat_turn_of_thread ON chat_turn (thread, number);
  CREATE TABLE chat_image (
    thread bigint NOT NULL REFERENCES chat_thread (number),
    token ${TEXT} NOT NULL,
    linked_at ${TEXT} NOT NULL,
    position bigint NOT NULL,
    after_turn bigint NOT NULL,
    PRIMARY KEY (thread, token)
  );
  CREATE INDEX chat_image_by_age ON chat_image (linked_at);
  CREATE INDEX chat_image_of_file ON chat_image (token);
  `,
    },
  ],
};
