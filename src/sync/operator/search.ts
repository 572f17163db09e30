import { KbsyncError } from "../../lib/failure.ts";
import type { SearchResult } from "../../wire/search.ts";
import { openPacer } from "../remote/pacer.ts";
import { openRemote, type SearchQuery, type ServiceAddress } from "../remote/remote.ts";

/** Time after which a search without an answer fails, in milliseconds: a person waits for it. */
const PATIENCE_MS = 10_000;
const CONNECTIONS = 4;

/**
 * Sends the queries to a service and closes the connection. Returns the results of all queries together, in no order. Throws
 * `service_unreachable`, `key_refused`, or `service_refused` with the service's own code as its subject.
 */
export async function searchOnce(
  address: ServiceAddress,
  queries: readonly SearchQuery[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<SearchResult[]> {
  const pacer = openPacer({
    widthMax: CONNECTIONS,
    patienceMs: () => PATIENCE_MS,
    random: Math.random,
    onWidth: () => undefined,
    onTrouble: () => undefined,
  });
  const remote = openRemote({ address, pacer, connections: CONNECTIONS, timeoutMs, now: Date.now });
  const ask = async (query: SearchQuery): Promise<readonly SearchResult[]> => {
    for (;;) {
      const reply = await remote.search(query, signal);
      switch (reply.kind) {
        case "done":
          return reply.value.results;
        case "gone":
          return [];
        case "refused":
          throw new KbsyncError(`the service refuses the search: ${reply.message}`, {
            code: "service_refused",
            subject: reply.code,
          });
        case "later":
          break; // the gate waits, and throws at the end of patience
      }
    }
  };
  try {
    return (await Promise.all(queries.map(ask))).flat();
  } finally {
    await remote.close();
  }
}
