import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { pino } from "pino";
import { Agent, FormData, request, type Dispatcher } from "undici";
import { openApiDocument } from "../../../src/kb/http/routes/openapi.ts";
import { openService } from "../../../src/kb/service.ts";
import type { ServiceOptions } from "../../../src/kb/options.ts";
import type { Service } from "../../../src/kb/service.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import type { KeyScope } from "../../../src/kb/store/accounts.ts";
import { AccountState } from "../../../src/wire/events.ts";
import { putEmptyStore } from "../store/empty-store.ts";
import { openAnswerCheck, typeOf } from "./answer-check.ts";
import type { CheckedAnswer, DeclaredApi } from "./answer-check.ts";

/** What a test may say otherwise. */
export interface RunningOptions extends Partial<Omit<ServiceOptions, "log" | "version">> {
  /** Stands between the service and its store. */
  readonly wrapStore?: (store: Store) => Store;
  /** Default true. False: the test calls `service.start` itself. */
  readonly start?: boolean;
}

/** A request as tests write it: an object as body goes out as JSON, text and bytes as they are. */
export interface Sent {
  readonly body?: object | string | Uint8Array | FormData;
  readonly headers?: Readonly<Record<string, string>>;
  /** Null: no key at all. Default: the running service's own. */
  readonly key?: string | null;
  /** Of a stream without end: what to read up to. */
  readonly until?: RegExp;
}

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // Tests look at answers field by field; what is not there shows as undefined.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly json: any;
}

/** A real service on a free port over a real store, by default in a temporary folder. */
export interface Running {
  readonly service: Service;
  /** The store the service works on, unwrapped. */
  readonly store: Store;
  readonly url: string;
  readonly stateDir: string;
  /** Of account `local`, with every scope. */
  readonly key: string;
  /** Every line logged so far. */
  log(): string;
  issueKey(account: string, scopes?: readonly KeyScope[], expiresAt?: string | null): Promise<string>;
  /** Checks the answer to a request that a test makes by itself; `send` does it. */
  check(answer: CheckedAnswer): void;
  send(method: string, path: string, sent?: Sent): Promise<Answered>;
  close(): Promise<void>;
}

export async function openRunning(options: RunningOptions = {}): Promise<Running> {
  const { wrapStore, start, ...rest } = options;
  const stateDir = options.stateDir ?? (await mkdtemp(join(tmpdir(), "kbsync-service-")));
  const agent = new Agent();
  const lines: string[] = [];
  const sink = new Writable({
    write: (line: Buffer, _encoding, done) => {
      lines.push(line.toString());
      done();
    },
  });
  const storePath = join(stateDir, "kb.sqlite");
  if (options.stateDir === undefined && options.store === undefined) await putEmptyStore(storePath);
  const store = options.store ?? (await openSqliteStore({ path: storePath }));
  const service = await openService({
    port: 0,
    // No test leaves this machine: no name is known.
    resolveHost: (_host, _options, done) =>
      done(Object.assign(new Error("no names here"), { code: "ENOTFOUND" }), []),
    ...rest,
    stateDir,
    store: wrapStore?.(store) ?? store,
    log: pino({ level: "trace" }, sink),
    version: "0.0.0-test",
  });
  const issueKey: Running["issueKey"] = (account, scopes = ["read", "write", "chat"], expiresAt = null) =>
    service.issueKey({ account, name: "test", scopes, createdAt: new Date().toISOString(), expiresAt });
  const key = await issueKey("local");
  const { url } = start === false ? { url: "" } : await service.start();

  return {
    service,
    store,
    url,
    stateDir,
    key,
    issueKey,
    log: () => lines.join(""),
    check: (answer) => checkOf(service)(answer),
    send: (method, path, sent = {}) =>
      send(agent, method, path.startsWith("http") ? path : url + path, sent, key, checkOf(service)),
    close: async () => {
      await agent.destroy();
      await service.close();
      if (options.stateDir === undefined) await rm(stateDir, { recursive: true });
    },
  };
}

