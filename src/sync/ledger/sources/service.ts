import type { Tier } from "../../../wire/primitives.ts";
import { openMeta } from "../database/meta.ts";
import type { Sqlite } from "../database/open.ts";

/** Facts that the service supplied. */
export interface ServiceFacts {
  collectionId(tier: Tier): string | undefined;
  setCollectionId(tier: Tier, collectionId: string): void;
  /** Whether the service last reported that it reads the PDFs and images of uploaded mails. */
  readsMails(): boolean;
  setReadsMails(reads: boolean): void;
  /** Whether the service last reported that it takes metadata. */
  takesMetadata(): boolean;
  setTakesMetadata(takes: boolean): void;
  /** When it last reported that or the contrary; undefined: never to this ledger. */
  metadataAskedMs(): number | undefined;
  setMetadataAskedMs(atMs: number): void;
}

/** Prepares the statements over what the service supplied. */
export function prepareFacts(db: Sqlite): ServiceFacts {
  const meta = openMeta(db);
  const collection = db
    .prepare<[string], string>("SELECT collection_id FROM collections WHERE tier = ?")
    .pluck();
  const setCollection = db.prepare(
    `INSERT INTO collections (tier, collection_id) VALUES (?, ?)
     ON CONFLICT (tier) DO UPDATE SET collection_id = excluded.collection_id`,
  );

  return {
    collectionId: (tier) => collection.get(tier),
    setCollectionId: (tier, id) => void setCollection.run(tier, id),
    readsMails: () => meta.get("reads_mails") === "1",
    setReadsMails: (reads) => meta.set("reads_mails", reads ? "1" : "0"),
    takesMetadata: () => meta.get("takes_metadata") === "1",
    setTakesMetadata: (takes) => meta.set("takes_metadata", takes ? "1" : "0"),
    metadataAskedMs: () => meta.number("metadata_asked_ms"),
    setMetadataAskedMs: (atMs) => meta.set("metadata_asked_ms", String(atMs)),
  };
}
