import type { Dispatcher } from "undici";
import { codeOf, messageOf } from "../../lib/failure.ts";
import { isLoopback } from "../../lib/loopback.ts";
import { retryAfterMs } from "../../lib/retry-after.ts";
import { header, type Reply } from "./answer.ts";

/**
 * A file's address as it is reachable now: a service on this machine alone may have another port than it had then.
 * `reachedAt`: where files under `resourcesUrl` are asked for, if that is an address for others.
 */
export function fileAddress(url: string, resourcesUrl: string, reachedAt: string = resourcesUrl): URL {
  const then = new URL(url);
  const now = new URL(reachedAt);
  const { origin, pathname } = new URL(resourcesUrl);
  const folder = pathname.replace(/\/$/, "");
  if (reachedAt !== resourcesUrl && then.origin === origin && then.pathname.startsWith(`${folder}/`))
    return new URL(`${reachedAt}${then.pathname.slice(folder.length)}${then.search}`);
  if (!isLoopback(then.hostname) || !isLoopback(now.hostname)) return then;
  then.host = now.host;
  return then;
}

/** Where the bytes of a file at the service go, piece by piece. What it throws ends the download. */
export type Sink = (piece: Buffer) => Promise<void>;

/**
 * Fetches a file into a sink. Only what is as long as was expected is `done`, and what keeps the sink from taking it is
 * `refused` with the system's code: it is no fault of the service's. Answers of a file host are no JSON, so its status
 * alone tells; a refused key is the file's trouble, for a file host may ask for none.
 */
export async function download(
  connections: Dispatcher,
  request: { readonly path: string; readonly headers: Record<string, string>; readonly signal: AbortSignal },
  sizeBytes: number,
  sink: Sink,
  nowMs: number,
): Promise<Reply<undefined>> {
  const answer = await connections.request({ method: "GET", ...request });
  const { statusCode, body } = answer;
  if (statusCode !== 200) {
    await body.dump();
    const reason = `HTTP ${statusCode} for the uploaded file`;
    if (statusCode >= 500 || statusCode === 408 || statusCode === 429) {
      const waitMs = retryAfterMs(header(answer, "retry-after"), nowMs, header(answer, "date"));
      return { kind: "later", acted: "no", blame: "request", reason, retryAfterMs: waitMs };
    }
    return { kind: "refused", code: `http_${statusCode}`, message: reason };
  }
  let bytes = 0;
  for await (const piece of body as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > sizeBytes) break; // Leaving the loop ends the answer, however long it would go on.
    try {
      await sink(piece);
    } catch (error) {
      return { kind: "refused", code: codeOf(error) ?? "sink_failed", message: messageOf(error) };
    }
  }
  if (bytes === sizeBytes) return { kind: "done", value: undefined };
  const came = bytes > sizeBytes ? "more" : String(bytes);
  return {
    kind: "refused",
    code: "other_size",
    message: `the uploaded file has ${came} bytes, expected ${sizeBytes}`,
  };
}