async function send(
  agent: Agent,
  method: string,
  url: string,
  sent: Sent,
  ownKey: string,
  check: (answer: CheckedAnswer) => void,
): Promise<Answered> {
  const key = sent.key === undefined ? ownKey : sent.key;
  const { body, json } = bodyOf(sent.body);
  const answer = await request(url, {
    dispatcher: agent,
    method: method as "GET", // undici takes any method; its type lists the common ones
    headers: {
      ...(key === null ? {} : { pauthkey: key }),
      ...(json ? { "content-type": "application/json" } : {}),
      ...sent.headers,
    },
    ...(body === undefined ? {} : { body }),
  });
  const text = await readText(answer.body, sent.until);
  assertRequestId(`${method} ${url}`, answer.headers);
  check({ method, path: url, status: answer.statusCode, contentType: typeOf(answer.headers), text });
  return { status: answer.statusCode, headers: answer.headers, text, json: parsed(text) };
}

/** Reads a body to its end, or until it contains `until`; then disconnects. */
export async function readText(body: Dispatcher.ResponseData["body"], until?: RegExp): Promise<string> {
  if (until === undefined) return body.text();
  body.setEncoding("utf8");
  let text = "";
  for await (const piece of body) {
    text += String(piece);
    if (until.test(text)) break;
  }
  return text;
}

/** The numbers of an account, which `GET /v1/events` sends first and follows without end. */
export const FIRST_STATE = /^event: state\ndata: .*\n\n/m;

/** Reads the figures of an account's queues. */
export async function queuesOf(
  { send: ask }: Pick<Running, "send">,
  key?: string,
): Promise<AccountState["queues"]> {
  return queuesIn(
    (await ask("GET", "/v1/events", { until: FIRST_STATE, ...(key !== undefined && { key }) })).text,
  );
}

/** The figures of the queues in the first event of `GET /v1/events`. */
export function queuesIn(events: string): AccountState["queues"] {
  const [, data = ""] = /^data: (.*)$/m.exec(events) ?? [];
  return AccountState.parse(JSON.parse(data)).queues;
}

/** The check of a service's answers, compiled once for all services with the same operations. */
function checkOf(service: Service): (answer: CheckedAnswer) => void {
  const routes = service.routes();
  const operations = routes.map(({ method, url }) => `${method} ${url}`).join();
  const check =
    // The document's types are wider: it is served as it is.
    checks.get(operations) ??
    openAnswerCheck(openApiDocument(routes, "0.0.0-test") as unknown as DeclaredApi);
  checks.set(operations, check);
  return check;
}

const checks = new Map<string, (answer: CheckedAnswer) => void>();

/** Every answer names its request, whatever was asked and however it ended. */
export function assertRequestId(asked: string, headers: Answered["headers"]): void {
  assert.match(String(headers["x-request-id"]), REQUEST_ID, `x-request-id of ${asked}`);
}

const REQUEST_ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

function bodyOf(body: Sent["body"]): { body: string | Uint8Array | FormData | undefined; json: boolean } {
  if (body === undefined || body instanceof FormData) return { body, json: false };
  if (typeof body === "string" || body instanceof Uint8Array) return { body, json: true };
  return { body: JSON.stringify(body), json: true };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A valid create body; `change` replaces fields, a field set to undefined goes. */
export function createBody(change: object = {}): object {
  return {
    title: "Tides",
    description: "About the sea",
    content: "# Tides\n\nThe moon pulls the sea. Twice a day the water rises.",
    collection_details: "fastest",
    ...change,
  };
}

/** Requests in flight of `createMany`. */
const CREATES_AT_ONCE = 16;

/** Creates a resource of each body; returns the ids in the order of the bodies. */
export async function createMany(
  running: Pick<Running, "send">,
  bodies: readonly object[],
  key?: string,
): Promise<readonly string[]> {
  const ids: string[] = [];
  const rest = bodies.entries();
  const createRest = async (): Promise<void> => {
    for (const [at, body] of rest) {
      const sent = { body, ...(key !== undefined && { key }) };
      const { status, text, json } = await running.send("POST", "/api/rag/resource", sent);
      if (status !== 201) throw new Error(`a create was answered with ${status}: ${text}`);
      ids[at] = json.data._id;
    }
  };
  await Promise.all(Array.from({ length: CREATES_AT_ONCE }, createRest));
  return ids;
}

/** A form with one file, of which a type may be declared. */
export function fileForm(bytes: string | Uint8Array, name = "note.txt", part = "file", type = ""): FormData {
  const form = new FormData();
  // A copy of its own: a Buffer may be a view into a larger one, which Blob would not take.
  form.append(part, new Blob([typeof bytes === "string" ? bytes : new Uint8Array(bytes)], { type }), name);
  return form;
}
