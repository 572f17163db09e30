import type { Logger } from "pino";
import type { CourierReport } from "./courier.ts";

/**
 * Writes what came of an attempt into the log: a warning when an endpoint begins to fail and when messages for it come to
 * be given up, a line when it works again; every failed attempt at level debug. Addresses are not told, they may be
 * secrets: the endpoint's id is, or the host.
 */
export function logDelivery(log: Logger, { eventId, attempts, line, problem, turn }: CourierReport): void {
  const facts = { endpoint: line, eventId, attempts, problem };
  switch (turn) {
    case "failing":
      log.warn(facts, "a webhook endpoint fails, its messages are tried again");
      return;
    case "given up":
      log.warn(facts, "messages to a webhook endpoint are given up; `kbsync webhooks list` shows them");
      return;
    case "back":
      log.info({ endpoint: line }, "a webhook endpoint works again");
      return;
    case undefined:
      if (problem !== undefined) log.debug(facts, "a webhook message did not arrive");
  }
}
