import { FACET_VALUES_MAX } from "../../../../wire/constants.ts";
import type { Inside } from "../../methods.ts";
import type { Connection } from "../database/connection.ts";
import { queryOf } from "./filters.ts";
import { type ValueKind, valueOf } from "../../rows/metadata-values.ts";
import type { prepareScopes } from "./scopes.ts";

interface ValueRow {
  readonly kind: ValueKind;
  readonly value: string | number;
  readonly count: number;
  readonly distinct_values: number;
}

/** Prepares the reads of what metadata a scope has. */
export function prepareFacets(
  db: Connection,
  scopes: ReturnType<typeof prepareScopes>,
): Pick<Inside<"read">["index"], "metadataFields" | "facet"> {
  // One lookup per path: the table has an entry for each value of each resource.
  const selectNext = db
    .prepare<[number, string], string>(
      "SELECT path FROM metadata_value WHERE scope = ? AND path > ? ORDER BY path LIMIT 1",
    )
    .pluck();

  return {
    metadataFields({ scope, after = "", limit }) {
      const target = scopes.find(scope);
      if (target === undefined) return [];
      const fields: string[] = [];
      while (fields.length < limit) {
        const next = selectNext.get(target.scope, fields.at(-1) ?? after);
        if (next === undefined) break;
        fields.push(next);
      }
      return fields;
    },
    facet({ scope, field }) {
      const target = scopes.find(scope);
      if (target === undefined) return { field, distinct: 0, values: [] };
      const matching = scope.filter && queryOf(target.scope, scope.filter);
      const rows = db
        .prepare<unknown[], ValueRow>(`
          SELECT kind, value, count(*) AS count, count(*) OVER () AS distinct_values FROM metadata_value
          WHERE scope = ? AND path = ? ${matching === undefined ? "" : `AND resource IN (${matching.sql})`}
          GROUP BY kind, value ORDER BY count DESC, kind, value LIMIT ${FACET_VALUES_MAX}`)
        .all(target.scope, field, ...(matching?.values ?? []));
      const values = rows.map(({ kind, value, count }) => ({ value: valueOf(kind, value), count }));
      return { field, distinct: rows[0]?.distinct_values ?? 0, values };
    },
  };
}
