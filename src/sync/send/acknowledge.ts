import type { Settings } from "../../wire/primitives.ts";
import type { Stored } from "../ledger/files/observed.ts";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import type { Deletion } from "../ledger/intents/deletes.ts";
import type { Ledger } from "../ledger/ledger.ts";

/**
 * Records that a create was answered, or its resource found: the file's row receives it, and the resource that it
 * replaces gets a delete intent. Run inside a group commit. `exact: false` leaves the row unsure, so that the file is
 * sent again. Returns the old resource's deletion, if there is one, or `taken` if another file owns the resource; then
 * nothing is written.
 */
export function acknowledgeCreate(
  ledger: Ledger,
  intent: CreateIntent,
  docId: string,
  exact = true,
  stored: Stored = {},
): Deletion | "taken" | undefined {
  const { source, path, observed } = intent;
  const end = (): void => {
    // Another attempt may have made, or still make, a second resource.
    if (intent.attempts > 1) ledger.intents.doubt(intent.id, docId);
    else ledger.intents.remove(intent.id);
  };
  if (ledger.files.insert(source, docId, exact ? "agreed" : "unsure", observed, stored)) {
    end();
    return undefined;
  }
  const row = ledger.files.living(source, path);
  if (row === undefined || (row.docId !== docId && ledger.files.ownsDoc(docId)))
    return isGivenUp(ledger, docId) ? acknowledgeCreate(ledger, intent, docId, exact, stored) : "taken";
  let left: Deletion | undefined;
  if (row.docId !== null && row.docId !== docId) {
    left = { id: ledger.intents.delete(source, path, row.docId), path, docId: row.docId };
  }
  ledger.files.agree(row.id, docId, observed, stored, exact);
  end();
  return left;
}

/** Reports whether the file that has a resource is getting another one: it gives this one up, which would be deleted otherwise. */
function isGivenUp({ files, intents }: Ledger, docId: string): boolean {
  const owner = files.byDoc(docId);
  if (owner === undefined || !intents.creates(owner.source).some(({ path }) => path === owner.path))
    return false;
  files.remove(owner.id);
  return true;
}

/** Returns a create as its resource was found. With other settings than were sent its file must get another resource. */
export function asFound(
  intent: CreateIntent,
  { settings }: { readonly settings?: Partial<Settings> | undefined },
): CreateIntent {
  const { observed } = intent;
  const { shape } = observed;
  return {
    ...intent,
    observed: { ...observed, shape: { ...shape, settings: { ...shape.settings, ...settings } } },
  };
}
