import type { ActionContext, ActionSource } from "./context.ts";
import { sendChange } from "./change.ts";
import { dropCreate, sendCreate } from "./create.ts";
import type { Departure } from "./prepare.ts";

/** Sends what was prepared, until the service has answered or the file is parked. */
export async function send(
  context: ActionContext,
  source: ActionSource,
  departure: Departure,
): Promise<void> {
  if (departure.intent === undefined) {
    await sendChange(context, source, departure);
    return;
  }
  const { intent } = departure;
  const { tier } = departure.observed.shape;
  if (
    await context.collections.guard(tier, context.signal, () =>
      sendCreate(context, source, departure, intent),
    )
  )
    return;
  context.ledger.note(() => dropCreate(context.ledger, source, intent));
  source.checkAgain(intent.path);
}
