import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { listenFailure } from "../lib/listen-failure.ts";
import { reachedAt } from "../lib/loopback.ts";
import { openSessions } from "./console/sessions.ts";
import type { Admission } from "./http/limits/admission.ts";
import { openResponseMemory } from "./http/limits/response-memory.ts";
import { openIdempotency } from "./http/operation/idempotency.ts";
import { openKeyring } from "./http/operation/keyring.ts";
import type { HttpParts } from "./http/operation/operation.ts";
import { openRateLimiter } from "./http/limits/rate.ts";
import { openSharedRate } from "./http/limits/shared-rate.ts";
import { openUrgent } from "./http/limits/urgent.ts";
import type { ServiceLimits, ServiceOptions } from "./options.ts";
import type { KnowledgeBase } from "./resources/knowledge-base.ts";

/** Opens what every route uses. */
export function httpParts(
  { log, observer, filesNeedKey = false, resourcesUrl }: ServiceOptions,
  kb: KnowledgeBase,
  admission: Admission,
  limits: ServiceLimits,
  rate: ReturnType<typeof rateKeys>,
): Omit<HttpParts, "daemonAccountId"> {
  return {
    ...limits,
    kb,
    keyring: openKeyring(kb.records, kb.nowMs, rate),
    sessions: openSessions(kb.records, kb.nowMs),
    publicUrl: resourcesUrl,
    idempotency: openIdempotency(kb.records, kb.sharedTurns, kb.nowMs),
    admission,
    responseMemory: openResponseMemory(limits.answerBytes),
    urgent: openUrgent(),
    log,
    filesNeedKey,
    ...(observer && {
      onAnswered: (operation, status, seconds) => observer.request(operation, status, seconds),
    }),
  };
}

/** Limits the rate of each key. The default rate exempts the program's own daemon, which has thousands of files to send. */
export function rateKeys(options: ServiceOptions, rate: ServiceOptions["rate"], steadyMs: () => number) {
  const { buckets } = options.store;
  const limiter =
    rate === undefined || buckets === undefined
      ? openRateLimiter(rate)
      : openSharedRate({ buckets, kind: "key", rule: rate, who: "The key" });
  return {
    take: (sha256: string) => {
      const isExempt = options.rate === undefined && sha256 === options.unratedKey?.();
      return isExempt ? undefined : limiter.take(sha256, steadyMs());
    },
  };
}

/** Refuses new requests, and closes the server when those in flight are answered, or after `drainMs`. */
export async function drain(
  server: FastifyInstance,
  admission: Admission,
  { jobWaits, changeWaits }: KnowledgeBase,
  drainMs: number,
  log: Logger,
): Promise<void> {
  admission.become("draining");
  // Frees the port for the next start at once. Connections with requests in flight stay open until these are answered.
  server.server.close();
  jobWaits.release();
  changeWaits.release();
  if ((await admission.empty(drainMs)) === "timeout") {
    log.warn({ drainMs }, "closing with requests in flight");
    server.server.closeAllConnections();
  }
  await server.close();
}

/** Starts to listen; returns the address for this machine. */
export async function listen(server: FastifyInstance, host: string, port: number): Promise<string> {
  try {
    await server.listen({ host, port });
    const address = server.server.address();
    const given = typeof address === "object" && address !== null ? address.port : port;
    return `http://${reachedAt(host)}:${given}`;
  } catch (error) {
    throw listenFailure(error, {
      subject: `${host}:${port}`,
      hint: "--port 0 takes a free port; service.host and service.port in the configuration set another address for good.",
    });
  }
}
