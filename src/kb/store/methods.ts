import assert from "node:assert/strict";
import { KbsyncError } from "../../lib/failure.ts";
import type { QueueName } from "../queue/queue.ts";
import { isDamage } from "./damage.ts";
import type { Ports, Store } from "./store.ts";

/**
 * The kind of a method: `lookup` reads one small row; `read` reads one snapshot; `scan` reads much, in steps that let other
 * reads run in between; `write` is one transaction; `free` is a write that frees space or revokes a key, and must work on a
 * full disk.
 */
export type Kind = "lookup" | "read" | "scan" | "write" | "free";

interface Method {
  readonly kind: Kind;
  /** The queue that it may put a job into. */
  readonly puts?: QueueName;
  /** Whether it may change a document. */
  readonly changes?: true;
  /** Position of the argument that is the id of an account. Other arguments hold it as `accountId`, or in their `scope`. */
  readonly accountAt?: number;
}

const lookup = { kind: "lookup" } as const;
const read = { kind: "read" } as const;
const scan = { kind: "scan" } as const;
const write = { kind: "write" } as const;
const free = { kind: "free" } as const;

/** Every method of the ports. */
export const METHODS = {
  records: {
    ensureAccount: write,
    accounts: lookup,
    putKey: write,
    keyByHash: lookup,
    keys: lookup,
    changeKey: free,
    putSession: write,
    session: lookup,
    takeSession: write,
    collections: { ...read, accountAt: 0 },
    owners: read,
    createResource: { ...write, puts: "webhook", changes: true },
    enqueueCreate: { ...write, puts: "ingest", changes: true },
    updateResource: { ...write, puts: "webhook", changes: true },
    enqueueUpdate: { ...write, puts: "ingest" },
    failJob: { ...write, puts: "webhook", changes: true },
    failedResources: { ...read, accountAt: 0 },
    deleteResource: { ...free, puts: "webhook", changes: true },
    resource: read,
    tierOf: lookup,
    listResources: read,
    chunks: read,
    deletedResource: read,
    purgeDeleted: free,
    eraseResource: free,
    filesToErase: read,
    eraseFile: free,
    addFile: write,
    file: lookup,
    unusedFiles: read,
    removeUnusedFile: free,
    recall: lookup,
    sweepAnswers: free,
    addEndpoint: write,
    changeEndpoint: write,
    removeEndpoint: free,
    endpoint: lookup,
    endpoints: { ...read, accountAt: 0 },
    addDelivery: { ...write, puts: "webhook" },
    settleDelivery: write,
    thread: read,
    threads: read,
    removeThread: free,
    addTurn: { ...write, puts: "webhook" },
    addQuestion: { ...write, puts: "chat" },
    purgeThreads: free,
    purgeThreadImages: free,
  },
  queue: {
    put: write,
    due: scan,
    change: lookup,
    lease: write,
    renew: write,
    keepPages: write,
    noteReading: write,
    pagesOf: read,
    complete: write,
    postpone: write,
    fail: write,
    purgeFailed: free,
    release: write,
    resume: write,
    nextDueMs: read,
    figures: { ...read, accountAt: 1 },
  },
  index: {
    evidence: scan,
    foundChunks: read,
    surroundings: scan,
    documentMatches: scan,
    documents: scan,
    pending: scan,
    sentenceMatches: read,
    embeddingScopes: read,
    documentsLacking: read,
    chunksLacking: read,
    putVectors: write,
    putSentences: write,
    servingFingerprint: lookup,
    servingFingerprints: lookup,
    serveComplete: scan,
    dropRetired: free,
  },
} as const satisfies { [P in keyof Ports]: Record<keyof Ports[P], Method> };

/** The methods of the ports that are of these kinds. */
export type MethodsOf<K extends Kind> = {
  [P in keyof Ports]: {
    [
      M in keyof Ports[P] as M extends keyof (typeof METHODS)[P]
        ? (typeof METHODS)[P][M] extends { readonly kind: K }
          ? M
          : never
        : never
    ]: Ports[P][M];
  };
};

/**
 * Returns the account that a call of a method works for; empty for the service's own work. Calls of all accounts share the
 * threads of the store, which take turns among them.
 */
export function accountOf({ accountAt }: Pick<Method, "accountAt">, given: readonly unknown[]): string {
  const account = accountAt === undefined ? undefined : given[accountAt];
  if (typeof account === "string") return account;
  const { accountId, scope } = (given[0] ?? {}) as Addressed; // the fields of the ports' arguments; others have neither
  return accountId ?? scope?.accountId ?? "";
}

