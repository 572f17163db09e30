import type { JSX } from "preact";
import { Dialog } from "../parts/dialog.tsx";
import { toast } from "../parts/toast.tsx";

/** Shows a secret that no other answer shows again. */
export function SecretDialog({
  title,
  secret,
  use,
  onClose,
}: {
  readonly title: string;
  readonly secret: string;
  /** Where it belongs. */
  readonly use: string;
  readonly onClose: () => void;
}): JSX.Element {
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(secret);
    toast("Copied.");
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <p>It is shown this once. {use}</p>
      <pre class="secret">
        <code>{secret}</code>
      </pre>
      <div class="row">
        <button type="button" class="button primary" onClick={() => void copy()}>
          Copy
        </button>
        <button type="button" class="button" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  );
}
