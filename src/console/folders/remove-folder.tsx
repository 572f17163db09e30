import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { askDaemon } from "../client/daemon.ts";
import { Choices } from "../parts/fields.tsx";
import { Dialog, TypedNumber, useTypedNumber } from "../parts/dialog.tsx";
import { ErrorNotice, Notice, Show } from "../parts/notice.tsx";
import { toast } from "../parts/toast.tsx";
import { addressOf } from "../view/address.ts";
import { counted, lastName } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { go } from "../view/router.ts";
import { useSubmit } from "../view/submit.ts";
import type { FolderRemoved } from "../../wire/daemon-folders.ts";

type Fate = "keep" | "delete";

/** Asks what becomes of a folder's documents, and removes the folder. */
export function RemoveFolder({
  path,
  onClose,
}: {
  readonly path: string;
  readonly onClose: () => void;
}): JSX.Element {
  const loaded = useLoad(`remove ${path}`, (signal) =>
    askDaemon("remove", { folder: path, documents: "keep", dryRun: true }, signal),
  );
  return (
    <Dialog title={`Remove ${lastName(path)}?`} onClose={onClose}>
      <p>
        <span class="path">{path}</span> is no longer watched. Its files stay where they are.
      </p>
      <Show loaded={loaded} lines={3}>
        {(plan) => <Choice plan={plan} onClose={onClose} />}
      </Show>
    </Dialog>
  );
}

function Choice({
  plan: { path, documents, file, obstacle },
  onClose,
}: {
  readonly plan: FolderRemoved;
  readonly onClose: () => void;
}): JSX.Element {
  const [fate, setFate] = useState<Fate>("keep");
  const what = counted(documents, "document");
  const deletes = fate === "delete" && documents > 0;
  const typed = useTypedNumber(deletes ? documents : 0);
  const { error, isBusy, submit } = useSubmit(async () => {
    if (!typed.isTyped) return;
    await askDaemon("remove", { folder: path, documents: fate });
    toast(
      deletes
        ? `${lastName(path)} is removed, and ${what} will be deleted.`
        : `${lastName(path)} is removed.`,
    );
    go(addressOf(["folders"]));
  });
  return (
    <form class="stack" onSubmit={submit}>
      {documents === 0 ? (
        <p>It has no documents.</p>
      ) : (
        <Choices
          legend={`Its ${what}`}
          name="fate"
          value={fate}
          options={[
            {
              value: "keep",
              label: "Leave searchable",
              hint: "They are no longer updated. You can delete them later, or add the folder again.",
            },
            { value: "delete", label: `Delete ${what}`, hint: "They can no longer be found." },
          ]}
          onChange={setFate}
        />
      )}
      {obstacle === null ? null : (
        <Notice kind="bad" title={obstacle.message}>
          <p>{obstacle.hint}</p>
        </Notice>
      )}
      <TypedNumber typed={typed} />
      {file === null || obstacle !== null ? null : (
        <p class="hint">
          This writes <span class="path">{file}</span>, which the daemon reads at once.
        </p>
      )}
      {error === undefined ? null : <ErrorNotice error={error} />}
      <div class="row">
        <button type="submit" class="button danger" disabled={!typed.isTyped || isBusy || obstacle !== null}>
          {deletes ? `Remove folder, delete ${what}` : "Remove folder"}
        </button>
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}
