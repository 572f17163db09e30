import type { Config } from "../../config/load.ts";
import { searchOnce } from "../../sync/operator/search.ts";
import type { SearchQuery } from "../../sync/remote/remote.ts";
import type { SourceStatus } from "../../wire/daemon-status.ts";
import { joinPending, type Pending } from "../../wire/search.ts";
import type { ReachedService } from "./embedded-service.ts";

/**
 * Returns a function that asks which documents of the sources wait at the service, as searches count them, in the tiers that
 * search by meaning. Undefined: no source has such a tier, or the service does not say.
 */
export function openPending(
  config: Config,
  service: ReachedService,
  signal: AbortSignal,
): (sources: readonly SourceStatus[]) => Promise<Pending | undefined> {
  return async (sources) => {
    const scopes = config.sources.flatMap(({ absolutePath, collection, ownerId }) => {
      const collectionId = sources.find(({ path }) => path === absolutePath)?.collectionId ?? undefined;
      return collection === "fastest" || collectionId === undefined ? [] : [{ collectionId, ownerId }];
    });
    if (scopes.length === 0) return undefined;
    const distinct = [...new Map(scopes.map((scope) => [JSON.stringify(scope), scope])).values()];
    const queries = distinct.map((where): SearchQuery => ({ query: "passages", topK: 1, where }));
    const answers = await searchOnce(service, queries, config.sync.requestTimeoutMs, signal);
    return answers.every(({ pending }) => pending === undefined) ? undefined : joinPending(answers);
  };
}
