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
  const { shape, title, digest, fileUrl } = departure.observed;
  const create = (): Promise<void> => sendCreate(context, source, departure, intent);
  const guarded = async (): Promise<void> => {
    if (await context.collections.guard(shape.tier, context.signal, create)) return;
    context.ledger.note(() => dropCreate(context.ledger, source, intent));
    source.checkAgain(intent.path);
  };
  // An upload's address is unique. Everything else could be mistaken for its twin when an answer is lost.
  if (shape.kind === "file") await guarded();
  else await context.twins.run(`${shape.ownerId}\0${title}\0${digest}\0${fileUrl ?? ""}`, guarded);
}
