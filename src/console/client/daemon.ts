import type { AnswerOf, DaemonOperation, RequestOf } from "../../wire/daemon.ts";
import { ask } from "./api.ts";

/** Operations that change nothing, and take their fields in the query. */
const READS: ReadonlySet<DaemonOperation> = new Set(["status", "why", "files", "log"]);

/** Asks the daemon beside the service. Throws `RequestError`. */
export function askDaemon<N extends DaemonOperation>(
  name: N,
  request: Partial<RequestOf<N>>,
  signal?: AbortSignal,
): Promise<AnswerOf<N>> {
  const path = `/v1/daemon/${name}`;
  if (!READS.has(name)) return ask(path, { method: "POST", body: request, signal });
  const query = request as Readonly<Record<string, string | number | undefined>>; // a flat object in every read
  return ask(path, { query, signal });
}
