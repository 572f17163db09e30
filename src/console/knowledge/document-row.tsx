import type { JSX } from "preact";
import { State } from "../parts/notice.tsx";
import { addressOf } from "../view/address.ts";
import { ago } from "../view/format.ts";
import { refine } from "../view/router.ts";
import type { Filter, SortKey } from "./documents.ts";
import { STATUS_WORDS } from "./listed-document.ts";
import type { ListedDocument } from "./listed-document.ts";

/** The head of a column that can be sorted by. */
export function SortHead({
  filter,
  name,
  label,
}: {
  readonly filter: Filter;
  readonly name: SortKey;
  readonly label: string;
}): JSX.Element {
  const isSorted = filter.sort === name;
  const direction = filter.isDescending ? "descending" : "ascending";
  return (
    <span role="columnheader" aria-sort={isSorted ? direction : "none"}>
      <button
        type="button"
        class="sort"
        onClick={() => refine({ sort: name, order: isSorted && !filter.isDescending ? "down" : "up" })}
      >
        {label}
        <span aria-hidden="true">{isSorted ? (filter.isDescending ? " ↓" : " ↑") : ""}</span>
      </button>
    </span>
  );
}

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
