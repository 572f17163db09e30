import { createHash } from "node:crypto";
import type { Clock } from "../virtual/clock.ts";
import { openRandom, type Random } from "../virtual/random.ts";
import { withoutMarker } from "../../../src/wire/marker.ts";
import type { Conditions, Operation, PageDeed } from "../history.ts";
import { describedBy, PUT_ID, shownBy } from "./hostility.ts";
import { normaliserOf } from "./normalise.ts";

/** A resource as the service keeps it. A deleted one stays, for the report at the end. */
export interface Resource {
  readonly id: string;
  readonly foreign: boolean;
  readonly title: string;
  readonly description: string;
  /** The description as it was last sent, whatever the service made of it. */
  readonly sent: string;
  readonly settings: unknown;
  readonly url: string | undefined;
  /** Of an upload: the hash of its bytes. */
  readonly content: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly tier: string;
  readonly collectionId: string;
  readonly ownerId: string;
  readonly createdMs: number;
  readonly updatedMs: number;
  readonly deleted: boolean;
  /** What was asked for and answered before it was done: the text of a create, or the change of an update, in order. */
  readonly queued: readonly Work[];
  /** Number of the daemon's process that asked for it; 0: of others. */
  readonly process: number;
  /** It was made some time after its request had broken off. */
  readonly late: boolean;
  /** A copy to which a person gave another text. */
  readonly isOwnWords?: boolean;
}

/** Work that goes on after its answer: what of a resource is another then. */
export type Work = Partial<Pick<Resource, "title" | "description" | "sent" | "url" | "content" | "metadata">>;

/** A request as it left. */
export interface SentRequest {
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly docId: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** When it started, by the simulation's clock: its body may have been read for some time since. */
  readonly begunMs: number;
  /** Number of the daemon's process. */
  readonly process: number;
}

/** Status, headers and body. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** How a request is served. */
export interface Manner {
  /** Long after the connection broke. */
  readonly late?: boolean;
  /** The end of work that started before. */
  readonly isWork?: boolean;
  /** What is wrong with a list. */
  readonly list?: "list-short" | "list-reordered" | "list-stale";
}

/** An in-memory service that obeys the bare specification to the letter, with the additions that the conditions give it. */
export interface Service {
  /** Acts on a request and answers. */
  serve(request: SentRequest, manner?: Manner): Answer;
  /** How long it works before it acts on a request that comes now, which is then served as work; 0: it acts at once. */
  workMs(request: SentRequest): number;
  /** Whether it takes metadata and says so. */
  takesMetadata(): boolean;
  /** Loses a part of the daemon's resources; returns them. */
  lose(share: number): readonly Resource[];
  /** Becomes what it was so long ago, as by a backup. Returns the daemon's resources that are gone with that. */
  restore(agoMs: number): readonly Resource[];
  answer(status: number, body: unknown, headers?: Readonly<Record<string, string>>): Answer;
  /** The time of day as the service has it. */
  wallMs(): number;
  resources(): readonly Resource[];
  /** Another number whenever what there is at the service has changed. */
  version(): number;
  /** The list shows what was so many milliseconds ago. */
  setLag(ms: number): void;
  /** Called before a resource is deleted or changed. */
  onWrite: (what: "update" | "delete", resource: Resource) => void;
  /** Notified of each resource that a create makes. */
  onCreate: (resource: Resource, request: SentRequest) => void;
  /** Somebody else made a resource `ageMs` ago. Default: now. */
  addForeign(
    facts: Pick<Resource, "title" | "description" | "content" | "ownerId" | "tier">,
    ageMs?: number,
  ): void;
  /** A person does something to the nth of the daemon's resources that nothing is worked on. Returns it as it was. */
  edit(deed: PageDeed, nth: number): Resource | undefined;
  /** What it stores of a description. */
  describe(description: string): string;
  /** SHA-256 of the bytes of an upload; undefined for any other address. */
  uploadOf(url: string): string | undefined;
  /** When a resource was made or changed last, by the simulation's clock. */
  writtenMs(id: string): number;
  /** When a request last made or changed it; the end of work is no request. */
  requestedMs(id: string): number;
  /** When a resource was made. */
  madeMs(id: string): number;
  /** A resource as it was made, and after each change. */
  versionsOf(id: string): readonly Resource[];
  /** The resource in whose place updates made this one, where each makes another. */
  originOf(id: string): string;
  /** When a process was first shown the list; undefined if it never was. */
  listedMs(process: number): number | undefined;
}

