import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { within } from "../../../lib/deadline.ts";
import type { TurnSlice } from "../../../lib/turn-slice.ts";
import { Refusal } from "../../resources/refusal.ts";
import type { AccountBudget } from "../limits/account-budget.ts";
import type { Line } from "../body/lines.ts";
import type { HttpParts } from "../operation/operation.ts";

/**
 * Yields the pieces of a body as lines are consumed. Throws `request_timeout` if a piece or the whole body takes too long: a
 * body that trickles in, such as a line without end, would hold its slot for ever.
 */
export async function* piecesOf(
  body: Readable,
  { requestMs: idleMs, bulkMs }: Pick<HttpParts, "requestMs" | "bulkMs">,
): AsyncGenerator<Buffer> {
  const endMs = performance.now() + bulkMs;
  // Destroying the body would close the connection and lose the answer.
  const source: AsyncIterator<Buffer> = body.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) throw tooLong(bulkMs);
      const late = (): Refusal => (leftMs < idleMs ? tooLong(bulkMs) : stalled(idleMs));
      const read = await within(source.next(), Math.min(idleMs, leftMs), late);
      if (read.done === true) return;
      yield read.value;
    }
  } finally {
    // Not awaited: it resolves after the piece requested last, which may never arrive.
    void source.return?.().then(
      () => body.resume(),
      () => undefined,
    );
  }
}

function stalled(idleMs: number): Refusal {
  return new Refusal(
    "request_timeout",
    `The body: no more of it arrived for ${Math.round(idleMs / 1000)} s.`,
    {
      hint: "Send the lines that were not answered in another request.",
    },
  );
}

/**
 * Waits until an account is within its budget. Throws `rate_limited` if that takes longer than `waitMsMax`: the account's other
 * bulk creates may use up the budget again and again for minutes.
 */
export async function waitForBudget(
  budget: AccountBudget,
  accountId: string,
  waitMsMax: number,
): Promise<void> {
  const waitMs = (): number => budget.waitMs(accountId, performance.now());
  const endMs = performance.now() + waitMsMax;
  for (let ms = waitMs(); ms > 0; ms = waitMs()) {
    if (performance.now() + ms > endMs) throw overBudget(Math.ceil(ms / 1000));
    await sleep(ms, undefined, { ref: false });
  }
}

function overBudget(retryAfterSeconds: number): Refusal {
  return new Refusal(
    "rate_limited",
    `The account has sent too many invalid lines to bulk creates. Send the lines that were not answered in ${retryAfterSeconds} s.`,
    {
      retryAfterSeconds,
      hint: "Correct the lines that were answered with 400 or 413 first: each counts again.",
    },
  );
}

/** Bounds the share of the event loop that the lines of bulk creates take. */
export interface Pace {
  /** Shared by all bulk creates. */
  readonly slice: TurnSlice;
  /** Waits until the account may send another line; see `waitForBudget`. */
  readonly withinBudget: (this: void) => Promise<void>;
  /** Counts an invalid line of the account. */
  readonly spend: (this: void) => void;
}

/**
 * Yields the same lines, each within the account's budget and within a slice; otherwise up to WIDTH lines would start in
 * one turn of the event loop.
 */
export async function* paced(
  lines: AsyncIterable<Line>,
  { slice, withinBudget }: Pick<Pace, "slice" | "withinBudget">,
): AsyncGenerator<Line> {
  for await (const line of lines) {
    await withinBudget();
    await slice.pause();
    yield line;
  }
}

function tooLong(bulkMs: number): Refusal {
  return new Refusal("request_timeout", `The body took longer than ${bulkMs / 3_600_000} hours.`, {
    hint: "Send the lines that were not answered in another request.",
  });
}
