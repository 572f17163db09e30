import { metadataEntries } from "../../metadata.ts";
import { storedValue } from "../../rows/metadata-values.ts";
import { metadataOf, type ResourceRow } from "../../rows/records.ts";
import type { Transaction } from "../database/connections.ts";

type Described = Pick<ResourceRow, "account_id" | "scope" | "number" | "metadata" | "file_metadata">;

/** Adds the values of the metadata of resources of an account, by which filters find them. */
export async function addMetadata(
  tx: Transaction,
  accountId: string,
  rows: readonly Described[],
): Promise<void> {
  const entries = rows.flatMap((row) =>
    metadataEntries(metadataOf(row)).map(({ path, value }) =>
      Object.assign(storedValue(value), { path, scope: row.scope, resource: row.number }),
    ),
  );
  if (entries.length === 0) return;
  await tx.run(
    `INSERT INTO metadata_value (account_id, scope, path, kind, number, text, resource)
    SELECT @accountId, value.scope, value.path, value.kind, value.number, value.text, value.resource
    FROM unnest(@scopes::bigint[], @paths::text[], @kinds::text[], @numbers::double precision[], @texts::text[], @resources::bigint[])
      AS value (scope, path, kind, number, text, resource)`,
    {
      accountId,
      scopes: entries.map(({ scope }) => scope),
      paths: entries.map(({ path }) => path),
      kinds: entries.map(({ kind }) => kind),
      numbers: entries.map(({ value }) => (typeof value === "number" ? value : null)),
      texts: entries.map(({ value }) => (typeof value === "string" ? value : null)),
      resources: entries.map(({ resource }) => resource),
    },
  );
}

/** Removes the values of a resource. */
export async function removeMetadata(tx: Transaction, row: Described): Promise<void> {
  await tx.run(
    "DELETE FROM metadata_value WHERE account_id = @accountId AND scope = @scope AND resource = @resource",
    { accountId: row.account_id, scope: row.scope, resource: row.number },
  );
}
