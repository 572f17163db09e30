import type { JSX } from "preact";
import { count } from "../view/format.ts";
import { refine } from "../view/router.ts";
import type { DocumentsState, Filter } from "./documents.ts";
import { STATUS_WORDS } from "./listed-document.ts";

/** Filters the documents by words and by status. */
export function DocumentsToolbar({
  statuses: { queued, chunked, error },
  filter,
}: {
  readonly statuses: DocumentsState["statuses"];
  readonly filter: Filter;
}): JSX.Element {
  const counts = { all: queued + chunked + error, searchable: chunked, waiting: queued, failed: error };
  return (
    <div class="toolbar">
      <input
        class="input"
        type="search"
        aria-label="Filter by title, path, address or metadata"
        placeholder="Filter by title, path, address, metadata"
        value={filter.text}
        onInput={(event) => refine({ q: event.currentTarget.value })}
      />
      <div class="segments" role="group" aria-label="Status">
        {(["all", "searchable", "waiting", "failed"] as const).map((status) => (
          <button
            type="button"
            key={status}
            aria-pressed={filter.status === status}
            onClick={() => refine({ status: status === "all" ? undefined : status })}
          >
            {status === "all" ? "All" : STATUS_WORDS[status].label} <span>{count(counts[status])}</span>
          </button>
        ))}
      </div>
    </div>
  );
}
