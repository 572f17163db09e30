import { codeOf, messageOf } from "../failure.ts";

/**
 * Messages of a child: `ready` once, then for each request any number of parts and one `done` or `failed`. `allow` sets the
 * processor time that the child may use from now on.
 */
export type CappedReply<Part, Failure extends string> =
  | { readonly kind: "ready" }
  | { readonly kind: "part"; readonly part: Part }
  | { readonly kind: "allow"; readonly cpuMs: number }
  | { readonly kind: "done"; readonly rssBytes: number; readonly cpuMs: number }
  | { readonly kind: "failed"; readonly code: Failure; readonly detail: string };

/** A failure with a code of the child's kind. */
export class CappedRefusal<Failure extends string> extends Error {
  readonly code: Failure;
  constructor(code: Failure, detail: string) {
    super(detail);
    this.code = code;
  }
}

/** Messages of V8 and most libraries when an allocation fails. */
const OUT_OF_MEMORY =
  /allocation failed|out of memory|cannot allocate|Invalid (typed )?array( buffer)? length/i;

/** Whether an error message reports a failed allocation. */
export function isOutOfMemory(message: string): boolean {
  return OUT_OF_MEMORY.test(message);
}

/** Node's codes for faults of the program or its environment. All others concern a library's input. */
const OWN_CODES = /^ERR_(?:MODULE_NOT_FOUND|DLOPEN_FAILED|ACCESS_DENIED|IPC_\w+|WORKER_\w+)$/;

/**
 * Whether the machine or the program caused a failure (a missing file, no more handles, a library that does not load), so
 * that it says nothing about the document. Most `ERR_…` codes of Node concern an argument, which a broken document causes.
 */
export function isMachineFailure(error: unknown): boolean {
  const code = codeOf(error) ?? "";
  return /^E[A-Z0-9]+$/.test(code) || OWN_CODES.test(code);
}

/**
 * The child's side: works on one request at a time and sends parts as they are ready. `codeFor` maps errors to codes.
 * `allow` sets the processor time for the rest of a request. The process ends with its parent in every case.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- they hold a child to what its parent asks for
export function answerRequests<Request, Part, Failure extends string>(
  work: (request: Request, give: (part: Part) => void, allow: (cpuMs: number) => void) => Promise<void>,
  codeFor: (error: unknown) => Failure,
): void {
  const reply = (message: CappedReply<Part, Failure>): void => {
    process.send?.(message);
  };
  const answer = async (request: Request): Promise<void> => {
    try {
      await work(
        request,
        (part) => reply({ kind: "part", part }),
        (cpuMs) => reply({ kind: "allow", cpuMs }),
      );
      const { user, system } = process.cpuUsage();
      reply({ kind: "done", rssBytes: process.memoryUsage.rss(), cpuMs: (user + system) / 1000 });
    } catch (error) {
      reply({ kind: "failed", code: codeFor(error), detail: messageOf(error) });
    }
  };
  process.on("message", (request: Request) => {
    void answer(request);
  });
  // A terminal and systemd send stop signals to children too. Ignores them, as the parent ends its children: a document
  // must not fail because of a stop.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  // The parent is gone. A library's idle thread would keep the process alive for ever, and a busy one would delay an
  // orderly exit. The process holds nothing worth saving.
  process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
  if (!process.connected) process.kill(process.pid, "SIGKILL");
  reply({ kind: "ready" });
}
