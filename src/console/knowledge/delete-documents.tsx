import type { JSX } from "preact";
import { Confirm, Dialog } from "../parts/dialog.tsx";
import { counted } from "../view/format.ts";
import { workOnMany } from "./many-documents.ts";
import type { ListedDocument } from "./listed-document.ts";

/** Asks before documents are deleted, and leaves those that come from a folder. */
export function DeleteDocuments({
  selected,
  folder,
  onClose,
  onStarted,
}: {
  readonly selected: readonly ListedDocument[];
  readonly folder: string | undefined;
  readonly onClose: () => void;
  readonly onStarted: () => void;
}): JSX.Element {
  const isManaged = ({ path }: ListedDocument): boolean => folder !== undefined && path !== undefined;
  const mine = selected.filter((each) => !isManaged(each));
  const managed = selected.length - mine.length;
  const kept =
    managed === 0 ? null : (
      <p>
        {counted(managed, "document")} {managed === 1 ? "comes" : "come"} from the folder{" "}
        <span class="path">{folder}</span> and {managed === 1 ? "stays" : "stay"}: delete the files there
        instead.
      </p>
    );
  if (mine.length === 0) {
    return (
      <Dialog title="Nothing to delete here" onClose={onClose}>
        {kept}
        <div>
          <button type="button" class="button" onClick={onClose}>
            Close
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Confirm
      title={`Delete ${counted(mine.length, "document")}?`}
      effect={
        <>
          <p>
            {mine.length === 1 ? "Its text" : "Their texts"} can no longer be found by any search or answer,
            and cannot be restored from here.
          </p>
          {kept}
        </>
      }
      number={mine.length}
      action={`Delete ${counted(mine.length, "document")}`}
      onConfirm={async () => {
        void workOnMany("delete", mine);
        onStarted();
      }}
      onClose={onClose}
    />
  );
}
