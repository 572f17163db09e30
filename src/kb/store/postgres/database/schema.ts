/** Text in the order of its bytes, as in SQLite, whatever the locale of the database. */
const TEXT = 'text COLLATE "C"';

/** Parts of each table that grows with the documents. */
const PARTS = 16;

/** SQL that creates a table which is partitioned by account. Its primary key begins with the account. */
function partitioned(name: string, columns: string): string {
  const parts = Array.from(
    { length: PARTS },
    (_, at) =>
      `CREATE TABLE ${name}_${at} PARTITION OF ${name} FOR VALUES WITH (MODULUS ${PARTS}, REMAINDER ${at});`,
  );
  return `CREATE TABLE ${name} (account_id ${TEXT} NOT NULL, ${columns}) PARTITION BY HASH (account_id);
  ${parts.join("\n  ")}`;
}

/** The schema of a database, version by version. */
export interface Schema {
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
  scripts: [
    {
      minimum: 1,
      sql: `
  CREATE TABLE account (
    id ${TEXT} PRIMARY KEY,
    name ${TEXT} NOT NULL UNIQUE,
    -- Ordinal of the newest change of a document. A transaction that adds one locks the row, so ordinals commit in order.
    changes bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50);

  CREATE TABLE api_key (
    sha256 ${TEXT} PRIMARY KEY,
    id ${TEXT} NOT NULL UNIQUE,
    account_id ${TEXT} NOT NULL REFERENCES account (id),
    name ${TEXT} NOT NULL,
    hint ${TEXT} NOT NULL,
    scopes ${TEXT} NOT NULL,
    created_at ${TEXT} NOT NULL,
    expires_at ${TEXT},
    revoked_at ${TEXT},
    parent_id ${TEXT},
    family_sha256 ${TEXT},
    refresh_sha256 ${TEXT},
    access_until ${TEXT}
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

  CREATE TABLE embedding_model (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fingerprint ${TEXT} NOT NULL UNIQUE,
    -- What the codes in code_run are centred on; null while there are none.
    mean bytea
  );

  CREATE TABLE scope (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id ${TEXT} NOT NULL REFERENCES account (id),
    collection_id ${TEXT} NOT NULL REFERENCES collection (id),
    owner_id ${TEXT} NOT NULL,
    next_sequence bigint NOT NULL DEFAULT 0,
    resources bigint NOT NULL DEFAULT 0 CHECK (resources >= 0),
    chunks bigint NOT NULL DEFAULT 0 CHECK (chunks >= 0),
    words bigint NOT NULL DEFAULT 0 CHECK (words >= 0),
    merged bigint NOT NULL DEFAULT 0,
    refiltered bigint NOT NULL DEFAULT 0,
    -- Segments of the index of words, and chunks whose removal it notes: what decides about a merge.
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
    scope bigint NOT NULL,
    origin ${TEXT} NOT NULL CHECK (origin IN ('content', 'file', 'link')),
    title ${TEXT} NOT NULL,
    title_key ${TEXT} NOT NULL,
    label ${TEXT} NOT NULL,
    description ${TEXT} NOT NULL,
    url ${TEXT},
    head ${TEXT} NOT NULL,
    settings ${TEXT} NOT NULL,
    created_at ${TEXT} NOT NULL,
    refreshed_at ${TEXT},
    updated_at ${TEXT} NOT NULL,
    is_deleted boolean NOT NULL DEFAULT false,
    version bigint NOT NULL DEFAULT 1,
    first_row bigint NOT NULL,
    chunks bigint NOT NULL,
    revision bigint NOT NULL DEFAULT 1,
    status ${TEXT} NOT NULL DEFAULT 'chunked' CHECK (status IN ('queued', 'chunked', 'error')),
    status_message ${TEXT},
    status_error ${TEXT},
    metadata ${TEXT} NOT NULL DEFAULT '{}',
    file_metadata ${TEXT} NOT NULL DEFAULT '{}',
    file_token ${TEXT},
    strategy_used ${TEXT},
    warning ${TEXT},
    sha256 bytea,
    locations ${TEXT},
    PRIMARY KEY (account_id, id)`,
  )}
  CREATE UNIQUE INDEX resource_by_number ON resource (account_id, number);
  CREATE INDEX resource_of_scope ON resource (account_id, scope, id) INCLUDE (number, status) WHERE NOT is_deleted;
  CREATE INDEX resource_deleted ON resource (account_id, scope, id) WHERE is_deleted;
  CREATE INDEX resource_by_update ON resource (account_id, scope, updated_at, id) INCLUDE (number, status) WHERE NOT is_deleted;
  -- A title may be longer than an entry of an index.
  CREATE INDEX resource_by_title ON resource (account_id, scope, left(title_key, 200), id) WHERE NOT is_deleted;
  CREATE INDEX resource_unfinished ON resource (account_id, scope, status) WHERE status <> 'chunked' AND NOT is_deleted;
  CREATE INDEX resource_failed ON resource (account_id) WHERE status = 'error' AND NOT is_deleted;
  CREATE INDEX resource_of_file ON resource (file_token) WHERE file_token IS NOT NULL AND NOT is_deleted;

  ${partitioned(
    "chunk",
    `
    row bigint NOT NULL,
    resource bigint NOT NULL,
    start bigint NOT NULL,
    words integer NOT NULL,
    line bigint,
    headings ${TEXT} NOT NULL,
    text ${TEXT} NOT NULL,
    gap ${TEXT} NOT NULL,
    PRIMARY KEY (account_id, row)`,
  )}

