import { codeOf, messageOf } from "../failure.ts";

/**
 * What a child answers: `ready` once, then for each request any number of parts and one `done` or `failed`. `allow`: from now on
 * it may take so much processor time.
 */
export type CappedReply<Part, Failure extends string> =
  | { readonly kind: "ready" }
  | { readonly kind: "part"; readonly part: Part }
  | { readonly kind: "allow"; readonly cpuMs: number }
  | { readonly kind: "done"; readonly rssBytes: number; readonly cpuMs: number }
  | { readonly kind: "failed"; readonly code: Failure; readonly detail: string };

/** A failure that the child knows the code of. */
export class CappedRefusal<Failure extends string> extends Error {
  readonly code: Failure;
  constructor(code: Failure, detail: string) {
    super(detail);
    this.code = code;
  }
}

/** What V8 and most libraries say when an allocation is refused. */
const MEMORY_WORDS =
  /allocation failed|out of memory|cannot allocate|Invalid (typed )?array( buffer)? length/i;

/** Whether words tell of memory that was refused. */
export function isOutOfMemory(words: string): boolean {
  return MEMORY_WORDS.test(words);
}

/** Node's own codes that tell of this program or its surroundings: all others tell of what a library was given. */
const OWN_CODES = /^ERR_(?:MODULE_NOT_FOUND|DLOPEN_FAILED|ACCESS_DENIED|IPC_\w+|WORKER_\w+)$/;

/**
 * Whether a failure tells of the machine or the program (a file that is gone, no more handles, a library that cannot be
 * loaded), so that nothing is known of the document. `ERR_…` of Node itself mostly is about an argument, which a broken
 * document makes.
 */
export function isMachineFailure(error: unknown): boolean {
  const code = codeOf(error) ?? "";
  return /^E[A-Z0-9]+$/.test(code) || OWN_CODES.test(code);
}

/**
 * The child's side: works on each request that comes, one at a time, giving away parts as it has them. `codeFor` names
 * what was thrown. `allow` sets how much processor time the rest of a request may take. The process ends with its parent,
 * however that ends.
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
  // A terminal and systemd send the signals of a stop to children as well. The parent ends its children itself: a document
  // must not fail for a stop.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  // The parent is gone. What a library has running, as a thread that waits for its next picture, would keep the process
  // for ever, and a thread amid its work would hold up a polite end: it takes nothing along that anybody needs.
  process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
  if (!process.connected) process.kill(process.pid, "SIGKILL");
  reply({ kind: "ready" });
}
