import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import { z } from "zod";
import { KbsyncError } from "../../lib/failure.ts";
import type { Tier } from "../../wire/primitives.ts";

const Health = z.object({
  success: z.literal(true),
  embedder: z.object({ state: z.string() }),
  isBackfilling: z.boolean(),
  tiers: z.record(z.string(), z.string()),
});
type Health = z.infer<typeof Health>;

const EVERY_MS = 500;
/** A daemon that sends documents all the time may never let the service finish. */
const WAIT_MS_MAX = 3_600_000;
const ANSWER_MS_MAX = 10_000;
/** Missing answers in a row after which the wait ends: the search then reports the failure. */
const UNANSWERED_MAX = 3;

/**
 * Waits until a service has embedded all documents, without which a tier with vectors searches by words alone. Notifies of
 * a wait, and of a service without a model. Returns at once for services that do not report it. Throws
 * `service_unreachable` after an hour, and the signal's reason.
 */
export async function awaitVectors(
  apiUrl: string,
  tier: Tier,
  notify: (words: string) => void,
  signal: AbortSignal,
): Promise<void> {
  if (tier === "fastest") return;
  const startMs = performance.now();
  let health = await healthOf(apiUrl, signal);
  let unanswered = 0;
  if (health?.isBackfilling === true) notify("waiting until the service has embedded all documents");
  while (health?.isBackfilling === true) {
    if (performance.now() - startMs > WAIT_MS_MAX) {
      throw new KbsyncError("the service has been embedding documents for an hour", {
        code: "service_unreachable",
        retryable: true,
        hint: `Until it is done, ${tier} searches in part by words alone. Evaluate later, or evaluate fastest.`,
      });
    }
    await sleep(EVERY_MS, undefined, { signal });
    const next = await healthOf(apiUrl, signal);
    unanswered = next === undefined ? unanswered + 1 : 0;
    // A service that is embedding may answer one request late. The figures would then be those of a search partly by words
    // alone.
    if (next !== undefined || unanswered >= UNANSWERED_MAX) health = next;
  }
  if (health !== undefined && ["off", "unavailable", "failing"].includes(health.embedder.state))
    notify(`${tier} searches by ${health.tiers[tier] ?? "words alone"}`);
}

/** The health of a kbsync service; undefined for another service, and if none answers, which the search reports. */
async function healthOf(apiUrl: string, signal: AbortSignal): Promise<Health | undefined> {
  try {
    const timeouts = { headersTimeout: ANSWER_MS_MAX, bodyTimeout: ANSWER_MS_MAX };
    const { body } = await request(`${apiUrl}/v1/health`, { ...timeouts, signal });
    return Health.safeParse(await body.json()).data;
  } catch (error) {
    if (signal.aborted) throw error;
    return undefined;
  }
}
