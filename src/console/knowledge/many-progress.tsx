import type { JSX } from "preact";
import { count, counted } from "../view/format.ts";
import { dismissWork, stopWork, work, type ManyDocuments } from "./many-documents.ts";

const VERBS = {
  delete: { doing: "Deleting", done: "Deleted" },
  retry: { doing: "Trying again:", done: "Tried again:" },
} as const;
/** Failures that are shown. */
const SHOWN_MAX = 50;

/** The progress of work on many documents, on every page. */
export function ManyProgress(): JSX.Element | null {
  if (work.value === undefined) return null;
  return (
    <section class="many card stack tight" aria-label="Work on many documents">
      <Progress work={work.value} />
    </section>
  );
}

function Progress({
  work: { kind, state, total, done, failures },
}: {
  readonly work: ManyDocuments;
}): JSX.Element {
  const left = total - done;
  return (
    <>
      <div class="row spread">
        <strong role="status">
          {state === "working"
            ? `${VERBS[kind].doing} ${count(done)} of ${counted(total, "document")}`
            : `${VERBS[kind].done} ${counted(done - failures.length, "document")}${left > 0 ? `, stopped with ${count(left)} left` : ""}`}
        </strong>
        {state === "working" ? (
          <button type="button" class="button small" onClick={stopWork}>
            Stop
          </button>
        ) : (
          <button type="button" class="button small" onClick={dismissWork}>
            Close
          </button>
        )}
      </div>
      <div class="bar" aria-hidden="true">
        <i style={{ width: `${(100 * done) / Math.max(1, total)}%` }} />
      </div>
      {failures.length === 0 ? null : (
        <details>
          <summary>{counted(failures.length, "document")} failed</summary>
          <ul class="stack tight">
            {failures.slice(0, SHOWN_MAX).map(({ id, title, error }) => (
              <li key={id}>
                <strong>{title}</strong>: {error instanceof Error ? error.message : String(error)}
              </li>
            ))}
            {failures.length > SHOWN_MAX ? (
              <li class="muted">and {count(failures.length - SHOWN_MAX)} more</li>
            ) : null}
          </ul>
        </details>
      )}
    </>
  );
}
