import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { count, counted } from "../view/format.ts";
import { bulk, dismissBulk, resumeBulk, stopBulk } from "./bulk.ts";

const VERBS = {
  delete: { doing: "Deleting", done: "Deleted" },
  retry: { doing: "Trying again:", done: "Tried again:" },
} as const;

/** The progress of work on many documents, on every page. */
export function BulkProgress(): JSX.Element | null {
  useEffect(resumeBulk, []);
  const now = bulk.value;
  if (now === null) return null;
  const { kind, total, left, failed, state } = now;
  const ended = total - left.length;
  const well = ended - failed.length;
  return (
    <section class="bulk card" aria-label="Work on many documents">
      <div class="row spread">
        <strong role="status">
          {state === "working"
            ? `${VERBS[kind].doing} ${count(ended)} of ${counted(total, "document")}`
            : `${VERBS[kind].done} ${counted(well, "document")}${state === "stopped" ? `, stopped with ${count(left.length)} left` : ""}`}
        </strong>
        {state === "working" ? (
          <button type="button" class="button small" onClick={stopBulk}>
            Stop
          </button>
        ) : (
          <button type="button" class="button small" onClick={dismissBulk}>
            Close
          </button>
        )}
      </div>
      <div class="bar" aria-hidden="true">
        <i style={{ width: `${(100 * ended) / Math.max(1, total)}%` }} />
      </div>
      {failed.length === 0 ? null : (
        <details>
          <summary>{counted(failed.length, "document")} failed</summary>
          <ul class="stack tight">
            {failed.slice(0, 50).map(({ item, message }) => (
              <li key={item.id}>
                <strong>{item.title}</strong>: {message}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
