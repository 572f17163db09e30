import type { Dispatcher } from "undici";
import { isLoopback } from "../../../lib/loopback.ts";
import { retryAfterMs } from "../../../lib/retry-after.ts";
import { header, type Reply } from "./answer.ts";

/**
 * Returns the address at which a file can be reached now: a service on this machine may have changed its port.
 * `reachedAt` replaces `resourcesUrl` where that is a public address that this process cannot use.
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

/** Receives the bytes of a downloaded file, piece by piece. A `LocalFailure` that it throws ends the download. */
export type Sink = (piece: Buffer) => Promise<void>;

/**
 * Downloads a file of at most `bytesMax` into a sink. A file host does not answer in JSON, so its status alone decides. A
 * refused key concerns the file only, because a file host may not use keys at all.
 */
export async function download(
  connections: Dispatcher,
  request: { readonly path: string; readonly headers: Record<string, string>; readonly signal: AbortSignal },
  bytesMax: number,
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
    // Leaving the loop ends the answer, even an endless one.
    if (bytes > bytesMax)
      return {
        kind: "refused",
        code: "too_large",
        message: `the uploaded file has more than ${bytesMax} bytes`,
      };
    await sink(piece);
  }
  return { kind: "done", value: undefined };
}
