import { FACET_VALUES_MAX } from "../../../../wire/constants.ts";
import { valueOf, type ValueKind } from "../../rows/metadata-values.ts";
import type { Index, Scope } from "../../search-index.ts";
import type { Transaction } from "../database/connections.ts";

import { findTarget } from "./target.ts";
import { matchingResources, type FilterCache } from "./filters.ts";

interface ValueRow {
  readonly kind: ValueKind;
  readonly number: number | null;
  readonly text: string | null;
  readonly count: number;
  readonly distinctValues: number;
}

/** Reads what metadata a scope has. */
export function facetsOn(tx: Transaction, filters: FilterCache): Pick<Index, "metadataFields" | "facet"> {
  return {
    async metadataFields({ scope, after = "", limit }) {
      const target = await findTarget(tx, filters, withoutFilter(scope));
      if (target === undefined) return [];
      // One lookup per path: the table has an entry for each value of each resource.
      const next = (before: string): string => `
        SELECT path FROM metadata_value WHERE account_id = @accountId AND scope = @scope AND path > ${before} ORDER BY path LIMIT 1`;
      const fields = await tx.all<{ readonly path: string }>(
        `WITH RECURSIVE field (path) AS (
          (${next("@after")})
          UNION ALL SELECT (${next("field.path")}) FROM field WHERE field.path IS NOT NULL)
        SELECT path FROM field WHERE path IS NOT NULL LIMIT @limit`,
        { accountId: target.accountId, scope: target.scope, after, limit },
      );
      return fields.map(({ path }) => path);
    },
    async facet({ scope, field }) {
      const { filter } = scope;
      const target = await findTarget(tx, filters, withoutFilter(scope));
      if (target === undefined) return { field, distinct: 0, values: [] };
      const of = { accountId: target.accountId, scope: target.scope };
      const matching = filter && (await matchingResources(tx, of, filter));
      const rows = await tx.all<ValueRow>(
        `SELECT kind, number, text, count(*) AS count, count(*) OVER () AS "distinctValues" FROM metadata_value
        WHERE account_id = @accountId AND scope = @scope AND path = @field
          ${matching === undefined ? "" : `AND resource IN (${matching.sql})`}
        GROUP BY kind, number, text ORDER BY count(*) DESC, kind, number, text LIMIT ${FACET_VALUES_MAX}`,
        { ...of, ...matching?.parameters, field },
      );
      const values = rows.map(({ kind, number, text, count }) => ({
        value: valueOf(kind, text ?? number ?? 0),
        count,
      }));
      return { field, distinct: rows[0]?.distinctValues ?? 0, values };
    },
  };
}

function withoutFilter(scope: Scope): Scope {
  const all: Scope & { filter?: Scope["filter"] } = { ...scope };
  delete all.filter;
  return all;
}
