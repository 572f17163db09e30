import type { JSX } from "preact";
import type { Approval } from "../../wire/daemon-status.ts";
import { askDaemon } from "../client/daemon.ts";
import { Confirm } from "../parts/dialog.tsx";
import { toast } from "../parts/toast.tsx";
import { counted } from "../view/format.ts";

/** Asks for an approval, of deletes by their number. */
export function Approve({
  approval: { source, held, token },
  onDone,
  onClose,
}: {
  readonly approval: Approval;
  readonly onDone: () => void;
  readonly onClose: () => void;
}): JSX.Element {
  return (
    <Confirm
      title={held === 0 ? "Send the documents again?" : `Delete ${counted(held, "document")}?`}
      effect={
        <p>
          {held === 0
            ? "The service lost documents of this folder. They are sent again from the files."
            : "They can no longer be found. No file is touched, and their texts stay in the trash for a while, from which they can be restored."}
        </p>
      }
      number={held}
      action={held === 0 ? "Send again" : `Approve ${counted(held, "delete")}`}
      onConfirm={async () => {
        await askDaemon("approve", { folder: source, token });
        toast("Approved.");
        onDone();
      }}
      onClose={onClose}
    />
  );
}
