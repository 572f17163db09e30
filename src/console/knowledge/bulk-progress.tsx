import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Batch, BatchReadAnswer } from "../../wire/batch.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { may, me } from "../client/session.ts";
import { ErrorNotice, Show } from "../parts/notice.tsx";
import { count, counted } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { useSubmit } from "../view/submit.ts";
import { batches, dismissBatch, followBatches, stopBatch } from "./batches.ts";

const VERBS = {
  delete: { doing: "Deleting", done: "Deleted" },
  retry: { doing: "Trying again:", done: "Tried again:" },
} as const;
/** Failures that are shown. */
const SHOWN_MAX = 50;

/** The progress of work on many documents, on every page. */
export function BulkProgress(): JSX.Element | null {
  const isReader = me.value !== null && me.value !== undefined && may("write");
  useEffect(() => {
    // Work that began before a reload continues at the service. Without any, nothing is shown.
    if (isReader) followBatches().catch(() => undefined);
  }, [isReader]);
  if (batches.value.length === 0) return null;
  return (
    <section class="bulk card" aria-label="Work on many documents">
      <ul class="stack">
        {batches.value.map((batch) => (
          <li key={batch._id} class="stack tight">
            <Progress batch={batch} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Progress({ batch }: { readonly batch: Batch }): JSX.Element {
  const { kind, state, total, done, failed } = batch;
  const { isBusy, error, submit } = useSubmit(() => stopBatch(batch));
  const left = total - done;
  return (
    <>
      <div class="row spread">
        <strong role="status">
          {state === "working"
            ? `${VERBS[kind].doing} ${count(done)} of ${counted(total, "document")}`
            : `${VERBS[kind].done} ${counted(done - failed, "document")}${left > 0 ? `, stopped with ${count(left)} left` : ""}`}
        </strong>
        {state === "working" ? (
          <button type="button" class="button small" disabled={isBusy} onClick={submit}>
            Stop
          </button>
        ) : (
          <button type="button" class="button small" onClick={() => dismissBatch(batch)}>
            Close
          </button>
        )}
      </div>
      <div class="bar" aria-hidden="true">
        <i style={{ width: `${(100 * done) / Math.max(1, total)}%` }} />
      </div>
      {error === undefined ? null : <ErrorNotice error={error} />}
      {failed === 0 ? null : <Failures batch={batch} />}
    </>
  );
}

function Failures({ batch: { _id, failed } }: { readonly batch: Batch }): JSX.Element {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{counted(failed, "document")} failed</summary>
      {isOpen ? <FailureList id={_id} failed={failed} /> : null}
    </details>
  );
}

function FailureList({ id, failed }: { readonly id: string; readonly failed: number }): JSX.Element {
  const loaded = useLoad(
    `batch ${id} ${failed}`,
    async (signal) => (await ask<BatchReadAnswer>(`${ROUTES.batches}/${id}`, { signal })).data.failures,
  );
  return (
    <Show loaded={loaded} lines={2}>
      {(failures) => (
        <ul class="stack tight">
          {failures.slice(0, SHOWN_MAX).map(({ _id, title, message }) => (
            <li key={_id}>
              <strong>{title ?? "A document that is gone"}</strong>: {message}
            </li>
          ))}
          {failed > SHOWN_MAX ? <li class="muted">and {count(failed - SHOWN_MAX)} more</li> : null}
        </ul>
      )}
    </Show>
  );
}
