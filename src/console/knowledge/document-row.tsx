import type { JSX } from "preact";
import { State } from "../parts/notice.tsx";
import { addressOf } from "../view/address.ts";
import { ago } from "../view/format.ts";
import { STATUS_WORDS } from "./listed-document.ts";
import type { ListedDocument } from "./listed-document.ts";

/** The cells of a document in the list. */
export function DocumentCells({
  document,
  isChosen,
  onChoose,
  nowMs,
}: {
  readonly document: ListedDocument;
  readonly isChosen: boolean;
  readonly onChoose: (isChosen: boolean) => void;
  readonly nowMs: number;
}): JSX.Element {
  const { id, title, origin, status, message, warning, updatedMs } = document;
  const { label, kind: sign } = STATUS_WORDS[status];
  const note = message ?? warning ?? origin;
  return (
    <>
      <span role="cell">
        <input
          type="checkbox"
          aria-label={`Select ${title}`}
          checked={isChosen}
          onChange={(event) => onChoose(event.currentTarget.checked)}
        />
      </span>
      <span role="cell" class="clip">
        <a class="clip block" href={addressOf(["documents", id])}>
          {title}
        </a>
        {note === "" ? null : (
          <span class="clip block small muted" title={note}>
            {note}
          </span>
        )}
      </span>
      <span role="cell">
        <State kind={sign}>{label}</State>
      </span>
      <span role="cell" class="small muted numeric">
        {ago(updatedMs, nowMs)}
      </span>
    </>
  );
}