export const API_URL = "http://api.simulated";
export const DB_URL = "http://db.simulated";
export const SERVICE_KEY = "simulated-key";
export const RESOURCES_URL = "http://files.simulated";
const FILES_URL = `${RESOURCES_URL}/`;

interface Version {
  readonly atMs: number;
  /** From when on lists show it. */
  readonly listedMs: number;
  readonly resource: Resource;
  /** It shows the end of work that was requested before. */
  readonly isWorkEnd: boolean;
}

/** Opens an empty service. */
export function openService(clock: Clock, random: Random, conditions: Conditions): Service {
  const versions = new Map<string, Version[]>();
  const origins = new Map<string, string>();
  /** When each process was last shown the list. */
  const listed = new Map<number, number>();
  const uploads = new Map<string, { readonly bytes: Buffer; readonly hash: string }>();
  const answered = new Map<string, { body: string; answer: Answer }>();
  let lagMs = 0;
  let version = 0;
  /** All, as they are now, once somebody has asked for them. */
  let newestOfAll: readonly Resource[] | undefined;
  /** What there is at the service is another thing from here on. */
  const renew = (): void => {
    version += 1;
    newestOfAll = undefined;
  };
  const hostility = conditions.hostility ?? {};
  const normalised = normaliserOf(conditions.normalisation);
  const normalise = {
    text: (text: string): string => normalised.text(text),
    title: (title: string): string => (hostility.untitled === true ? "Untitled" : normalised.title(title)),
    description: (description: string): string => describedBy(hostility, description),
  };
  const lagRandom = (conditions.listLagMs ?? 0) > 0 ? openRandom(`lag ${random.hex(8)}`) : undefined;
  /** From when on requests by its id find a resource. */
  const knownFromMs = new Map<string, number>();
  const collections: Readonly<Record<string, string>> = {
    fastest: "c".repeat(23) + "1",
    moderate: "c".repeat(23) + "2",
    high_accuracy: "c".repeat(23) + "3",
  };

  /** A header's date; many answers fall into the same second. */
  let date = { second: Number.NaN, text: "" };
  const dateOf = (wallMs: number): string => {
    const second = Math.floor(wallMs / 1000);
    if (second !== date.second) date = { second, text: new Date(wallMs).toUTCString() };
    return date.text;
  };
  const newId = (): string =>
    hostility.odd === "numeric-ids" ? String(Number.parseInt(random.hex(12), 16)) : random.hex(24);
  const newest = (id: string): Resource | undefined => versions.get(id)?.at(-1)?.resource;
  const put = (resource: Resource, isWorkEnd = false): void => {
    const before = versions.get(resource.id) ?? [];
    const atMs = clock.nowMs();
    const listedMs = lagRandom === undefined ? atMs : atMs + lagRandom.between(0, conditions.listLagMs ?? 0);
    versions.set(resource.id, [...before, { atMs, listedMs, resource, isWorkEnd }]);
    renew();
  };
  const refuse = (status: number, message: string): Answer =>
    service.answer(status, { success: false, message, error: { code: `refused_${status}` } });

  const record = (resource: Resource, whole: boolean): unknown =>
    shownBy(hostility, recordOf(resource, whole));
  const recordOf = (resource: Resource, whole: boolean): Record<string, unknown> => ({
    _id: resource.id,
    title: resource.title,
    description: resource.description,
    collectionId: resource.collectionId,
    ownerId: resource.ownerId,
    settings: resource.settings,
    isDeleted: resource.deleted,
    ...(resource.url !== undefined && { url: resource.url }),
    ...(whole && {
      content: resource.content ?? "",
      metadata: { ...resource.metadata, status: resource.queued.length > 0 ? "queued" : "chunked" },
    }),
    refreshedAt: resource.updatedMs > resource.createdMs ? new Date(resource.updatedMs).toISOString() : null,
    createdAt: new Date(resource.createdMs).toISOString(),
    updatedAt: new Date(resource.updatedMs).toISOString(),
  });

  const upload = ({ body, headers }: SentRequest): Answer => {
    const bytes = fileOf(body, headers["content-type"] ?? "");
    if (bytes === undefined) return refuse(400, "no file in the form");
    if (bytes.length === 0) return refuse(400, "the file is empty");
    const url = `${FILES_URL}${random.hex(24)}`;
    uploads.set(url, { bytes, hash: createHash("sha256").update(bytes).digest("hex") });
    renew();
    return service.answer(200, { success: true, file_url: url });
  };

  /** What of a resource the fields of a request change, as the service stores it. */
  const fieldsOf = (fields: Record<string, unknown>): Work => {
    const { title, description, content, url } = fields;
    const metadata = metadataIn(fields);
    return {
      ...(typeof url === "string" && { url }),
      ...(typeof content === "string" && { content: normalise.text(content) }),
      ...(typeof title === "string" && { title: normalise.title(title) }),
      ...(typeof description === "string" && {
        description: normalise.description(description),
        sent: description,
      }),
      ...(metadata !== undefined && { metadata }),
    };
  };
  const titled = (title: string, collectionId: string, ownerId: string): Resource | undefined =>
    service
      .resources()
      .find(
        (each) =>
          !each.deleted &&
          each.title === title &&
          each.collectionId === collectionId &&
          each.ownerId === ownerId,
      );

  const create = (request: SentRequest, late: boolean): Answer => {
    const fields = JSON.parse(request.body.toString("utf8")) as Record<string, unknown>;
    const { title, description, settings, content, url, collection_details: tier, owner_id: owner } = fields;
    if (typeof title !== "string" || title === "" || typeof description !== "string") {
      return refuse(400, "title and description");
    }
    if ((content === undefined) === (url === undefined)) return refuse(400, "one of content and url");
    const collectionId = typeof tier === "string" ? collections[tier] : undefined;
    if (typeof tier !== "string" || collectionId === undefined) return refuse(400, "collection_details");
    if (typeof url === "string" && url.startsWith(FILES_URL) && !uploads.has(url)) {
      return refuse(400, "never uploaded");
    }
    const atMs = service.wallMs();
    const ownerId = typeof owner === "string" ? owner : "account";
    const upserted =
      hostility.upserts === true ? titled(normalise.title(title), collectionId, ownerId) : undefined;
    const resource: Resource = {
      id: upserted?.id ?? newId(),
      foreign: false,
      title: normalise.title(title),
      description: normalise.description(description),
      sent: description,
      settings,
      url: typeof url === "string" ? url : undefined,
      content: typeof content === "string" ? normalise.text(content) : undefined,
      metadata: metadataIn(fields) ?? {},
      tier,
      collectionId,
      ownerId,
      createdMs: upserted?.createdMs ?? atMs,
      updatedMs: atMs,
      deleted: false,
      process: request.process,
      late,
      queued: [],
    };
    service.onCreate(resource, request);
    if ((conditions.lateMs ?? 0) > 0)
      knownFromMs.set(resource.id, clock.nowMs() + random.between(0, conditions.lateMs ?? 0));
    // The list shows no text of what is queued.
    if (isPatient(request) && resource.content !== undefined)
      return begin({ ...resource, content: "", queued: [{ content: resource.content }] });
    if (isPatient(request)) return begin({ ...resource, queued: [{}] });
    put(resource);
    return service.answer(201, { success: true, message: "created", data: record(resource, false) });
  };

  /** When each of those that work at once is free again. */
  const freeMs = Array.from({ length: conditions.slow?.atOnce ?? 0 }, () => 0);
  /** How long it takes until a document that comes now is done; undefined where that is no matter. */
  const slotMs = (): number | undefined => {
    const { slow } = conditions;
    if (slow === undefined) return undefined;
    const nowMs = clock.nowMs();
    const at = freeMs.indexOf(Math.min(...freeMs));
    const endMs = Math.max(nowMs, freeMs[at] ?? 0) + random.between(slow.eachMs / 2, slow.eachMs);
    freeMs[at] = endMs;
    return endMs - nowMs;
  };
  const isQuick = ({ body }: SentRequest): boolean =>
    conditions.slow?.quickMs !== undefined && body.includes(QUICK);
  /** Keys of requests that are worked on. */
  const working = new Set<string>();
  const keyWord = ({ operation, headers }: SentRequest): string | undefined => {
    const key = conditions.keys ? headers["idempotency-key"] : undefined;
    return key === undefined ? undefined : `${operation} ${key}`;
  };

  /** Whether the answer may come before the work. */
  const isPatient = ({ headers }: SentRequest): boolean =>
    (conditions.workMs ?? 0) > 0 && headers["prefer"]?.startsWith("respond-async") === true;
  /** Adds a resource whose last work happens some time later, and answers that. */
  const begin = (resource: Resource): Answer => {
    put(resource);
    work(resource);
    const headers = { "preference-applied": "respond-async", location: `/api/rag/resource/${resource.id}` };
    return service.answer(202, { success: true, message: "queued", data: record(resource, true) }, headers);
  };
  /** Does some time later what is to be done of a resource. */
  const work = ({ id, queued }: Resource): void => {
    const last = queued.at(-1);
    if (last === undefined) return;
    const workMs = slotMs() ?? random.between(1, conditions.workMs ?? 1);
    clock.at(clock.nowMs() + workMs, { alive: true }, () => {
      const now = newest(id);
      // Deleted, or done before a change that was not to wait.
      if (now === undefined || now.deleted || !now.queued.includes(last)) return;
      put(finished(now, now.queued.indexOf(last) + 1), true);
    });
  };
  /** The resource with so much of its work done, in order. */
  const finished = (resource: Resource, works: number): Resource => ({
    ...resource,
    ...Object.assign({}, ...resource.queued.slice(0, works)),
    updatedMs: Math.max(service.wallMs(), resource.createdMs + 1),
    queued: resource.queued.slice(works),
  });

  const change = (request: SentRequest): Answer => {
    const { operation, docId, body } = request;
    const before = newest(docId ?? "");
    if (before === undefined || before.deleted || !isKnown(before.id)) return refuse(404, "no such resource");
    const updatedMs = Math.max(service.wallMs(), before.createdMs + 1);
    let answeredId = before.id;
    if (operation === "delete") {
      if (hostility.deletes === "forbidden") return refuse(403, "deletes are not allowed");
      if (hostility.deletes === "ignored")
        return service.answer(200, { success: true, message: operation, data: record(before, true) });
      service.onWrite("delete", before);
      put({ ...before, deleted: true, updatedMs, queued: [] });
    } else {
      const fields = JSON.parse(body.toString("utf8")) as Record<string, unknown>;
      const { content, url } = fields;
      if (before.content === undefined ? content !== undefined : url !== undefined) {
        return refuse(400, "the other kind of resource");
      }
      const isUpload = before.url?.startsWith(FILES_URL) === true;
      if (isUpload && typeof url === "string" && !uploads.has(url)) return refuse(400, "never uploaded");
      if (hostility.puts === "ignored")
        return service.answer(200, { success: true, message: operation, data: record(before, true) });
      service.onWrite("update", before);
      if (isPatient(request) && (typeof url === "string" || typeof content === "string"))
        return begin({ ...before, updatedMs, queued: [...before.queued, fieldsOf(fields)] });
      const isOwnWords = before.isOwnWords === true && content === undefined;
      const done = { ...finished(before, before.queued.length), ...fieldsOf(fields), updatedMs, isOwnWords };
      if (hostility.puts === "copied") {
        answeredId = newId();
        origins.set(answeredId, service.originOf(before.id));
        put({ ...before, deleted: true, updatedMs, queued: [] });
        put({ ...done, id: answeredId });
      } else put(done);
    }
    const after = newest(answeredId);
    const shown = after && (record(after, true) as object);
    const data = operation === "update" && hostility.puts === "one-id" ? { ...shown, _id: PUT_ID } : shown;
    return service.answer(200, { success: true, message: operation, data });
  };

  /** What lists and searches show of a place. Without an owner: of all. */
  const visible = (lag: number, collection: unknown, owner: unknown): Resource[] => {
    const asOfMs = clock.nowMs() - lag;
    return [...versions.values()]
      .map((each) => each.findLast(({ listedMs }) => listedMs <= asOfMs)?.resource)
      .filter((resource) => resource !== undefined)
      .filter(
        ({ deleted, ownerId, collectionId }) =>
          !deleted && (owner === undefined || ownerId === owner) && collectionId === collection,
      );
  };

  /** The resources of a place by the words that they share with a query; of an upload only its title is searched. */
  const search = ({ body }: SentRequest): Answer => {
    const asked = JSON.parse(body.toString("utf8")) as Record<string, unknown>;
    const words = new Set(String(asked["query"]).split(/\s+/));
    const results = visible(lagMs, asked["collection_id"], asked["owner_id"])
      .filter(({ queued }) => queued.length === 0)
      .map(({ id, title, content = "", collectionId, ownerId }) => ({
        id: `${id}-0`,
        version: 1,
        score: `${title} ${content}`.split(/\s+/).filter((word) => words.has(word)).length / words.size,
        payload: {
          resourceId: id,
          collectionId,
          ownerId,
          content,
          ...(conditions.collections && { title }),
        },
      }))
      .filter(({ score }) => score > 0)
      .toSorted((a, b) => b.score - a.score)
      .slice(0, Number(asked["top_k"] ?? SEARCH_RESULTS));
    return service.answer(200, { success: true, text: "", results });
  };

  const list = ({ query, process }: SentRequest, wrong: Manner["list"]): Answer => {
    if (!listed.has(process)) listed.set(process, clock.nowMs());
    if (conditions.strictList && (query.has("limit") || query.has("cursor"))) {
      return refuse(400, "unknown parameter");
    }
    const { ignoresOwner, listMax, listStaleMs = 0 } = hostility;
    const lag = Math.max(lagMs, listStaleMs, wrong === "list-stale" ? STALE_MS : 0);
    const owner = ignoresOwner === true ? undefined : query.get("ownerId");
    const all = visible(lag, query.get("collectionId"), owner).slice(0, listMax);
    const some = wrong === "list-short" ? all.filter(() => random.chance(SHORT_SHARE)) : all;
    const found = wrong === "list-reordered" ? some.toSorted(() => random.next() - 0.5) : some;
    if (!conditions.pages) {
      const resources = found.map((each) => record(each, true));
      return service.answer(200, { success: true, message: "listed", data: { resources, created: 0 } });
    }
    const limit = Number(query.get("limit") ?? found.length);
    const cursor = query.get("cursor") ?? "";
    // By id and not by place: a page says where it ended, whatever came or went since.
    const sorted = found.sort((a, b) => (a.id < b.id ? -1 : 1)).filter(({ id }) => id > cursor);
    const page = sorted.slice(0, limit);
    const nextCursor = sorted.length > limit ? (page.at(-1)?.id ?? null) : null;
    const resources = page.map((each) => record(each, true));
    return service.answer(200, {
      success: true,
      message: "listed",
      data: { resources, created: 0, nextCursor },
    });
  };

  const isKnown = (id: string): boolean => clock.nowMs() >= (knownFromMs.get(id) ?? 0);
  const act = (request: SentRequest, { late = false, list: wrong }: Manner): Answer => {
    switch (request.operation) {
      case "upload":
        return upload(request);
      case "create":
        return create(request, late);
      case "update":
      case "delete":
        return change(request);
      case "read": {
        const resource = newest(request.docId ?? "");
        if ((conditions.workMs ?? 0) === 0 && conditions.reads !== true)
          return refuse(404, "no such address");
        if (resource === undefined || !isKnown(resource.id)) return refuse(404, "no such resource");
        return service.answer(200, { success: true, message: "read", data: record(resource, true) });
      }
      case "list":
        return list(request, wrong);
      case "collections": {
        if (!conditions.collections) return refuse(404, "no such address");
        const all = Object.entries(collections).map(([details, _id]) => ({
          _id,
          details,
          resources: 0,
          chunks: 0,
        }));
        return service.answer(200, {
          success: true,
          data: { collections: all, ...(service.takesMetadata() && { metadata: true }) },
        });
      }
      case "download": {
        const file = uploads.get(`${RESOURCES_URL}${request.path}`);
        if (file === undefined) return refuse(404, "no such file");
        const headers = { "content-type": "application/octet-stream" };
        return { status: 200, headers, text: file.bytes.toString("utf8") };
      }
      case "search":
        return search(request);
      case "other":
        return refuse(404, "no such address");
    }
  };

  const service: Service = {
    onWrite: () => undefined,
    onCreate: () => undefined,
    takesMetadata: () => clock.nowMs() >= (conditions.metadataFromMs ?? Infinity),
    lose: (share) => {
      const ours = service.resources().filter(({ foreign, deleted }) => !foreign && !deleted);
      const lost = ours.filter(() => random.chance(share));
      for (const { id } of lost) versions.delete(id);
      renew();
      return lost;
    },
    restore: (agoMs) => {
      const asOfMs = clock.nowMs() - agoMs;
      const ours = service.resources().filter(({ foreign, deleted }) => !foreign && !deleted);
      for (const [id, all] of versions) {
        const left = all.filter(({ atMs }) => atMs <= asOfMs);
        if (left.length === 0) versions.delete(id);
        else versions.set(id, left);
      }
      answered.clear();
      renew();
      // A backup has what was to be done as well. A daemon waits for as long as a service says that it works.
      for (const resource of service.resources()) if (!resource.deleted) work(resource);
      return ours.filter(({ id }) => !versions.has(id));
    },
    wallMs: () => Math.floor(clock.nowMs() + BEGIN_MS + conditions.skewMs),
    answer: (status, body, headers = {}) => ({
      status,
      headers: {
        "content-type": "application/json",
        date: dateOf(service.wallMs()),
        ...headers,
      },
      text: typeof body === "string" ? body : JSON.stringify(body),
    }),
    serve: (request, manner = {}) => {
      if (request.headers["pauthkey"] !== SERVICE_KEY) return refuse(401, "unknown key");
      const word = keyWord(request);
      const body = request.body.toString("latin1");
      const before = word === undefined ? undefined : answered.get(word);
      if (before !== undefined) return before.body === body ? before.answer : refuse(409, "another body");
      if (word !== undefined && manner.isWork === true) working.delete(word);
      if (word !== undefined && working.has(word)) {
        const words = {
          success: false,
          message: "it is worked on",
          error: { code: "idempotency_in_progress" },
        };
        return service.answer(409, words, { "retry-after": "1" });
      }
      const answer = act(request, manner);
      if (word !== undefined && answer.status < 300) answered.set(word, { body, answer });
      return answer;
    },
    workMs: (request) => {
      const { operation, headers } = request;
      const isWork = operation === "create" || operation === "update";
      const word = keyWord(request);
      const isBegun = word !== undefined && (answered.has(word) || working.has(word));
      if (isQuick(request)) return 0;
      if (operation === "update") {
        // That there is none is known before any work: otherwise nobody who waits no longer would ever learn it.
        if (newest(request.docId ?? "")?.deleted !== false) return 0;
        // Another title or description leaves the text as it is.
        const fields = JSON.parse(request.body.toString("utf8")) as Record<string, unknown>;
        if (fields["content"] === undefined && fields["url"] === undefined) return 0;
      }
      if (!isWork || isPatient(request) || isBegun || headers["pauthkey"] !== SERVICE_KEY) return 0;
      const ms = slotMs() ?? 0;
      if (ms > 0 && word !== undefined) working.add(word);
      return ms;
    },
    resources: () => (newestOfAll ??= [...versions.values()].flatMap((each) => each.at(-1)?.resource ?? [])),
    version: () => version,
    setLag: (ms) => {
      lagMs = ms;
    },
    addForeign: ({ title, description, content, ownerId, tier }, ageMs = 0) => {
      const createdMs = service.wallMs() - ageMs;
      const collectionId = collections[tier] ?? "";
      put({
        id: newId(),
        foreign: true,
        title,
        description,
        sent: description,
        settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
        url: undefined,
        content,
        metadata: {},
        tier,
        collectionId,
        ownerId,
        createdMs,
        updatedMs: createdMs,
        deleted: false,
        process: 0,
        late: false,
        queued: [],
      });
    },
    edit: (deed, nth) => {
      const ours = service
        .resources()
        .filter(({ foreign, deleted, queued }) => !foreign && !deleted && queued.length === 0)
        // The daemon has learned of it.
        .filter(({ id }) => clock.nowMs() - service.writtenMs(id) > PAGE_SHOWS_MS);
      const before = ours[nth % ours.length];
      // A copy without a marker is of others.
      const isCopy = before?.process === 0 || deed.startsWith("copy");
      const isUnmarked = deed === "unmark" || deed === "describe" || !before?.description.endsWith("]");
      if (before === undefined || (isCopy && isUnmarked)) return undefined;
      const updatedMs = Math.max(service.wallMs(), before.createdMs + 1);
      const copy = { ...before, id: newId(), createdMs: updatedMs, updatedMs, process: 0 };
      const words = before.content === undefined ? {} : { content: `a person's own words ${nth}` };
      const changes: Readonly<Record<PageDeed, Resource>> = {
        describe: { ...before, description: "by hand" },
        unmark: { ...before, description: withoutMarker(before.description) },
        damage: { ...before, description: before.description.replace(/\.[a-z2-7]{8}\]$/, "") },
        edit: { ...before, ...words },
        copy,
        "copy-edited": { ...copy, ...words, isOwnWords: before.content !== undefined },
        delete: { ...before, deleted: true },
      };
      put({ ...changes[deed], updatedMs });
      return before;
    },
    describe: normalise.description,
    uploadOf: (url) => uploads.get(url)?.hash,
    writtenMs: (id) => versions.get(id)?.at(-1)?.atMs ?? 0,
    requestedMs: (id) => versions.get(id)?.findLast(({ isWorkEnd }) => !isWorkEnd)?.atMs ?? 0,
    madeMs: (id) => versions.get(id)?.[0]?.atMs ?? 0,
    versionsOf: (id) => (versions.get(id) ?? []).map(({ resource }) => resource),
    originOf: (id) => origins.get(id) ?? id,
    listedMs: (process) => listed.get(process),
  };
  return service;
}

/** The metadata in the fields of a request. */
function metadataIn({ metadata }: Record<string, unknown>): Resource["metadata"] | undefined {
  // The daemon sends an object: the judge sees to that.
  return metadata as Resource["metadata"] | undefined;
}

/** In requests that cost no time where others do. */
const QUICK = '"q/';
/** What a search gives that names no number. */
const SEARCH_RESULTS = 5;
/** How old a stale list is. */
const STALE_MS = 60_000;
/** A person changes nothing that is newer. */
const PAGE_SHOWS_MS = 60_000;
/** What a short list shows. */
const SHORT_SHARE = 0.5;
/** The service's own clock is right, whatever becomes of the daemon's. */
const BEGIN_MS = Date.UTC(2026, 0, 1);

/** The bytes of the form's one file. */
function fileOf(body: Buffer, contentType: string): Buffer | undefined {
  const boundary = /boundary=(.+)$/.exec(contentType)?.[1];
  const start = body.indexOf("\r\n\r\n");
  const end = body.lastIndexOf(`\r\n--${boundary ?? ""}--`);
  return boundary === undefined || start === -1 || end < start ? undefined : body.subarray(start + 4, end);
}
