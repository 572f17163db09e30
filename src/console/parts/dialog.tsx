import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { count } from "../view/format.ts";
import { useSubmit } from "../view/submit.ts";
import { ErrorNotice } from "./notice.tsx";

/** A question that blocks the page. Escape closes it, and the focus returns to where it was. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}): JSX.Element {
  const id = useId();
  const shown = useRef<HTMLDialogElement>(null);
  // Before the next key is handled, so that none reaches the page below.
  useLayoutEffect(() => {
    const dialog = shown.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={shown} aria-labelledby={id} onCancel={onClose} onClose={onClose}>
      <div class="stack">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

/** Number from which a person types it, because a habitual click must not be enough. */
const TYPED_FROM = 20;

/** Asks before something that cannot simply be undone. Names its effect in numbers. */
export function Confirm({
  title,
  effect,
  number,
  action,
  onConfirm,
  onClose,
}: {
  readonly title: string;
  readonly effect: ComponentChildren;
  /** How many things it affects. */
  readonly number: number;
  /** The words of the button: a verb and its object. */
  readonly action: string;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}): JSX.Element {
  const [typed, setTyped] = useState("");
  const isTyped = number < TYPED_FROM || typed.replaceAll(/\D/g, "") === String(number);
  const { error, isBusy, submit } = useSubmit(async () => {
    if (!isTyped) return;
    await onConfirm();
    onClose();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <div class="stack tight">{effect}</div>
        {number < TYPED_FROM ? null : (
          <label class="field">
            <span class="label">Type {count(number)} to confirm</span>
            <input
              class="input"
              inputMode="numeric"
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        )}
        {error === undefined ? null : <ErrorNotice error={error} />}
        <div class="row">
          <button type="submit" class="button danger" disabled={!isTyped || isBusy}>
            {action}
          </button>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
