/** Text in the order of its bytes, as in SQLite, whatever the locale of the database. */
const TEXT = 'text COLLATE "C"';

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
