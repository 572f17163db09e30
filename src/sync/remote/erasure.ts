import { request } from "undici";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { openAgent } from "../../lib/proxy.ts";
import { ERASED_MAX, ErasureAnswer, type ErasureReport } from "../../wire/erasure.ts";
import { Failure } from "../../wire/failure.ts";
import { KEY_HEADER, ROUTES } from "../../wire/routes.ts";
import type { ServiceAddress } from "./transport.ts";

/** Longest time for an answer: a service rewrites its database, which takes some seconds for each gigabyte. */
const ANSWER_MS_MAX = 30 * 60_000;

/** Erases at a service. Throws `service_unreachable`, `key_refused`, `service_refused`. */
export interface ServiceEraser {
  /**
   * Erases resources, live or deleted. Ids that the service does not know count as erased. A service without the operation gets
   * deletes, and is named in `remains`.
   */
  resources(ids: readonly string[], signal: AbortSignal): Promise<ErasureReport>;
  /** Erases all resources of an owner. Throws `not_offered` for a service without the operation. */
  owner(ownerId: string, signal: AbortSignal): Promise<ErasureReport>;
}

/** Opens the erasures at a service. Sends nothing yet. */
export function openServiceEraser(address: Pick<ServiceAddress, "dbUrl" | "pauthkey">): ServiceEraser {
  const { dbUrl, pauthkey } = address;
  const dispatcher = openAgent();
  const send = async (
    method: "POST" | "DELETE",
    path: string,
    body: object | undefined,
    signal: AbortSignal,
  ) => {
    try {
      const { statusCode, body: answer } = await request(`${dbUrl}${path}`, {
        method,
        headers: { [KEY_HEADER]: pauthkey, ...(body && { "content-type": "application/json" }) },
        ...(body && { body: JSON.stringify(body) }),
        headersTimeout: ANSWER_MS_MAX,
        bodyTimeout: ANSWER_MS_MAX,
        signal,
        dispatcher,
      });
      return { status: statusCode, text: await answer.text() };
    } catch (error) {
      signal.throwIfAborted();
      throw new KbsyncError(`the service ${dbUrl} does not answer: ${messageOf(error)}`, {
        code: "service_unreachable",
        subject: dbUrl,
        retryable: true,
        hint: "Nothing was removed here. Run the same command again when the service answers.",
        cause: error,
      });
    }
  };
  /** Undefined: the service has no such operation. */
  const erase = async (
    path: string,
    body: object,
    signal: AbortSignal,
  ): Promise<ErasureReport | undefined> => {
    const { status, text } = await send("POST", path, body, signal);
    if (status === 404 || status === 405) return undefined;
    const answer = status === 200 ? ErasureAnswer.safeParse(parsed(text)) : undefined;
    if (answer?.success === true) return answer.data.data;
    throw refused(status, text);
  };
  const remove = async (id: string, signal: AbortSignal): Promise<boolean> => {
    const { status, text } = await send(
      "DELETE",
      `${ROUTES.resource}/${encodeURIComponent(id)}`,
      undefined,
      signal,
    );
    if (status !== 200 && status !== 404) throw refused(status, text);
    return status === 200;
  };

  return {
    resources: async (ids, signal) => {
      let sum = NOTHING;
      for (let at = 0; at < ids.length; at += ERASED_MAX) {
        const some = ids.slice(at, at + ERASED_MAX);
        const report = await erase(ROUTES.eraseResources, { resource_ids: some }, signal);
        if (report === undefined)
          return addReports(sum, await removeAll(ids.slice(at), dbUrl, (id) => remove(id, signal)));
        sum = addReports(sum, report);
      }
      return sum;
    },
    owner: async (ownerId, signal) => {
      const report = await erase(ROUTES.eraseOwner, { owner_id: ownerId }, signal);
      if (report !== undefined) return report;
      throw new KbsyncError(`the service ${dbUrl} has no operation to erase an owner`, {
        code: "not_offered",
        subject: dbUrl,
        hint: "Name the documents: `kbsync erase PATH`.",
      });
    },
  };
}

/** Deletes resources of a service that cannot erase. */
async function removeAll(
  ids: readonly string[],
  dbUrl: string,
  remove: (id: string) => Promise<boolean>,
): Promise<ErasureReport> {
  let documents = 0;
  for (const id of ids) if (await remove(id)) documents += 1;
  const reason =
    "it has no operation to erase: the documents are deleted, and it has what it retains of deleted ones";
  return { ...NOTHING, documents, remains: [{ kind: "service", name: dbUrl, reason }] };
}

const NOTHING: ErasureReport = {
  documents: 0,
  chunks: 0,
  files: 0,
  requests: 0,
  messages: 0,
  turns: 0,
  images: 0,
  remains: [],
};

/** Returns what two erasures removed together. */
export function addReports(a: ErasureReport, b: ErasureReport): ErasureReport {
  return {
    ...a,
    documents: a.documents + b.documents,
    chunks: a.chunks + b.chunks,
    files: a.files + b.files,
    requests: a.requests + b.requests,
    messages: a.messages + b.messages,
    turns: a.turns + b.turns,
    images: a.images + b.images,
    remains: [...a.remains, ...b.remains],
  };
}

function refused(status: number, text: string): KbsyncError {
  const failure = Failure.safeParse(parsed(text));
  const { message, code } = failure.success
    ? { message: failure.data.message, code: failure.data.error.code }
    : { message: `HTTP ${status}`, code: String(status) };
  const isKey = status === 401 || status === 403;
  return new KbsyncError(`the service refuses the erasure: ${message}`, {
    code: isKey ? "key_refused" : "service_refused",
    subject: code,
    retryable: status === 503 || status === 429,
    hint: isKey
      ? "Documents need a key with the scope write, an owner one with admin."
      : "Run the same command again: it erases what is left.",
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
