import type { OpenIntent } from "../../../wire/daemon-files.ts";
import type { RelativePath } from "../../plan/model.ts";
import { openShapes, type Shapes } from "../files/shapes.ts";
import type { Sqlite } from "../database/open.ts";
import { statementsOf } from "../database/statements.ts";
import { type CreateIntent, prepareCreates, type IntentRow, INTENT_COLUMNS, intentOf } from "./creates.ts";
import { type DeleteIntent, prepareDeletes } from "./deletes.ts";

/** Prepares the statements over intents. */
export function openIntents(db: Sqlite) {
  const shapes = openShapes(db);
  const remove = statementsOf(db).run<[id: number]>("DELETE FROM intents WHERE id = ?");
  return {
    ...prepareCreates(db, shapes, remove),
    ...prepareDeletes(db, shapes, remove),
    ...prepareLists(db, shapes),
    remove,
  };
}

function prepareLists(db: Sqlite, shapes: Shapes) {
  const { all } = statementsOf(db);
  const open = all<[source: number, kind: "create" | "doubt"], IntentRow>(
    `SELECT ${INTENT_COLUMNS} FROM intents WHERE source = ? AND kind = ? ORDER BY id`,
  );
  const allOpen = all<[], IntentRow>(
    `SELECT ${INTENT_COLUMNS} FROM intents
     WHERE kind IN ('create', 'doubt') AND source IN (SELECT id FROM sources WHERE active = 1) ORDER BY id`,
  );
  const intentsOf = (rows: readonly IntentRow[]): CreateIntent[] => rows.map((row) => intentOf(row, shapes));
  return {
    creates: (source: number): CreateIntent[] => intentsOf(open(source, "create")),
    /** Returns the creates and doubts of all configured sources. */
    allOpen: (): CreateIntent[] => intentsOf(allOpen()),
    doubts: (source: number): CreateIntent[] => intentsOf(open(source, "doubt")),
    deletes: all<[source: number], DeleteIntent>(
      "SELECT id, source, path, doc_id AS docId FROM intents WHERE source = ? AND kind = 'delete' ORDER BY id",
    ),
    /** Returns everything open at a path, for a person. */
    at: all<[source: number, path: RelativePath], OpenIntent>(
      `SELECT kind, doc_id AS docId, nullif(at_ms, 0) AS atMs, attempts, error_message AS message
       FROM intents WHERE source = ? AND path = ? ORDER BY id`,
    ),
  };
}
