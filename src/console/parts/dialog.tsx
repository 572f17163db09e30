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

/** A number that a person types before a large change. */
export interface Typed {
  readonly number: number;
  readonly text: string;
  readonly setText: (text: string) => void;
  /** It is typed, or so small that it need not be. */
  readonly isTyped: boolean;
}

/** The typed part of a number. */
export function useTypedNumber(number: number): Typed {
  const [text, setText] = useState("");
  const isTyped = number < TYPED_FROM || text.replaceAll(/\D/g, "") === String(number);
  return { number, text, setText, isTyped };
}

/** The field for a number to type; nothing for one that need not be typed. */
export function TypedNumber({
  typed: { number, text, setText },
}: {
  readonly typed: Typed;
}): JSX.Element | null {
  if (number < TYPED_FROM) return null;
  return (
    <label class="field">
      <span class="label">Type {count(number)} to confirm</span>
      <input
        class="input"
        inputMode="numeric"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </label>
  );
}

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
  const typed = useTypedNumber(number);
  const { isTyped } = typed;
  const { error, isBusy, submit } = useSubmit(async () => {
    if (!isTyped) return;
    await onConfirm();
    onClose();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <div class="stack tight">{effect}</div>
        <TypedNumber typed={typed} />
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
