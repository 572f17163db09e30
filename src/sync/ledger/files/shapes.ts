import type { Shape } from "../../plan/model.ts";
import type { Sqlite } from "../database/open.ts";
import { statementsOf } from "../database/statements.ts";

/** Shapes by their number in the ledger. There are few: a source has one per kind and rule. */
export type Shapes = ReturnType<typeof openShapes>;

const NO_SHAPE: Shape = {
  kind: "content",
  tier: "fastest",
  ownerId: "",
  settings: { strategy: "recursive", chunkSize: 0, chunkOverlap: 0 },
};

type ShapeRow = Omit<Shape, "settings"> & Shape["settings"];

/** Prepares the statements over shapes. */
export function openShapes(db: Sqlite) {
  const { insert, get, value } = statementsOf(db);
  const find = value<(string | number)[], number>(
    "SELECT id FROM shapes WHERE kind = ? AND tier = ? AND owner_id = ? AND strategy = ? AND chunk_chars = ? AND overlap_chars = ?",
  );
  const add = insert(
    "INSERT INTO shapes (kind, tier, owner_id, strategy, chunk_chars, overlap_chars) VALUES (?, ?, ?, ?, ?, ?)",
  );
  const byId = get<[id: number], ShapeRow>(
    `SELECT kind, tier, owner_id AS ownerId, strategy, chunk_chars AS chunkSize, overlap_chars AS chunkOverlap
     FROM shapes WHERE id = ?`,
  );
  // Every write of a row needs its shape. A shape never changes or disappears, and a ledger writes nothing more after a
  // rollback, so the cache stays valid.
  const ids = new Map<string, number>();
  const found = new Map<number, Shape>();
  return {
    idOf: ({ kind, tier, ownerId, settings: { strategy, chunkSize, chunkOverlap } }: Shape): number => {
      const name = `${kind} ${tier} ${strategy} ${chunkSize} ${chunkOverlap} ${ownerId}`;
      let id = ids.get(name);
      if (id !== undefined) return id;
      const values = [kind, tier, ownerId, strategy, chunkSize, chunkOverlap];
      id = find(...values) ?? add(...values);
      ids.set(name, id);
      return id;
    },
    get: (id: number | null): Shape => {
      if (id === null) return NO_SHAPE;
      const known = found.get(id);
      if (known !== undefined) return known;
      const row = byId(id);
      if (row === undefined) return NO_SHAPE;
      const { kind, tier, ownerId, ...settings } = row;
      const shape = { kind, tier, ownerId, settings };
      found.set(id, shape);
      return shape;
    },
  };
}
