import type { Connection } from "../database/connection.ts";
import { joinText, type Part } from "../../rows/parts.ts";
import type { ResourceRow } from "../../rows/records.ts";

/** Rebuilds texts from their chunks. */
export interface Contents {
  /** The whole text of a resource. */
  of(resource: Pick<ResourceRow, "head" | "first_row" | "chunks">): string;
}

/** Prepares the statement on a connection of either kind. */
export function readContent(db: Connection): Contents {
  const parts = db.prepare<[number, number], Omit<Part, "line">>(
    "SELECT start, text, gap FROM chunk WHERE row BETWEEN ? AND ? ORDER BY row",
  );
  return {
    of: ({ head, first_row: first, chunks }) =>
      chunks === 0 ? head : joinText(head, parts.all(first, first + chunks - 1)),
  };
}
