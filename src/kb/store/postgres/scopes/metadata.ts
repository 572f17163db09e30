import { metadataEntries } from "../../metadata.ts";
import { storedValue } from "../../rows/metadata-values.ts";
import { metadataOf, type ResourceRow } from "../../rows/records.ts";
import type { Transaction } from "../database/connections.ts";

type Described = Pick<ResourceRow, "account_id" | "scope" | "number" | "metadata" | "file_metadata">;

/** Adds the values of a resource's metadata, by which filters find it. */
export async function addMetadata(tx: Transaction, row: Described): Promise<void> {
  const entries = metadataEntries(metadataOf(row)).map(({ path, value }) =>
    Object.assign(storedValue(value), { path }),
  );
  if (entries.length === 0) return;
  await tx.run(
    `INSERT INTO metadata_value (account_id, scope, path, kind, number, text, resource)
    SELECT @accountId, @scope, value.path, value.kind, value.number, value.text, @resource
    FROM unnest(@paths::text[], @kinds::text[], @numbers::double precision[], @texts::text[])
      AS value (path, kind, number, text)`,
    {
      accountId: row.account_id,
      scope: row.scope,
      resource: row.number,
      paths: entries.map(({ path }) => path),
      kinds: entries.map(({ kind }) => kind),
      numbers: entries.map(({ value }) => (typeof value === "number" ? value : null)),
      texts: entries.map(({ value }) => (typeof value === "string" ? value : null)),
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
