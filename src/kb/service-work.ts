import { addressRules } from "../lib/public-address.ts";
import { openAnswering, type Answering } from "./answering.ts";
import { openFetcher } from "./fetch/fetcher.ts";
import { guardedConnector } from "./fetch/guarded-dial.ts";
import { openJobRunner } from "./jobs/job-runner.ts";
import type { ServiceOptions } from "./options.ts";
import { DEFAULT_RETENTION, openHousekeeping, type Housekeeping } from "./resources/housekeeping.ts";
import type { KnowledgeBase } from "./resources/knowledge-base.ts";
import { fetching } from "./service-knowledge-base.ts";
import type { ServiceModels } from "./service-models.ts";
import type { Topic } from "./store/methods.ts";
import { logDelivery } from "./webhooks/report.ts";
import { openWebhooks, type Webhooks } from "./webhooks/webhooks.ts";

/** Background work of the service. */
export interface Work {
  readonly answering: Answering;
  readonly webhooks: Webhooks;
  readonly housekeeping: Housekeeping;
  /** Starts the jobs that wait in a queue. */
  wake(queue: Exclude<Topic, "change">): void;
  /** Ends the jobs: those of documents get `withinMs` to complete. They are durable, and the next start repeats an aborted one. */
  close(withinMs: number): Promise<void>;
}

/** Opens the queues and the housekeeping. `isRated`: the requests of keys are limited. `fail` logs a failure that no caller sees. */
export function openWork(
  options: ServiceOptions,
  kb: KnowledgeBase,
  endpoint: ServiceModels["endpoint"],
  isRated: boolean,
  fail: (message: string) => (error: unknown) => void,
): Work {
  const { log, observer } = options;
  const retention = { ...DEFAULT_RETENTION, ...options.retention };
  const documents = openJobRunner(kb, fail("the queue of documents is stuck; retrying"));
  const webhooks = openDeliveries(options, kb, fail("the queue of webhook messages is stuck; retrying"));
  const answering = openAnswering({
    kb,
    log,
    endpoint,
    options: options.chat,
    // The limit on bytes applies to all images of a request together, where they are stored.
    fetcher: openFetcher({ ...fetching(options, "images"), bytesMax: Infinity }),
    imageDays: retention.threadImageDays,
    allowsHost: webhooks.allowsHost,
    isRated,
    buckets: options.store.buckets,
    onProblem: fail("the queue of questions is stuck; retrying"),
    onEnded: observer && ((outcome) => observer.question(outcome)),
  });
  const housekeeping = openHousekeeping({
    records: kb.records,
    queue: kb.queue,
    files: kb.files,
    turns: kb.sharedTurns,
    buckets: options.store.buckets,
    retention,
    nowMs: kb.nowMs,
    onSwept: (swept) => log.debug(swept, "housekeeping"),
    onProblem: fail("housekeeping failed; retrying later"),
  });
  const queues = { ingest: documents, chat: answering.jobs, webhook: webhooks.deliveries };
  return {
    answering,
    webhooks,
    housekeeping,
    wake: (queue) => queues[queue].wake(),
    close: async (withinMs) => {
      await documents.close(withinMs);
      await answering.close();
      await webhooks.close();
    },
  };
}

/** Opens the deliveries to webhooks, whose addresses must be public or allowed. */
function openDeliveries(
  { log, version, webhookAllow = [], resolveHost }: ServiceOptions,
  { records, queue, leases, nowMs, steadyMs }: KnowledgeBase,
  onProblem: (error: unknown) => void,
): Webhooks {
  const reachable = addressRules(webhookAllow);
  return openWebhooks({
    records,
    queue,
    leases,
    nowMs,
    steadyMs,
    connect: guardedConnector(reachable, resolveHost),
    allowsHost: (name) => reachable.mayAllow(name),
    agent: `kbsync/${version} (webhooks)`,
    chance: Math.random,
    report: (report) => logDelivery(log, report),
    onProblem,
  });
}
