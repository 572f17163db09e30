import { existsSync, renameSync, rmSync } from "node:fs";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, it } from "vitest";
import { copyOf } from "../../../../src/lib/upgrade.ts";
import { labelOf } from "../../../../src/sync/send/observe.ts";
import { SCHEMA } from "../../../../src/sync/ledger/database/schema.ts";
import { ledgerFile } from "../../../../src/sync/ledger/ledger.ts";
import { readMarker } from "../../../../src/sync/plan/marker.ts";
import { withoutMarker } from "../../../../src/wire/marker.ts";
import { openWorld, type World } from "../../daemon/harness.ts";
import { promptService } from "../../identity/fixture.ts";

let world: World;
let file: string;
beforeEach(async () => {
  world = await openWorld({ collections: true });
  file = ledgerFile(world.stateDir);
});
afterEach(() => world.end());

const rows = (): unknown[] => {
  const db = new Database(file, { readonly: true });
  const found = db.prepare("SELECT id, path, doc_id, state, size_bytes, hash FROM files ORDER BY id").all();
  db.close();
  return found;
};

/** Makes the ledger one of the first version, and the service's descriptions those of before markers. */
function makeOld(): void {
  const before = `${file}.before`;
  renameSync(file, before);
  for (const end of ["-wal", "-shm"]) rmSync(`${file}${end}`, { force: true });
  const db = new Database(file);
  db.exec(SCHEMA.scripts[0] ?? "");
  db.pragma(`user_version = ${SCHEMA.baseline}`);
  db.exec(`ATTACH '${before}' AS later`);
  const columnsOf = (schema: string, table: string): string[] =>
    db
      .prepare<[string, string], string>("SELECT name FROM pragma_table_info(?, ?)")
      .pluck()
      .all(table, schema);
  for (const table of ["meta", "collections", "sources", "shapes", "files"]) {
    const later = new Set(columnsOf("later", table));
    const columns = columnsOf("main", table)
      .filter((name) => later.has(name))
      .join(", ");
    db.exec(`INSERT INTO main.${table} (${columns}) SELECT ${columns} FROM later.${table}`);
    // A trigger counts the rows.
    if (table === "sources") db.exec("UPDATE main.sources SET agreed = 0");
  }
  db.exec("INSERT INTO main.adopted SELECT id FROM later.sources WHERE adopted = 1");
  db.exec("DETACH later");
  const relabel = db.prepare("UPDATE files SET label = ? WHERE doc_id = ?");
  for (const each of world.service.live()) {
    each.description = withoutMarker(each.description);
    relabel.run(labelOf(each.title, each.description), each._id);
  }
  db.close();
  rmSync(before);
}

it("a ledger of before markers keeps its rows, and sends nothing but the descriptions, once", async () => {
  for (const name of ["a.txt", "sub/b.md", "c.txt"]) world.write(name, `the text of ${name}`);
  world.write("d.pdf", "%PDF-1.4 of nothing");
  await world.sync();
  const [before, resources] = [
    rows(),
    world.service.live().map(({ _id, content, url }) => ({ _id, content, url })),
  ];
  makeOld();
  expect(world.service.live().map(({ description }) => readMarker(description).kind)).not.toContain("whole");

  const sent = world.service.requests.length;
  await world.sync();
  const writes = world.service.requests.slice(sent).filter(({ method }) => method !== "GET");
  expect(writes.map(({ operation, body }) => [operation, Object.keys(body ?? {}).toSorted()])).toEqual(
    before.map(() => ["update", ["description", "title"]]),
  );
  expect(world.service.live().map(({ description }) => readMarker(description).kind)).toEqual(
    before.map(() => "whole"),
  );
  expect(world.service.live().map(({ _id, content, url }) => ({ _id, content, url }))).toEqual(resources);
  expect(rows()).toEqual(before);
  expect(existsSync(copyOf(file, SCHEMA.baseline))).toBe(true);

  const later = world.service.requests.length;
  await world.sync();
  const daemon = world.daemon({ service: promptService(world) });
  expect(await daemon.audit({ repair: true })).toMatchObject({ findings: [], agrees: true });
  await daemon.close();
  expect(world.service.requests.slice(later).filter(({ method }) => method !== "GET")).toEqual([]);
});

it("an audit before the descriptions are sent finds nothing, and holds nothing", async () => {
  for (let n = 0; n < 8; n += 1) world.write(`${n}.txt`, `text ${n}`);
  await world.sync();
  makeOld();
  const daemon = world.daemon({ service: promptService(world) });
  const report = await daemon.audit({ repair: true });
  await daemon.syncOnce();
  await daemon.close();
  expect(report).toMatchObject({ findings: [], sources: [{ lost: null }] });
  expect(world.service.count("create")).toBe(8);
});
