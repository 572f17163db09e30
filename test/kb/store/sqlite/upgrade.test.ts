import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkStore } from "../../../../src/kb/store/sqlite/check/check.ts";
import { upgradeStore } from "../../../../src/kb/store/sqlite/resources/known-uploads.ts";
import { MIGRATIONS } from "../../../../src/kb/store/sqlite/database/schema.ts";
import { copyOf } from "../../../../src/lib/upgrade.ts";
import { RELEASED, writeFixture } from "../../../fixtures/fixture.ts";
import { readTables, shapeOfSteps } from "../../../fixtures/tables.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-old-store-"));
  file = join(folder, "kb.sqlite");
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Versions that are brought up; the last one released may be this program's own. */
const OLDER = RELEASED.store.filter((version) => version < MIGRATIONS.length);

describe.each(RELEASED.store)("a store of version %s", (version) => {
  it("has the tables that the first steps make: none of them has changed since it was released", () => {
    writeFixture(`store-${version}`, file);
    expect(readTables(file)).toMatchObject({ version, shape: shapeOfSteps(MIGRATIONS.slice(0, version)) });
  });
});

describe.each(OLDER)("a store of version %s", (version) => {
  beforeEach(() => writeFixture(`store-${version}`, file));

  it("is brought up to date with every row as it was, words and vectors whole, and a copy is kept", () => {
    const before = readTables(file);
    upgradeStore(file);
    const after = readTables(file);
    expect(after).toMatchObject({ version: MIGRATIONS.length, shape: shapeOfSteps(MIGRATIONS) });
    for (const [table, rows] of before.rows)
      expect({ table, rows: after.rows.get(table) }).toMatchObject({ table, rows });
    expect(readTables(copyOf(file, version))).toEqual(before);
    expect(checkStore(file)).toEqual({ resources: 4, chunks: 4, findings: [] });
    expect(checkStore(copyOf(file, version))).toMatchObject({ findings: [{ check: "store-version" }] });
  });

  it("is only read by a check, which names it as older", () => {
    const bytes = readFileSync(file);
    expect(checkStore(file)).toMatchObject({ findings: [{ check: "store-version", level: "warning" }] });
    expect(readFileSync(file).equals(bytes)).toBe(true);
  });

  it("answers searches by words and meaning from the model that its vectors are of", () => {
    upgradeStore(file);
    const { rows } = readTables(file);
    const [model] = rows.get("embedding_model") ?? [];
    expect(rows.get("scope")).toMatchObject([{ serving_model: model?.["number"], chunks: 4 }]);
    expect(rows.get("vector")).toHaveLength(4);
  });
});
