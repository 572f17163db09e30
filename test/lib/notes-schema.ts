/** Steps of a small database, for tests. */
export const NOTES: readonly string[] = [
  "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT",
  "ALTER TABLE note ADD COLUMN kind TEXT NOT NULL DEFAULT 'plain'; CREATE INDEX note_kind ON note (kind)",
  "UPDATE note SET text = upper(text)",
];
