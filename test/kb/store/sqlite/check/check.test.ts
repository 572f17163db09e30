import Database from "better-sqlite3";
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { wrongMetadata } from "../../../../../src/kb/store/sqlite/check/check-metadata.ts";
import { checkStore } from "../../../../../src/kb/store/sqlite/check/check.ts";
import { openSqliteStore } from "../../../../../src/kb/store/sqlite/open.ts";
import { DEFAULT_SETTINGS } from "../../../../../src/wire/primitives.ts";
import { createEmbedded } from "../../embedded.ts";

const NOW = "2026-01-02T03:04:05.678Z";

let folder: string;
let sound: string;
let made = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-check-"));
  sound = join(folder, "sound.sqlite");
  const store = await openSqliteStore({ path: sound });
  const { id: accountId } = await store.records.ensureAccount("local");
  for (const [number, content] of ["The moon pulls the sea.", "Flour and water.", "Gone soon."].entries()) {
    const vector = new Float32Array([1, 0, 0, 0]);
    await createEmbedded(
      store,
      {
        accountId,
        id: String(number).padStart(24, "0"),
        tier: "moderate",
        ownerId: "ann",
        origin: "content",
        title: `Title ${number}`,
        description: "",
        url: null,
        content,
        settings: DEFAULT_SETTINGS,
        createdAt: NOW,
        metadata: { lang: "en", tags: ["a", "b", "a"], deep: { year: 2024, done: true } },
      },
      {
        spans: [{ start: 0, end: content.length, headings: ["Above"] }],
        vectors: [vector],
        fingerprint: "test/4",
      },
    );
  }
  await store.records.deleteResource({ accountId, id: "2".padStart(24, "0"), nowIso: NOW });
  await store.close();
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Copies the sound store and runs a statement on the copy. */
function damagedBy(sql: string): string {
  const path = join(folder, `damaged-${++made}.sqlite`);
  copyFileSync(sound, path);
  const db = new Database(path);
  db.pragma("foreign_keys = OFF");
  db.exec(sql);
  db.close();
  return path;
}

it("reports no findings and the counts of a sound store", () => {
  expect(checkStore(sound)).toEqual({ resources: 2, chunks: 2, findings: [] });
  expect(checkStore(sound, { quick: true })?.findings).toEqual([]);
});

it.each([
  ["two words with the same hash", "xggcpq and x7lzjiq, xggcpq again"],
  ["more words than a part records", "word ".repeat(70_000)],
])("reports no findings for a chunk with %s", async (_name, content) => {
  const path = join(folder, `sound-${++made}.sqlite`);
  const store = await openSqliteStore({ path });
  const { id: accountId } = await store.records.ensureAccount("local");
  await createEmbedded(
    store,
    {
      accountId,
      id: String(made).padStart(24, "0"),
      tier: "fastest",
      ownerId: "ann",
      origin: "content",
      title: "Title",
      description: "",
      url: null,
      content,
      settings: DEFAULT_SETTINGS,
      createdAt: NOW,
    },
    {
      spans: [{ start: 0, end: content.length, headings: [] }],
      vectors: undefined,
      fingerprint: undefined,
    },
  );
  await store.close();
  expect(checkStore(path)?.findings).toEqual([]);
});

it("warns of documents that have waited for longer than a queue that works needs", () => {
  const path = damagedBy(`
    INSERT INTO job (queue, account_id, line, name, due_ms, created_ms, body)
    SELECT 'ingest', account_id, '', id, 0, 1000, '{}' FROM resource WHERE number = 1`);
  expect(checkStore(path)?.findings).toEqual([
    expect.objectContaining({
      check: "store-queue",
      level: "warning",
      message: expect.stringMatching(/^1 doc/),
    }),
  ]);
});

it("returns undefined if there is no store", () => {
  expect(checkStore(join(folder, "none.sqlite"))).toBeUndefined();
});

it("scans the values of metadata once for any number of documents", () => {
  const statements: string[] = [];
  const db = new Database(sound, { readonly: true, verbose: (sql) => statements.push(String(sql)) });
  expect([...wrongMetadata(db)]).toEqual([]);
  db.close();
  expect(statements.filter((sql) => sql.includes("metadata_value"))).toHaveLength(1);
});

it("does not treat an inaccessible store as missing", () => {
  // A missing permission fails in the same way, but root has all permissions.
  const ring = join(folder, "ring.sqlite");
  symlinkSync(ring, ring);
  expect(() => checkStore(ring)).toThrow(expect.objectContaining({ code: "path_unseen" }) as Error);
});

