import Database from "better-sqlite3";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it, onTestFinished } from "vitest";
import { checkPostings } from "../../../../src/kb/store/sqlite/check/check-postings.ts";
import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../../src/kb/store/store.ts";
import { contentOf, crashId } from "./crash-writer.ts";
import { byWords } from "../store-fixture.ts";

/** Number of kills; the crash suite sets a higher one. */
const KILLS = Number(process.env["KBSYNC_TEST_KILLS"] ?? 3);

/** The last acknowledged version of a resource; undefined: deleted. */
type Acknowledged = Map<number, number | undefined>;

describe("a store whose process is killed while it writes", () => {
  it(
    `a store whose process is killed while it writes has every acknowledged write and no partial one after each of ${KILLS} kills`,
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "kbsync-crash-"));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      const path = join(folder, "kb.sqlite");
      const known: Acknowledged = new Map();
      for (let round = 0; round < KILLS; round++) {
        const acknowledged = await writeAndKill(path, round);
        expect(acknowledged.size).toBeGreaterThan(0);
        expect(problemsIn(path)).toEqual([]);
        const store = await openSqliteStore({ path });
        await expectKnown(store, acknowledged);
        await store.close();
        for (const [resource, version] of acknowledged) known.set(resource, version);
      }
      const store = await openSqliteStore({ path });
      await expectKnown(store, known);
      await store.close();
    },
    20_000 + KILLS * 3000,
  );
});

/**
 * Starts the writer, lets it acknowledge some writes, and kills it. Returns the acknowledged resources without those of
 * a pending write, which may or may not have happened.
 */
async function writeAndKill(path: string, round: number): Promise<Acknowledged> {
  const writer = spawn(
    process.execPath,
    [join(import.meta.dirname, "crash-writer.ts"), path, String(round)],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const ended = new Promise<void>((resolve) => {
    writer.once("close", () => {
      resolve();
    });
  });
  // Kills at the first answer, within the first batches, and during a stream of writes.
  const killAfter = 9 + ((round * 37) % 160);
  const known: Acknowledged = new Map();
  let answers = 0;
  for await (const line of createInterface({ input: writer.stdout })) {
    const [kind, number = "", version = ""] = line.split(" ");
    if (kind === "begin") known.delete(Number(number));
    else known.set(Number(number), version === "gone" ? undefined : Number(version));
    if (kind === "done" && ++answers === killAfter) writer.kill("SIGKILL");
  }
  await ended;
  return known;
}

async function expectKnown(store: Store, known: Acknowledged): Promise<void> {
  const account = await store.records.ensureAccount("local");
  for (const [resource, version] of known) {
    const at = { accountId: account.id, id: crashId(resource) };
    const found = await store.records.resource(at);
    expect(found && { content: found.content, version: found.version }).toEqual(
      version === undefined ? undefined : { content: contentOf(resource, version), version },
    );
    if (version === undefined) continue;
    const { chunks } = (await store.records.chunks(at)) ?? { chunks: [] };
    expect(chunks).toHaveLength(found?.chunkCount ?? -1);
    const part = { accountId: account.id, resourceId: at.id };
    const query = `v${resource}x${version}`;
    const { hits } = await byWords(store, { scope: part, query, limit: 100 });
    expect(hits).toHaveLength(chunks.length);
  }
}

/** Lists all inconsistencies in the file. */
function problemsIn(path: string): unknown[] {
  const db = new Database(path);
  const checks = [
    "SELECT integrity_check AS problem FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
    "SELECT * FROM pragma_foreign_key_check",
    // Every chunk belongs to the live version of its resource, and each version has all its chunks.
    `SELECT chunk.row FROM chunk JOIN resource ON resource.number = chunk.resource
      WHERE is_deleted = 1 OR row NOT BETWEEN first_row AND first_row + chunks - 1`,
    `SELECT id FROM resource WHERE chunks <> (SELECT count(*) FROM chunk WHERE chunk.resource = resource.number)`,
    "SELECT row FROM vector WHERE row NOT IN (SELECT row FROM chunk)",
    "SELECT * FROM metadata_value WHERE resource NOT IN (SELECT number FROM resource WHERE is_deleted = 0)",
    `SELECT id FROM resource
        LEFT JOIN (SELECT resource, count(*) AS found FROM metadata_value GROUP BY resource) AS value
        ON value.resource = resource.number
      WHERE is_deleted = 0
        AND ifnull(found, 0) <> (SELECT count(*) FROM json_tree(metadata) WHERE atom IS NOT NULL)`,
    `SELECT number FROM scope WHERE chunks <> (SELECT count(*) FROM chunk WHERE row / 4294967296 = scope.number)
      OR words <> (SELECT total(words) FROM chunk WHERE row / 4294967296 = scope.number)
      OR resources <> (SELECT count(*) FROM resource WHERE resource.scope = scope.number AND is_deleted = 0)`,
  ];
  try {
    return [...checks.flatMap((check) => db.prepare(check).all()), ...checkPostings(db)];
  } finally {
    db.close();
  }
}
