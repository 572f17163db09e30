import type { Logger } from "pino";
import type { DeliveryReport } from "./delivery-runner.ts";

/**
 * Logs the result of an attempt: a warning when an endpoint starts to fail and when its messages are given up, a line when it
 * works again, and every failed attempt at level debug. Logs the endpoint's id or the host, never the address, which may
 * contain a secret.
 */
export function logDelivery(
  log: Logger,
  { eventId, attempts, line, problem, transition }: DeliveryReport,
): void {
  const facts = { endpoint: line, eventId, attempts, problem };
  switch (transition) {
    case "failing":
      log.warn(facts, "a webhook endpoint fails; its messages are retried");
      return;
    case "given up":
      log.warn(facts, "messages to a webhook endpoint were given up");
      return;
    case "recovered":
      log.info({ endpoint: line }, "a webhook endpoint works again");
      return;
    case undefined:
      if (problem !== undefined) log.debug(facts, "a webhook message did not arrive");
  }
}
