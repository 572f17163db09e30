import { signal } from "@preact/signals";
import type { JSX } from "preact";

const shown = signal<readonly { readonly id: number; readonly text: string }[]>([]);
let last = 0;
/** Long enough to read a sentence twice. */
const SHOWN_MS = 6000;

/** Shows a sentence for some seconds, which screen readers read out. */
export function toast(text: string): void {
  last += 1;
  const id = last;
  shown.value = [...shown.value, { id, text }];
  setTimeout(() => {
    shown.value = shown.value.filter((each) => each.id !== id);
  }, SHOWN_MS);
}

/** Where toasts appear. */
export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.value.map(({ id, text }) => (
        <div class="toast" key={id}>
          {text}
        </div>
      ))}
    </div>
  );
}
