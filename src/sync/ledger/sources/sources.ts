import type { RootIdentity } from "../../plan/model.ts";
import type { Sqlite } from "../database/open.ts";
import { type HaltCode, prepareRows } from "./rows.ts";
import { prepareDeletes } from "./deletes.ts";
import type { Tier } from "../../../wire/primitives.ts";
import { openMeta } from "../database/meta.ts";
import { statementsOf } from "../database/statements.ts";

/** The rows of sources, and the ids of collections. Changes are plain statements: run them inside a group commit. */
export type Sources = ReturnType<typeof openSources>;

/** Why nothing is sent for a source, and why deletes are held. */
export interface Hold {
  readonly halted: string | null;
  readonly code?: HaltCode;
  readonly unit?: string | undefined;
  readonly reason: string | null;
  readonly root?: RootIdentity | undefined;
  readonly files?: number;
}

/** What the service declared of its abilities. */
export interface Declared {
  /** It reads the PDFs and images of uploaded mails. */
  readonly readsMails: boolean;
  readonly takesMetadata: boolean;
  /** When; undefined: never to this ledger. */
  readonly atMs: number | undefined;
}

/** Prepares the statements over sources. */
export function openSources(db: Sqlite) {
  return { ...prepareRows(db), ...prepareStates(db), ...prepareDeletes(db), ...prepareFacts(db) };
}

function prepareStates(db: Sqlite) {
  const { run } = statementsOf(db);
  const setRoot = run("UPDATE sources SET root_dev = ?, root_ino = ? WHERE id = ?");
  const setHold = run(
    `UPDATE sources SET halted = ?, halt_code = ?, halt_unit = ?, hold_reason = ?, halt_dev = ?, halt_ino = ?, halt_files = ?
     WHERE id = ?`,
  );
  const setBacklog = run(
    `UPDATE sources SET backlog = @backlog, backlog_agreed = @agreed,
       found = agreed + failed + parked + unsure - @agreed + @backlog WHERE id = @id`,
  );
  const setCompared = run("UPDATE sources SET compared = ? WHERE id = ?");
  const setUnreadable = run("UPDATE sources SET unreadable = ? WHERE id = ?");

  return {
    setRoot: (id: number, { dev, ino }: RootIdentity): void => setRoot(dev, ino, id),
    /** `halted` with `root` and `files` describes what halts the source. Without a root its folder is missing. */
    setHold: (id: number, { halted, code, unit, reason, root, files = 0 }: Hold): void =>
      setHold(halted, code, unit, reason, root?.dev, root?.ino, files, id),
    setBacklog: (id: number, backlog: number, backlogAgreed: number): void =>
      setBacklog({ id, backlog, agreed: backlogAgreed }),
    setCompared: (id: number, compared: boolean): void => setCompared(Number(compared), id),
    setUnreadable: (id: number, count: number): void => setUnreadable(count, id),
  };
}

/** Prepares the statements over what the service supplied. */
function prepareFacts(db: Sqlite) {
  const { run, value } = statementsOf(db);
  const meta = openMeta(db);
  return {
    collectionId: value<[tier: Tier], string>("SELECT collection_id FROM collections WHERE tier = ?"),
    setCollectionId: run<[tier: Tier, id: string]>(
      `INSERT INTO collections (tier, collection_id) VALUES (?, ?)
       ON CONFLICT (tier) DO UPDATE SET collection_id = excluded.collection_id`,
    ),
    /** What the service last declared. */
    declared: (): Declared => ({
      readsMails: meta.get("reads_mails") === "1",
      takesMetadata: meta.get("takes_metadata") === "1",
      atMs: meta.number("metadata_asked_ms"),
    }),
    setDeclared: ({ readsMails, takesMetadata, atMs }: Declared): void => {
      meta.set("reads_mails", readsMails ? "1" : "0");
      meta.set("takes_metadata", takesMetadata ? "1" : "0");
      if (atMs !== undefined) meta.set("metadata_asked_ms", String(atMs));
    },
  };
}
