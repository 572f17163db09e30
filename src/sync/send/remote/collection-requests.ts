import { z } from "zod";
import { MAIL_TYPE } from "../../../wire/constants.ts";
import { Tier } from "../../../wire/primitives.ts";
import type { ResourceRecord } from "../../../wire/resource.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { readAnswer, type Reply } from "./answer.ts";
import { readPage, unexpected } from "./list-page.ts";
import type { Transport, TransportOptions } from "./transport.ts";

/** Dependencies of requests about collections, and their reports. */
export interface CollectionOptions extends Pick<TransportOptions, "now" | "onMoved" | "onOddField"> {
  /** Called for each answer about the collections: what the service declares; undefined: it names no collections. */
  readonly onCapabilities?: (declared: DeclaredCapabilities | undefined) => void;
}

/** Abilities of a service beyond the specification. It declares it where it names its collections. */
export interface DeclaredCapabilities {
  /** It reads the PDFs and images of an uploaded mail. */
  readonly readsMails: boolean;
  readonly takesMetadata: boolean;
  readonly takesLocations: boolean;
  /** A delete with `purge=true` removes the text for good. */
  readonly purges: boolean;
}

/** The end of a list. */
export interface ListEnd {
  /** The list had more than one page. */
  readonly isPaged: boolean;
}

/** Resources per page of the list. A service without pages ignores it. */
const PAGE_RESOURCES = 1000;
/** A list with more pages repeats itself. */
const LIST_PAGES_MAX = 100_000;

/** What is needed of the answer about collections; a service may have others, and other fields. */
const CollectionsAnswer = z.object({
  data: z.object({
    collections: z.array(
      z
        .object({ _id: z.union([z.string().min(1), z.int().transform(String)]), details: Tier })
        .optional()
        .catch(undefined),
    ),
    reads: z.array(z.string()).catch([]),
    locations: z.boolean().catch(false),
    metadata: z.boolean().catch(false),
    purges: z.boolean().catch(false),
  }),
});

/** Opens these requests over a transport. */
export function collectionRequests(
  { attempt, send, db, auth }: Transport,
  {
    now,
    onMoved = () => undefined,
    onCapabilities = () => undefined,
    onOddField = () => undefined,
  }: CollectionOptions,
) {
  const listedPages = new Map<string, number>();
  return {
    /**
     * Lists an owner's resources in a collection, in pages if the service has them. `onResource` may receive some resources
     * before a `later`. `isUnlimited` sends no limit, for services that truncate a list at the limit without notice.
     */
    list: async (
      {
        collectionId,
        ownerId,
        isUnlimited = false,
      }: { readonly collectionId: string; readonly ownerId: string; readonly isUnlimited?: boolean },
      onResource: (resource: ResourceRecord) => void,
      signal: AbortSignal,
    ): Promise<Reply<ListEnd>> => {
      const query = new URLSearchParams({ collectionId, ownerId });
      if (!isUnlimited) query.set("limit", String(PAGE_RESOURCES));
      let nameless = 0;
      const onListed = (resource: ResourceRecord): void => {
        onMoved();
        onResource(resource);
      };
      for (let pages = 0; pages < LIST_PAGES_MAX; pages += 1) {
        const reply = await attempt("list", signal, () =>
          readPage({ db, auth }, query, onListed, { now, onOddField }, signal),
        );
        if (reply.kind === "refused" && query.has("limit") && !query.has("cursor")) {
          query.delete("limit"); // A service may refuse a parameter that it does not know.
          continue;
        }
        if (reply.kind !== "done") return reply;
        listedPages.set(collectionId, 1 + (listedPages.get(collectionId) ?? 0));
        nameless += reply.value.nameless;
        if (reply.value.nextCursor === undefined) {
          if (nameless > 0) onOddField("_id", `no usable id in ${nameless} resources of a list`);
          return { kind: "done", value: { isPaged: pages > 0 } };
        }
        query.set("cursor", reply.value.nextCursor);
      }
      return unexpected(`the list has more than ${LIST_PAGES_MAX} pages`);
    },

    /** Number of pages of a collection's lists that the service has answered. Each proves that the collection exists. */
    listedPages: (collectionId: string): number => listedPages.get(collectionId) ?? 0,

    /**
     * Ids of the collections by tier. `unsupported`: the service has no such list, as in the bare specification. `unclear`:
     * the answer may be another program's, such as a proxy's page with status 200.
     */
    collections: (
      signal: AbortSignal,
    ): Promise<Reply<ReadonlyMap<Tier, string> | "unsupported" | "unclear">> =>
      attempt("collections", signal, async () => {
        const answer = await send("db", { method: "GET", path: ROUTES.collections, headers: auth }, signal);
        // An addition: a service without it answers like for any unknown address.
        if (answer.status >= 400 && answer.status < 500 && ![401, 403, 408, 429].includes(answer.status)) {
          onCapabilities(undefined);
          // A gateway answers so while its service is away, too.
          const isOwn = readAnswer(answer, z.unknown(), "resource").kind !== "later";
          return { kind: "done", value: isOwn ? "unsupported" : "unclear" };
        }
        const reply = readAnswer(answer, CollectionsAnswer, "address");
        // A web application answers every address with its page, and so does a proxy while its service is down.
        if (reply.kind !== "done" && answer.status < 400) return { kind: "done", value: "unclear" };
        if (reply.kind === "refused") return { kind: "done", value: "unsupported" };
        if (reply.kind !== "done") return reply;
        const { collections, reads, locations, metadata, purges } = reply.value.data;
        onCapabilities({
          readsMails: reads.includes(MAIL_TYPE),
          takesMetadata: metadata,
          takesLocations: locations,
          purges,
        });
        const ids = collections.flatMap((each) => (each ? [[each.details, each._id] as const] : []));
        return { kind: "done", value: new Map(ids) };
      }),
  };
}
