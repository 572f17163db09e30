import type { OpenIntent } from "../../../wire/daemon-files.ts";
import type { RelativePath } from "../../plan/model.ts";
import { openShapes, type Shapes } from "../files/shapes.ts";
import type { Sqlite } from "../database/open.ts";
import { type CreateIntent, prepareCreates, type IntentRow, INTENT_COLUMNS, intentOf } from "./creates.ts";
import { type DeleteIntent, prepareDeletes } from "./deletes.ts";

/** Prepares the statements over intents. */
export function openIntents(db: Sqlite) {
  const shapes = openShapes(db);
  const remove = db.prepare("DELETE FROM intents WHERE id = ?");
  const removeIntent = (id: number): void => void remove.run(id);
  return {
    ...prepareCreates(db, shapes, removeIntent),
    ...prepareDeletes(db, shapes, removeIntent),
    ...prepareLists(db, shapes),
    remove: removeIntent,
  };
}

function prepareLists(db: Sqlite, shapes: Shapes) {
  const open = db.prepare<[number, string], IntentRow>(
    `SELECT ${INTENT_COLUMNS} FROM intents WHERE source = ? AND kind = ? ORDER BY id`,
  );
  const allOpen = db.prepare<[], IntentRow>(
    `SELECT ${INTENT_COLUMNS} FROM intents
     WHERE kind IN ('create', 'doubt') AND source IN (SELECT id FROM sources WHERE active = 1) ORDER BY id`,
  );
  const deletes = db.prepare<[number], DeleteIntent>(
    "SELECT id, source, path, doc_id AS docId FROM intents WHERE source = ? AND kind = 'delete' ORDER BY id",
  );
  const at = db.prepare<[number, string], OpenIntent>(
    `SELECT kind, doc_id AS docId, nullif(at_ms, 0) AS atMs, attempts, error_message AS message
     FROM intents WHERE source = ? AND path = ? ORDER BY id`,
  );
  const intentsOf = (rows: readonly IntentRow[]): CreateIntent[] => rows.map((row) => intentOf(row, shapes));
  return {
    creates: (source: number): CreateIntent[] => intentsOf(open.all(source, "create")),
    /** Returns the creates and doubts of all configured sources. */
    allOpen: (): CreateIntent[] => intentsOf(allOpen.all()),
    doubts: (source: number): CreateIntent[] => intentsOf(open.all(source, "doubt")),
    deletes: (source: number): DeleteIntent[] => deletes.all(source),
    /** Returns everything open at a path, for a person. */
    at: (source: number, path: RelativePath): OpenIntent[] => at.all(source, path),
  };
}
