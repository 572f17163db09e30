import type { Command } from "commander";
import type { z } from "zod";
import { loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { ROUTES } from "../../wire/routes.ts";
import {
  DeadAnswer,
  EndpointsAnswer,
  QueuesAnswer,
  ReplayAnswer,
  type DeadRecord,
  type EndpointRecord,
} from "../../wire/webhook.ts";
import { printJson } from "../state/ask.ts";
import type { ReachedService } from "../compose/embedded-service.ts";
import { runningService } from "../compose/reached-service.ts";
import { askService } from "../compose/service-call.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, configRequest, wholeNumber } from "../output/options.ts";
import { counted } from "../output/progress.ts";
import { makeStateFolder } from "../state/state-folder.ts";

interface ListOptions extends CommonOptions {
  readonly limit: number;
  readonly json?: boolean;
}

interface ReplayOptions extends CommonOptions {
  readonly endpoint?: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

/** The requests of these commands, as errors name them. */
const WHAT = "a request for its webhooks";

type Questions = z.output<typeof QueuesAnswer>["data"]["questions"];

/** `kbsync webhooks`: the endpoints of the service, and the messages that could not be delivered. */
export function addWebhooks(program: Command, context: Context): void {
  const webhooks = program
    .command("webhooks")
    .description("list webhook endpoints and undelivered messages, and send those again");
  webhooks
    .command("list")
    .description("list endpoints, undelivered messages (newest first) and questions that wait for an answer")
    .option("-n, --limit <n>", "maximum number of undelivered messages", wholeNumber(1, 1000), 20)
    .option("--json", "print them as JSON")
    .action(async (options: ListOptions) => list(context, options));
  webhooks
    .command("replay")
    .description("send undelivered messages again: one, those of an endpoint, or all")
    .argument("[webhook-id]", "id of one message, as `webhooks list` shows it")
    .option("--endpoint <id>", "all messages of this endpoint")
    .option("--all", "all messages of the account")
    .option("--json", "print the count as JSON")
    .action(async (webhookId: string | undefined, options: ReplayOptions) =>
      replay(context, webhookId, options),
    );
}

async function list(context: Context, options: ListOptions): Promise<void> {
  const service = await reach(context, options);
  const get = <S extends z.ZodType>(path: string, schema: S): Promise<z.output<S>> =>
    askService(service, { method: "GET", path, what: WHAT }, schema);
  const { endpoints } = (await get(ROUTES.webhooks, EndpointsAnswer)).data;
  const { dead } = (await get(`${ROUTES.webhooks}/dead?limit=${options.limit}`, DeadAnswer)).data;
  const { questions } = (await get(ROUTES.queues, QueuesAnswer)).data;
  if (options.json === true) printJson(context, { endpoints, dead, questions });
  else context.stdout.write(webhookLines(endpoints, dead) + questionLine(questions));
}

async function replay(
  context: Context,
  webhookId: string | undefined,
  options: ReplayOptions,
): Promise<void> {
  const named = [webhookId, options.endpoint, options.all].filter((each) => each !== undefined);
  if (named.length !== 1) {
    throw new KbsyncError("name one message, an endpoint with --endpoint, or --all", { code: "usage" });
  }
  const service = await reach(context, options);
  const body = {
    ...(webhookId === undefined ? {} : { webhookId }),
    ...(options.endpoint === undefined ? {} : { endpointId: options.endpoint }),
  };
  const path = `${ROUTES.webhooks}/dead/replay`;
  const { data } = await askService(service, { method: "POST", path, what: WHAT, body }, ReplayAnswer);
  if (options.json === true) printJson(context, data);
  else context.stdout.write(replayLine(data));
}

async function reach(context: Context, options: CommonOptions): Promise<ReachedService> {
  const config = loadConfig(configRequest(context, options));
  return runningService(config, makeStateFolder(config.stateDir), context.env);
}

/** The result of a replay. */
export function replayLine({ replayed, disabled = 0 }: z.output<typeof ReplayAnswer>["data"]): string {
  const left = disabled === 0 ? "" : `, ${disabled} not sent: their endpoint is disabled`;
  return `${counted(replayed, "message")} queued again${left}\n`;
}

/** Questions whose answers go to webhooks; empty if there are none. */
export function questionLine({ waiting, oldestAt, failed }: Questions): string {
  if (waiting === 0 && failed === 0) return "";
  const since = oldestAt === null ? "" : `, the oldest since ${oldestAt}`;
  const failures = failed === 0 ? "" : `; ${failed} reported as failed since the service started`;
  return `questions  ${waiting} waiting${since}${failures}\n`;
}

/** The endpoints and dead letters, one line each. */
export function webhookLines(endpoints: readonly EndpointRecord[], dead: readonly DeadRecord[]): string {
  if (endpoints.length === 0 && dead.length === 0) return "no endpoint is registered\n";
  const lines = endpoints.map((endpoint) => {
    const events = endpoint.events.length === 0 ? "all but resource.updated" : endpoint.events.join(", ");
    const state = endpoint.enabled ? "" : ", disabled";
    const problem = endpoint.problem === null ? "" : `, last: ${endpoint.problem}`;
    const waits = `${endpoint.waiting} waiting, ${endpoint.dead} dead`;
    return `endpoint ${endpoint._id}  ${endpoint.url}  ${events}; ${waits}${state}${problem}\n`;
  });
  const letters = dead.map(
    ({ webhookId, type, url, attempts, problem, createdAt }) =>
      `dead ${webhookId}  ${createdAt}  ${type}  ${url}  ${counted(attempts, "attempt")}: ${problem}\n`,
  );
  return [...lines, ...letters].join("");
}
