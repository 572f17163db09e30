import { Worker, type WorkerOptions } from "node:worker_threads";

/**
 * Threads whose user has closed them, ready for the next user of the same module. Starting a thread and loading its modules
 * costs more than most stores that a test opens, so a process that opens hundreds one after another keeps some. Nothing is
 * kept unless `keepIdleThreads` asks for it: a program that closes its only store has no use for the thread.
 */
const idle = new Map<string, Worker[]>();
let idleMax = 0;

/** Sets how many idle threads of each module are kept, and ends those beyond. 0: a thread ends with its user. */
export async function keepIdleThreads(max: number): Promise<void> {
  idleMax = max;
  const surplus = [...idle.values()].flatMap((threads) => threads.splice(max));
  await Promise.all(surplus.map(async (thread) => thread.terminate()));
}

/** Takes an idle thread of the module, or starts one. All callers for one module must pass the same options. */
export function takeThread(module: URL, options: WorkerOptions): Worker {
  const thread = idle.get(module.href)?.pop();
  if (thread === undefined) return new Worker(module, options);
  forgetUser(thread);
  thread.ref();
  return thread;
}

/**
 * Ends a thread, or keeps it for the next user, who must be able to start as with a new one: no call may be in flight, and
 * what the thread opened must be closed.
 */
export async function endThread(thread: Worker, module: URL): Promise<void> {
  const threads = idle.get(module.href) ?? [];
  idle.set(module.href, threads);
  // A thread that has ended has no id.
  if (threads.length >= idleMax || thread.threadId === -1) {
    await thread.terminate();
    return;
  }
  forgetUser(thread);
  thread.once("exit", () => {
    const at = threads.indexOf(thread);
    if (at !== -1) threads.splice(at, 1);
  });
  // An idle thread keeps no process alive.
  thread.unref();
  threads.push(thread);
}

/** Removes the listeners of the thread's user. Node.js has some of its own, so each event is named. */
function forgetUser(thread: Worker): void {
  for (const event of ["message", "messageerror", "error", "exit"]) thread.removeAllListeners(event);
}
