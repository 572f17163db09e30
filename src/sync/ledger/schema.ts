/**
 * The ledger's tables, as steps from one version to the next: `user_version` counts those done. A step that was
 * released is never changed; a new one is added.
 *
 * - `files`: what the service has acknowledged, a row a file. Held deletes stay here (state `held`), so that a file
 *   that comes back finds its resource; two rows may then share a path, of which one is held.
 * - `intents`: notes of what left or is about to leave. A `create` may have made a resource that no row owns. A `doubt`
 *   is a create that was sent again: it may have made an extra one. A `delete` is a resource that is to go; its row in
 *   `files` is gone already. Updates need none: the file's state is `unsure` while one is on its way.
 * - `shapes`: the parts of a recipe that repeat in every row, once each.
 * - `trash`: texts of deleted files that are kept for some days.
 * - `paused`: sources for which nothing is sent.
 * - `ignore_files`, `mounts`: ignore files in force, and what is mounted below a source's folder.
 * - `losses`, `adopted`: what comparing with the service's own list found, and what it need not look for again.
 * - `tombstones`: resources that this ledger deleted. A list that is behind may show them; they are never adopted.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE collections (tier TEXT PRIMARY KEY, collection_id TEXT NOT NULL) STRICT, WITHOUT ROWID;

  CREATE TABLE sources (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    owner_id TEXT NOT NULL,
    tier TEXT NOT NULL,
    active INTEGER NOT NULL,
    root_dev INTEGER,
    root_ino INTEGER,
    halted TEXT,
    hold_reason TEXT,
    approved INTEGER NOT NULL DEFAULT 0,
    -- Rows of files by state, kept by the triggers below; backlog is the daemon's, known_backlog those of it in agreed.
    agreed INTEGER NOT NULL DEFAULT 0,
    unsure INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    parked INTEGER NOT NULL DEFAULT 0,
    held INTEGER NOT NULL DEFAULT 0,
    backlog INTEGER NOT NULL DEFAULT 0,
    backlog_agreed INTEGER NOT NULL DEFAULT 0,
    unreadable INTEGER NOT NULL DEFAULT 0
  ) STRICT;

  CREATE TABLE shapes (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    tier TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    strategy TEXT NOT NULL,
    chunk_chars INTEGER NOT NULL,
    overlap_chars INTEGER NOT NULL,
    UNIQUE (kind, tier, owner_id, strategy, chunk_chars, overlap_chars)
  ) STRICT;

  CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES sources (id),
    path TEXT NOT NULL,
    doc_id TEXT,
    state TEXT NOT NULL CHECK (state IN ('agreed', 'unsure', 'failed', 'skipped', 'parked', 'held', 'doomed')),
    size_bytes INTEGER NOT NULL,
    mtime_ms REAL NOT NULL,
    ctime_ms REAL NOT NULL,
    ino INTEGER NOT NULL,
    rules_key INTEGER NOT NULL,
    hash TEXT NOT NULL,
    digest TEXT NOT NULL,
    title TEXT NOT NULL,
    label TEXT NOT NULL,
    extractor_version INTEGER NOT NULL,
    shape INTEGER REFERENCES shapes (id),
    file_url TEXT,
    error_code TEXT,
    error_message TEXT,
    tries INTEGER NOT NULL DEFAULT 0,
    retry_at_ms REAL
  ) STRICT;
  CREATE UNIQUE INDEX files_path ON files (source, path) WHERE state NOT IN ('held', 'doomed');
  CREATE UNIQUE INDEX files_doc ON files (doc_id) WHERE doc_id IS NOT NULL;
  CREATE INDEX files_ino ON files (source, ino);
  CREATE INDEX files_trouble ON files (source, state) WHERE state <> 'agreed';

  CREATE TABLE intents (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('create', 'doubt', 'delete')),
    source INTEGER NOT NULL REFERENCES sources (id),
    path TEXT NOT NULL,
    doc_id TEXT,
    key TEXT NOT NULL,
    at_ms REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 1,
    size_bytes INTEGER NOT NULL DEFAULT 0,
    mtime_ms REAL NOT NULL DEFAULT 0,
    ctime_ms REAL NOT NULL DEFAULT 0,
    ino INTEGER NOT NULL DEFAULT 0,
    rules_key INTEGER NOT NULL DEFAULT 0,
    hash TEXT NOT NULL DEFAULT '',
    digest TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL DEFAULT '',
    label TEXT NOT NULL DEFAULT '',
    extractor_version INTEGER NOT NULL DEFAULT 0,
    shape INTEGER REFERENCES shapes (id),
    file_url TEXT,
    error_message TEXT
  ) STRICT;
  CREATE INDEX intents_doc ON intents (doc_id) WHERE doc_id IS NOT NULL;

  CREATE TABLE activity (
    id INTEGER PRIMARY KEY,
    at_ms REAL NOT NULL,
    source INTEGER NOT NULL,
    path TEXT NOT NULL,
    from_path TEXT,
    doc_id TEXT,
    action TEXT NOT NULL,
    outcome TEXT NOT NULL,
    duration_ms REAL NOT NULL,
    message TEXT
  ) STRICT;

  CREATE TRIGGER files_insert AFTER INSERT ON files BEGIN
    UPDATE sources SET
      agreed = agreed + (NEW.state = 'agreed'),
      unsure = unsure + (NEW.state = 'unsure'),
      failed = failed + (NEW.state = 'failed'),
      skipped = skipped + (NEW.state = 'skipped'),
      parked = parked + (NEW.state = 'parked'),
      held = held + (NEW.state IN ('held', 'doomed'))
    WHERE id = NEW.source;
  END;
  CREATE TRIGGER files_delete AFTER DELETE ON files BEGIN
    UPDATE sources SET
      agreed = agreed - (OLD.state = 'agreed'),
      unsure = unsure - (OLD.state = 'unsure'),
      failed = failed - (OLD.state = 'failed'),
      skipped = skipped - (OLD.state = 'skipped'),
      parked = parked - (OLD.state = 'parked'),
      held = held - (OLD.state IN ('held', 'doomed'))
    WHERE id = OLD.source;
  END;
  CREATE TRIGGER files_state AFTER UPDATE OF state ON files WHEN OLD.state <> NEW.state BEGIN
    UPDATE sources SET
      agreed = agreed + (NEW.state = 'agreed') - (OLD.state = 'agreed'),
      unsure = unsure + (NEW.state = 'unsure') - (OLD.state = 'unsure'),
      failed = failed + (NEW.state = 'failed') - (OLD.state = 'failed'),
      skipped = skipped + (NEW.state = 'skipped') - (OLD.state = 'skipped'),
      parked = parked + (NEW.state = 'parked') - (OLD.state = 'parked'),
      held = held + (NEW.state IN ('held', 'doomed')) - (OLD.state IN ('held', 'doomed'))
    WHERE id = NEW.source;
  END;
  `,
  `
  -- Why some changes are found late, for other processes to read.
  ALTER TABLE sources ADD COLUMN degraded TEXT;
  -- Deletes that the service will not do.
  CREATE INDEX intents_refused ON intents (source) WHERE kind = 'delete' AND error_message IS NOT NULL;
  `,
  `
  -- What a halted source stands before: that is what a person agrees to. No root: the folder is missing, and there is
  -- nothing to agree to.
  ALTER TABLE sources ADD COLUMN halt_dev INTEGER;
  ALTER TABLE sources ADD COLUMN halt_ino INTEGER;
  ALTER TABLE sources ADD COLUMN halt_files INTEGER NOT NULL DEFAULT 0;
  -- Deletes begun a short while ago: many small batches are one large one, across restarts too.
  CREATE TABLE deletes_lately (
    source INTEGER NOT NULL REFERENCES sources (id),
    at_ms REAL NOT NULL,
    files INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX deletes_lately_source ON deletes_lately (source);

  -- How often it is still tried to keep a deleted file's text before its resource goes without; 0: it is not kept.
  ALTER TABLE intents ADD COLUMN keep_tries INTEGER NOT NULL DEFAULT 0;
  -- Texts of deleted files, each a file of that name in the folder \`trash\` beside the ledger. \`hash\` is of the kept
  -- bytes; \`is_exact\` says that they are the deleted file's own.
  CREATE TABLE trash (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES sources (id),
    path TEXT NOT NULL,
    doc_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    hash TEXT NOT NULL,
    is_exact INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    deleted_ms REAL NOT NULL,
    until_ms REAL NOT NULL
  ) STRICT;
  CREATE INDEX trash_path ON trash (source, path);
  `,
  `
  -- Sources whose resources are missing or changed at the service in such number that nothing is sent until a person
  -- agrees, or until they are back.
  CREATE TABLE losses (
    source INTEGER PRIMARY KEY REFERENCES sources (id),
    reason TEXT NOT NULL,
    agreed INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  -- Sources whose place at the service was looked through for resources that a former ledger made.
  CREATE TABLE adopted (source INTEGER PRIMARY KEY REFERENCES sources (id)) STRICT;
  INSERT INTO adopted SELECT DISTINCT source FROM files UNION SELECT source FROM intents;
  -- A text that was found changed at the service, as it was found: if sending ours again leaves it so, it is the
  -- service's way to keep that text, and no change of anybody's.
  ALTER TABLE files ADD COLUMN found_digest TEXT;
  -- When this ledger began, by our clock: what was made before is none of its doing.
  INSERT INTO meta VALUES ('born_ms', CAST(unixepoch('subsec') * 1000 AS INTEGER));
  `,
  `
  -- Sources for which a person said that nothing is to be sent.
  CREATE TABLE paused (source INTEGER PRIMARY KEY REFERENCES sources (id)) STRICT;
  `,
  `
  -- Files of a source that were there when its backlog was written down, so that another process counts each once.
  ALTER TABLE sources ADD COLUMN found INTEGER NOT NULL DEFAULT 0;
  UPDATE sources SET found = agreed + failed + parked + unsure - backlog_agreed + backlog;
  `,
  `
  -- What of a document the service could not read, in its words: the file is in agreement, and not all of it is found.
  ALTER TABLE files ADD COLUMN warning TEXT;
  CREATE INDEX files_warned ON files (source) WHERE warning IS NOT NULL;
  `,
  `
  -- A create of a file that may have acted before: it is asked for by every create.
  CREATE INDEX intents_doubt ON intents (source, path) WHERE kind = 'doubt';
  `,
  `
  -- Ignore files in force, each by a hash of its patterns: one that is missing or another one at the next start may be
  -- about to be rewritten.
  CREATE TABLE ignore_files (
    source INTEGER NOT NULL REFERENCES sources (id),
    folder TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (source, folder)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- Resources that this ledger deleted: a service's list may show them for some time.
  CREATE TABLE tombstones (id INTEGER PRIMARY KEY, doc_id TEXT NOT NULL UNIQUE) STRICT;
  INSERT OR IGNORE INTO tombstones (doc_id)
    SELECT doc_id FROM activity WHERE action = 'delete' AND outcome = 'done' AND doc_id IS NOT NULL ORDER BY id;
  `,
  `
  -- How the service stored what it acknowledged, where it keeps a title or description in another form than it was sent
  -- (\`found_digest\` says so of a text), and when it last changed the resource by its own clock.
  ALTER TABLE files ADD COLUMN stored_label TEXT;
  ALTER TABLE files ADD COLUMN stored_ms REAL;
  `,
  `
  -- File systems mounted below a source's folder, and the identity of what is mounted there. One that is missing hides
  -- its files; they are not gone. As text, for a number may be above what SQLite holds as a whole one.
  CREATE TABLE mounts (
    source INTEGER NOT NULL REFERENCES sources (id),
    path TEXT NOT NULL,
    dev TEXT NOT NULL,
    ino TEXT NOT NULL,
    PRIMARY KEY (source, path)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- Whether the process that worked on a source last has compared the whole folder: before that, what waits is not counted.
  ALTER TABLE sources ADD COLUMN compared INTEGER NOT NULL DEFAULT 0;
  UPDATE sources SET compared = 1;
  `,
];
