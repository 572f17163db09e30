import { signal } from "@preact/signals";
import type { Batch, BatchAnswer, BatchesAnswer, BatchKind } from "../../wire/batch.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";

/** Documents of one batch at the service. */
const BATCH_MAX = 5000;
/** Documents that can be chosen at a time: as many as the running batches of an account hold, and some to spare. */
export const CHOSEN_MAX = 10_000;
/** Interval at which running batches are polled. */
const POLL_MS = 1000;

/** The batches that are shown: running ones, and those that ended while a person watched. */
export const batches = signal<readonly Batch[]>([]);
/** Grows when a batch ends. */
export const batchEnds = signal(0);

/** Ids of batches that a person watches. */
const watched = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Starts the work on documents at the service, which continues whatever happens to this page. */
export async function startBatches(kind: BatchKind, ids: readonly string[]): Promise<void> {
  for (let at = 0; at < ids.length; at += BATCH_MAX) {
    const body = { kind, ids: ids.slice(at, at + BATCH_MAX) };
    // Repeated, because its answer was lost, it starts no second batch.
    const headers = { "idempotency-key": crypto.randomUUID() };
    const { data } = await ask<BatchAnswer>(ROUTES.batches, { method: "POST", body, headers });
    show([data, ...batches.peek()]);
  }
}

/** Follows the running batches, including those of other pages and earlier visits. */
export async function followBatches(): Promise<void> {
  clearTimeout(timer);
  const { data } = await ask<BatchesAnswer>(ROUTES.batches);
  const before = batches.peek();
  const shown = data.batches.filter(({ _id, state }) => state === "working" || watched.has(_id));
  const isEnded = ({ _id, state }: Batch): boolean =>
    state !== "working" && before.some((each) => each._id === _id && each.state === "working");
  if (shown.some(isEnded)) batchEnds.value += 1;
  show(shown);
}

/** Starts no more documents of a batch. */
export async function stopBatch({ _id }: Batch): Promise<void> {
  await ask(`${ROUTES.batches}/${_id}/stop`, { method: "POST", once: true });
  await followBatches();
}

/** Forgets a batch that ended. */
export function dismissBatch({ _id }: Batch): void {
  watched.delete(_id);
  batches.value = batches.peek().filter((each) => each._id !== _id);
}

function show(shown: readonly Batch[]): void {
  for (const { _id } of shown) watched.add(_id);
  batches.value = shown;
  clearTimeout(timer);
  if (!shown.some(({ state }) => state === "working")) return;
  const again = (): void => {
    timer = setTimeout(() => {
      // The line about the service shows a failure; the work continues without this page.
      followBatches().catch(again);
    }, POLL_MS);
  };
  again();
}