/** The part of an argument that names its account. */
interface Addressed {
  readonly accountId?: string;
  readonly scope?: { readonly accountId?: string };
}

/** The same methods as they run inside a transaction: they return their result itself. */
export type Inside<K extends Kind> = {
  [P in keyof Ports]: {
    [M in keyof MethodsOf<K>[P]]: MethodsOf<K>[P][M] extends (...given: infer A) => Promise<infer R>
      ? (...given: A) => R
      : never;
  };
};

/** Any method, whatever its arguments. */
type Operation<T> = (...given: never[]) => T;

/** Makes every method of these kinds. The caller ensures that each has the signature of its name. */
export function makeMethods<K extends Kind>(
  kinds: readonly K[],
  make: (port: keyof Ports, name: string, method: Method) => Operation<Promise<unknown>>,
): MethodsOf<K> {
  const wanted: ReadonlySet<Kind> = new Set(kinds);
  const ports = Object.entries<Readonly<Record<string, Method>>>(METHODS).map(([port, methods]) => [
    port,
    Object.fromEntries(
      Object.entries(methods)
        .filter(([, { kind }]) => wanted.has(kind))
        .map(([name, method]) => [name, make(port as keyof Ports, name, method)]), // a key of METHODS
    ),
  ]);
  return Object.fromEntries(ports) as MethodsOf<K>; // the names of METHODS
}

/** Makes every method of these kinds from the one of the same name. `wrap` returns a method with the same arguments. */
export function deriveMethods<K extends Kind, T>(
  kinds: readonly K[],
  source: Inside<K> | MethodsOf<K>,
  wrap: (operation: Operation<T>, method: Method) => Operation<Promise<unknown>>,
): MethodsOf<K> {
  return makeMethods(kinds, (port, name, method) => wrap(methodOf<T>(source, port, name), method));
}

/** Returns a method by its name. Its arguments and its result are those of the name. */
function methodOf<T>(
  ports: { readonly [P in keyof Ports]: object },
  port: keyof Ports,
  name: string,
): Operation<T> {
  const methods = ports[port] as Readonly<Record<string, Operation<T>>>; // ports hold nothing but methods
  const method = methods[name];
  assert(method !== undefined, `the store has no method ${port}.${name}`);
  return method;
}

/** A call of a method by its name, as it crosses to a thread. */
export interface MethodCall {
  readonly port: keyof Ports;
  readonly name: string;
  readonly given: readonly unknown[];
}

/** Answers calls that `makeMethods` made, so that the arguments have the types of the method. */
export function answerMethods(ports: { readonly [P in keyof Ports]: object }) {
  return ({ port, name, given }: MethodCall): unknown => methodOf(ports, port, name)(...(given as never[])); // typed by the caller's side
}

/** Returns the same store with every method wrapped. */
function wrapMethods(
  store: Store,
  wrap: (operation: Operation<Promise<unknown>>, method: Method) => Operation<Promise<unknown>>,
): Store {
  return { ...store, ...deriveMethods(ALL, store, wrap) };
}

const ALL: readonly Kind[] = ["lookup", "read", "scan", "write", "free"];

/** What a write may have added: a job of a queue, or a change of a document. */
export type Topic = QueueName | "change";

/** Returns the same store, which notifies `listener` of every write that may have added something for an account. */
export function onCommit(store: Store, listener: (topic: Topic, accountId: string) => void): Store {
  return wrapMethods(store, (operation, method) =>
    method.puts === undefined && method.changes === undefined
      ? operation
      : async (...given) => {
          const result = await operation(...given);
          const account = accountOf(method, given);
          if (method.puts !== undefined) listener(method.puts, account);
          if (method.changes !== undefined) listener("change", account);
          return result;
        },
  );
}

/**
 * Returns the same store, which calls `listener` with the first failure that means damage, and only with that one: a
 * damaged file stays damaged until a person acts, so every further report would say the same.
 */
export function onDamage(store: Store, listener: (failure: KbsyncError) => void): Store {
  let isReported = false;
  return wrapMethods(store, (operation) => async (...given) => {
    try {
      return await operation(...given);
    } catch (error) {
      if (!isReported && isDamage(error)) {
        isReported = true;
        listener(
          error instanceof KbsyncError
            ? error
            : new KbsyncError("the store file is damaged", { code: "store_damaged", cause: error }),
        );
      }
      throw error;
    }
  });
}