describe("a damaged store", () => {
  it.each([
    [
      "a chunk of a deleted document",
      "UPDATE resource SET is_deleted = 1 WHERE number = 1",
      "store-versions",
    ],
    [
      "a chunk of another version",
      "UPDATE resource SET first_row = first_row + 5 WHERE number = 1",
      "store-versions",
    ],
    [
      "a missing chunk",
      "DELETE FROM chunk WHERE resource = 1; DELETE FROM vector WHERE number = 1",
      "store-versions",
    ],
    [
      "a chunk that no word finds",
      "DELETE FROM word_segment WHERE first_row = (SELECT min(row) FROM chunk)",
      "store-words",
    ],
    [
      "an entry of no chunk",
      "INSERT INTO word_segment SELECT first_row + 9, data FROM word_segment LIMIT 1",
      "store-words",
    ],
    ["a removed chunk that words still find", "DELETE FROM word_removal", "store-words"],
    [
      "a run without its pages",
      `INSERT INTO word_run (scope, first, rows, sequences, lengths, directory, filter)
        VALUES (1, 0, 1, x'00000000', x'0000', x'000000000000000000000000', x'')`,
      "store-words",
    ],
    [
      "a text that changed under its entry",
      "UPDATE chunk SET text = 'Other words.' WHERE resource = 1",
      "store-words",
    ],
    [
      "a title that changed under its entry",
      "UPDATE resource SET title = 'Else' WHERE number = 1",
      "store-words",
    ],
    ["a vector of no chunk", "UPDATE vector SET row = 77 WHERE number = 1", "store-structure"],
    [
      "vectors of sentences of no chunk",
      "INSERT INTO sentence_vectors (row, model, vectors) VALUES (77, 1, x'00')",
      "store-structure",
    ],
    [
      "a mark of an older title on no chunk",
      "INSERT INTO stale_vector (row, revision) VALUES (77, 1)",
      "store-structure",
    ],
    [
      "vectors of sentences of another model than any",
      "INSERT INTO sentence_vectors (row, model, vectors) SELECT row, 99, x'00' FROM chunk LIMIT 1",
      "store-structure",
    ],
    ["a vector cut short", "UPDATE vector SET value = x'00' WHERE number = 2", "store-vectors"],
    ["counts that are off", "UPDATE scope SET words = words + 1", "store-scopes"],
    [
      "metadata that filters do not see",
      "DELETE FROM metadata_value WHERE path = 'tags' AND value = 'b'",
      "store-metadata",
    ],
    [
      "metadata of another kind",
      "UPDATE metadata_value SET kind = 's', value = '1' WHERE kind = 'b'",
      "store-metadata",
    ],
    [
      "a number where a text was",
      "UPDATE metadata_value SET value = 7, kind = 's' WHERE path = 'lang' AND resource = 1",
      "store-metadata",
    ],
    ["metadata of another owner", "UPDATE metadata_value SET scope = 9 WHERE resource = 2", "store-metadata"],
    [
      "values for a document that has no metadata",
      "UPDATE resource SET metadata = '{}' WHERE number = 1",
      "store-metadata",
    ],
    [
      "metadata of a deleted document",
      "UPDATE metadata_value SET resource = 3 WHERE resource = 1",
      "store-metadata",
    ],
    [
      "a document that waits for nothing",
      "UPDATE resource SET status = 'queued' WHERE number = 1",
      "store-queue",
    ],
    ["a document of an unknown file", "UPDATE resource SET file_token = 'x' WHERE number = 1", "store-files"],
  ])("the check of a damaged store finds %s", (_name, sql, check) => {
    const findings = checkStore(damagedBy(sql))?.findings ?? [];
    expect(findings.map((finding) => finding.check)).toContain(check);
    for (const { message, remedy, level } of findings) {
      expect([level, remedy]).toEqual(["damage", expect.stringContaining("kbsync restore")]);
      expect(message).not.toBe("");
    }
  });

  it("reports a changed byte of the index of words as a failure, because the service rebuilds the part", () => {
    const sql =
      "UPDATE word_segment SET data = CAST(substr(data, 1, 20) || x'ff' || substr(data, 22) AS BLOB)";
    const report = checkStore(damagedBy(sql));
    expect(report).toMatchObject({ resources: 2, findings: [{ check: "store-words", level: "failure" }] });
    expect(report?.findings[0]?.remedy).toContain("rebuild it from the stored texts");
  });

  it("finds truncated pages and files that are not databases, with a message", () => {
    const cut = damagedBy("VACUUM");
    truncateSync(cut, 8192);
    expect(checkStore(cut)?.findings[0]).toMatchObject({ check: "store-structure", level: "damage" });
    expect(checkStore(cut)?.findings[0]?.message.split("damaged:")).toHaveLength(2);
    const page = join(folder, "page.sqlite");
    writeFileSync(page, "<html>".repeat(1000));
    expect(checkStore(page)?.findings[0]?.message).toContain("not a SQLite database");
  });
});