  -- Every value of the metadata of live resources. \`value\` has strings (kind s), \`number\` the other kinds.
  ${partitioned(
    "metadata_value",
    `
    scope bigint NOT NULL,
    resource bigint NOT NULL,
    path ${TEXT} NOT NULL,
    kind ${TEXT} NOT NULL CHECK (kind IN ('s', 'n', 'b', 'z')),
    value ${TEXT},
    number double precision`,
  )}
  -- A value may be longer than an entry of an index.
  CREATE INDEX metadata_value_of_path ON metadata_value (account_id, scope, path, kind, left(value, 200), number, resource);
  CREATE INDEX metadata_value_of_resource ON metadata_value (account_id, scope, resource);

  ${partitioned("word_segment", "first_row bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (account_id, first_row)")}
  CREATE SEQUENCE word_run_number;
  ${partitioned(
    "word_run",
    `
    number bigint NOT NULL DEFAULT nextval('word_run_number'),
    scope bigint NOT NULL,
    first bigint NOT NULL,
    rows bigint NOT NULL,
    sequences bytea NOT NULL,
    lengths bytea NOT NULL,
    directory bytea NOT NULL,
    filter bytea NOT NULL,
    PRIMARY KEY (account_id, scope, number)`,
  )}
  -- Two pages of a run fill one of the database.
  ${partitioned("word_page", "run bigint NOT NULL, page integer NOT NULL, data bytea NOT NULL, PRIMARY KEY (account_id, run, page)")}
  CREATE SEQUENCE word_removal_number;
  ${partitioned(
    "word_removal",
    `
    scope bigint NOT NULL,
    number bigint NOT NULL DEFAULT nextval('word_removal_number'),
    first bigint NOT NULL,
    last bigint NOT NULL,
    PRIMARY KEY (account_id, scope, number)`,
  )}
  -- What is compact already is not compressed.
  ALTER TABLE word_segment ALTER COLUMN data SET STORAGE EXTERNAL;
  ALTER TABLE word_page ALTER COLUMN data SET STORAGE PLAIN;

  ${partitioned(
    "vector",
    "row bigint NOT NULL, model integer NOT NULL, value bytea NOT NULL, PRIMARY KEY (account_id, row, model)",
  )}
  ALTER TABLE vector ALTER COLUMN value SET STORAGE EXTERNAL;
  -- Each scope counts its changes from 1. Only the newest remain.
  ${partitioned(
    "vector_change",
    `
    scope bigint NOT NULL,
    number bigint NOT NULL,
    first_row bigint NOT NULL,
    last_row bigint NOT NULL,
    PRIMARY KEY (account_id, scope, number)`,
  )}
  ${partitioned("stale_vector", "row bigint NOT NULL, revision bigint NOT NULL, PRIMARY KEY (account_id, row)")}
  ${partitioned(
    "sentence_vectors",
    "row bigint NOT NULL, model integer NOT NULL, vectors bytea NOT NULL, PRIMARY KEY (account_id, row)",
  )}
  ALTER TABLE sentence_vectors ALTER COLUMN vectors SET STORAGE EXTERNAL;

  CREATE TABLE link_fetch (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id ${TEXT} NOT NULL REFERENCES account (id),
    url ${TEXT} NOT NULL,
    text_sha256 ${TEXT} NOT NULL,
    etag ${TEXT},
    last_modified ${TEXT}
  );
  -- An address may be longer than an entry of an index.
  CREATE UNIQUE INDEX link_fetch_of_url ON link_fetch (account_id, md5(url));

  CREATE TABLE usage (
    account_id ${TEXT} NOT NULL REFERENCES account (id),
    hour bigint NOT NULL,
    documents bigint NOT NULL,
    queued bigint NOT NULL,
    searches ${TEXT} NOT NULL,
    PRIMARY KEY (account_id, hour)
  );

  CREATE TABLE spending (
    day ${TEXT} NOT NULL,
    spender ${TEXT} NOT NULL,
    nanos bigint NOT NULL,
    PRIMARY KEY (day, spender)
  );
  CREATE TABLE account_spending (
    account_id ${TEXT} NOT NULL REFERENCES account (id),
    day ${TEXT} NOT NULL,
    nanos bigint NOT NULL,
    PRIMARY KEY (account_id, day)
  );

  CREATE TABLE job (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue ${TEXT} NOT NULL,
    account_id ${TEXT} NOT NULL REFERENCES account (id),
    owner_id ${TEXT} NOT NULL DEFAULT '',
    line ${TEXT} NOT NULL,
    name ${TEXT} NOT NULL,
    is_dead boolean NOT NULL DEFAULT false,
    due_ms bigint NOT NULL,
    waits_from_ms bigint NOT NULL DEFAULT 0,
    created_ms bigint NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    worker ${TEXT},
    token bigint NOT NULL DEFAULT 0,
    leased_until_ms bigint NOT NULL DEFAULT 0,
    is_working boolean NOT NULL DEFAULT false,
    problem ${TEXT},
    file_token ${TEXT},
    chars bigint NOT NULL DEFAULT 0,
    body ${TEXT} NOT NULL
  ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
  CREATE INDEX job_of_line ON job (queue, line, number) WHERE NOT is_dead;
  CREATE INDEX job_due_in_line ON job (queue, line, due_ms, number) WHERE NOT is_dead;
  CREATE INDEX job_of_account ON job (queue, account_id, created_ms) INCLUDE (chars) WHERE NOT is_dead;
  CREATE INDEX job_in_order ON job (queue, number) WHERE NOT is_dead;
  CREATE INDEX job_due ON job (queue, due_ms) WHERE NOT is_dead;
  CREATE INDEX job_dead ON job (queue, account_id, number) WHERE is_dead;
  CREATE INDEX job_of_file ON job (file_token) WHERE file_token IS NOT NULL;
  CREATE INDEX job_leased ON job (worker) WHERE worker IS NOT NULL;
  `,
    },
  ],
};
