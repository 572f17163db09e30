import type { Schema } from "../../../lib/upgrade.ts";

/**
 * The ledger's tables. A release that changes them adds a script; a released script never changes.
 *
 * - `files`: what the service has acknowledged, one row per file. A row whose delete is held stays (state `held`), so that
 *   a file that returns finds its resource. Two rows may then share a path, of which one is held.
 * - `intents`: requests in flight or about to leave. A `create` may have made a resource that no row owns. A `doubt` is a
 *   create that was sent again and may have made a second resource. A `delete` is a resource that has to go; its row in
 *   `files` is gone already. An update needs no intent: the file's state is `unsure` while one is in flight.
 * - `shapes`: the parts of a recipe that repeat in every row, stored once.
 * - `trash`: texts of deleted files, retained for some days.
 * - `ignore_files`, `mounts`: ignore files in force, and file systems mounted below a source's folder.
 * - `scopes`: owners and collections that a source ever wrote to.
 * - `tombstones`: resources that this ledger deleted. A stale list may show them; they are never adopted.
 */
export const SCHEMA: Schema = {
  baseline: 19,
  scripts: [
    `
  -- \`born_ms\`: when this ledger began, by our clock. It did not make older resources.
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE collections (tier TEXT PRIMARY KEY, collection_id TEXT NOT NULL) STRICT, WITHOUT ROWID;

  CREATE TABLE sources (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    owner_id TEXT NOT NULL,
    tier TEXT NOT NULL,
    active INTEGER NOT NULL,
    -- The documents of its files stay when these are gone: held rows wait for nothing.
    keeps INTEGER NOT NULL DEFAULT 0,
    root_dev INTEGER,
    root_ino INTEGER,
    halted TEXT,
    -- The folder that a halted source found, which a person may approve. NULL: the folder is missing, and there is
    -- nothing to approve.
    halt_dev INTEGER,
    halt_ino INTEGER,
    halt_files INTEGER NOT NULL DEFAULT 0,
    -- Without a folder to approve: why there is none (HaltCode), and the unit that does not show it.
    halt_code TEXT,
    halt_unit TEXT,
    -- Why some changes are found late, for other processes to read.
    degraded TEXT,
    hold_reason TEXT,
    approved INTEGER NOT NULL DEFAULT 0,
    -- Rows of files by state, counted by the triggers below.
    agreed INTEGER NOT NULL DEFAULT 0,
    unsure INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    parked INTEGER NOT NULL DEFAULT 0,
    held INTEGER NOT NULL DEFAULT 0,
    -- The daemon's backlog, and how much of it is in \`agreed\`.
    backlog INTEGER NOT NULL DEFAULT 0,
    backlog_agreed INTEGER NOT NULL DEFAULT 0,
    unreadable INTEGER NOT NULL DEFAULT 0,
    -- Files of the source when its backlog was written, so that another process counts each once.
    found INTEGER NOT NULL DEFAULT 0,
    -- Whether the last process that worked on the source compared the whole folder: before that, the backlog is unknown.
    compared INTEGER NOT NULL DEFAULT 0
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
    -- Hash of the metadata that the service acknowledged; NULL: none.
    metadata_hash TEXT,
    error_code TEXT,
    error_message TEXT,
    tries INTEGER NOT NULL DEFAULT 0,
    retry_at_ms REAL,
    -- A text as it was found changed at the service. If it is the same after ours was sent again, the service stores the
    -- text in its own form, and nobody changed it.
    found_digest TEXT,
    -- What the service could not read of the document, in its words. The file agrees, but a search does not find all of it.
    warning TEXT,
    -- Title and description as the service stored them, where it changed their form, and when it last changed the
    -- resource by its own clock.
    stored_label TEXT,
    stored_ms REAL
  ) STRICT;
  CREATE UNIQUE INDEX files_path ON files (source, path) WHERE state NOT IN ('held', 'doomed');
  CREATE UNIQUE INDEX files_doc ON files (doc_id) WHERE doc_id IS NOT NULL;
  CREATE INDEX files_ino ON files (source, ino);
  CREATE INDEX files_trouble ON files (source, state) WHERE state <> 'agreed';
  -- Mails are checked again when the service begins to read their attachments.
  CREATE INDEX files_mails ON files (id) WHERE lower(substr(path, -4)) = '.eml';
  CREATE INDEX files_warned ON files (source) WHERE warning IS NOT NULL;

  CREATE TABLE intents (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('create', 'doubt', 'delete')),
    source INTEGER NOT NULL REFERENCES sources (id),
    path TEXT NOT NULL,
    doc_id TEXT,
    key TEXT NOT NULL,
    at_ms REAL NOT NULL,
    -- The service's clock minus ours when the intent was written; NULL: unknown.
    clock_offset_ms REAL,
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
    -- Hash of the metadata that a create sent; NULL: none.
    metadata_hash TEXT,
    error_message TEXT,
    -- Attempts left to save a deleted file's text before its resource is deleted regardless; 0: it is not saved.
    keep_tries INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX intents_doc ON intents (doc_id) WHERE doc_id IS NOT NULL;
  -- Every create asks for the doubts of its path.
  CREATE INDEX intents_doubt ON intents (source, path) WHERE kind = 'doubt';
  -- Deletes that the service refuses.
  CREATE INDEX intents_refused ON intents (source) WHERE kind = 'delete' AND error_message IS NOT NULL;

  -- Recent deletes: many small batches count as one large one, across restarts too.
  CREATE TABLE deletes_lately (
    source INTEGER NOT NULL REFERENCES sources (id),
    at_ms REAL NOT NULL,
    files INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX deletes_lately_source ON deletes_lately (source);

  -- Texts of deleted files, each a file of that name in the folder \`trash\` beside the ledger. \`hash\` is of the saved
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

  -- Sources whose resources are missing or changed at the service in such number that nothing is sent until a person
  -- approves, or until they are back. Unclear: nothing is known to be lost, and the service is asked again.
  CREATE TABLE losses (
    source INTEGER PRIMARY KEY REFERENCES sources (id),
    reason TEXT NOT NULL,
    is_unclear INTEGER NOT NULL DEFAULT 0,
    agreed INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  -- Sources whose part of the service was searched for resources that a former ledger made.
  CREATE TABLE adopted (source INTEGER PRIMARY KEY REFERENCES sources (id)) STRICT;
  CREATE TABLE tombstones (id INTEGER PRIMARY KEY, doc_id TEXT NOT NULL UNIQUE) STRICT;

  CREATE TABLE paused (source INTEGER PRIMARY KEY REFERENCES sources (id)) STRICT;
  -- Each by a hash of its patterns: one that is missing or changed at the next start may be about to be rewritten.
  CREATE TABLE ignore_files (
    source INTEGER NOT NULL REFERENCES sources (id),
    folder TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (source, folder)
  ) STRICT, WITHOUT ROWID;
  -- A file system that is no longer mounted hides its files; they are not gone. Device and inode are text, for they may
  -- exceed SQLite's integers.
  CREATE TABLE mounts (
    source INTEGER NOT NULL REFERENCES sources (id),
    path TEXT NOT NULL,
    dev TEXT NOT NULL,
    ino TEXT NOT NULL,
    PRIMARY KEY (source, path)
  ) STRICT, WITHOUT ROWID;

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
  -- Identity is written down: each description ends with a marker. The files are read again, and their descriptions sent.
  --
  -- \`hash\`: also \`kb:\` and the tag of a version, where a marker alone shows which bytes the service has.
  -- \`sent\`: former versions that this ledger sent, each a tag of the path and one of the bytes, oldest first.
  -- \`acknowledged_ms\`: orders the acknowledgements, near the time of day.
  ALTER TABLE files ADD COLUMN sent TEXT NOT NULL DEFAULT '';
  ALTER TABLE files ADD COLUMN acknowledged_ms REAL NOT NULL DEFAULT 0;
  UPDATE files SET rules_key = 0 WHERE doc_id IS NOT NULL;
  -- The id that the markers of a source name, and the installation that last wrote them; NULL: none did.
  ALTER TABLE sources ADD COLUMN marker_id TEXT;
  ALTER TABLE sources ADD COLUMN writer TEXT;
  CREATE TABLE scopes (
    source INTEGER NOT NULL REFERENCES sources (id),
    tier TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    PRIMARY KEY (source, tier, owner_id)
  ) STRICT, WITHOUT ROWID;
  INSERT OR IGNORE INTO scopes SELECT DISTINCT source, tier, owner_id FROM files JOIN shapes ON shapes.id = files.shape;
  DELETE FROM meta WHERE name GLOB 'unsearched *' OR name GLOB 'recheck *' OR name GLOB 'distrusted *' OR name GLOB 'gone *'
    OR name IN ('born_ms', 'born_offset_ms', 'forgotten_ms', 'forgotten_offset_ms', 'clock_offset_ms');
  ALTER TABLE intents DROP COLUMN clock_offset_ms;
  -- Whether a source was compared with the service's list: 0: never; 1: since the ledger is new or turned out to be old; 2: not
  -- since it turned out to be old. Whether nothing is sent for it until a person resumes it.
  ALTER TABLE sources ADD COLUMN adopted INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE sources ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
  -- Why a source waits for the service, and which kind of hold that is: \`lost\` (the service lost most documents), \`unclear\`
  -- (it is asked again by itself), \`identity\` (whose documents they are is for a person to say); whether a person agreed.
  ALTER TABLE sources ADD COLUMN loss TEXT;
  ALTER TABLE sources ADD COLUMN loss_kind TEXT NOT NULL DEFAULT 'lost';
  ALTER TABLE sources ADD COLUMN loss_agreed INTEGER NOT NULL DEFAULT 0;
  UPDATE sources SET adopted = id IN (SELECT source FROM adopted), paused = id IN (SELECT source FROM paused);
  UPDATE sources SET loss = reason, loss_agreed = losses.agreed, loss_kind = CASE is_unclear WHEN 1 THEN 'unclear' ELSE 'lost' END
    FROM losses WHERE losses.source = sources.id;
  DROP TABLE adopted;
  DROP TABLE paused;
  DROP TABLE losses;
  `,
    `
  -- Searches find some version of the resource: the service may also be reading it for the first time.
  ALTER TABLE files ADD COLUMN findable INTEGER NOT NULL DEFAULT 1;
  -- Only the daemon that watches a folder knows what it misses.
  ALTER TABLE sources DROP COLUMN degraded;
  `,
  ],
};
