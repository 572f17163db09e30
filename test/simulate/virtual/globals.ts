import { onStage } from "./stage.ts";

const realSetImmediate = globalThis.setImmediate;
const RealDate = globalThis.Date;

/** One turn of the real loop: every promise and tick has gone as far as it can without time or disk. */
export async function realTurn(): Promise<void> {
  await new Promise<void>((resolve) => {
    realSetImmediate(resolve);
  });
}

/** A timer as Node's. Whether it keeps a process alive has no meaning here. */
class VirtualTimer {
  #timer: { cancel(): void } | undefined;
  readonly #start: () => { cancel(): void };

  constructor(start: () => { cancel(): void }) {
    this.#start = start;
    this.#timer = start();
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  hasRef(): boolean {
    return true;
  }
  refresh(): this {
    this.#timer?.cancel();
    this.#timer = this.#start();
    return this;
  }
  close(): this {
    this.#timer?.cancel();
    return this;
  }
  [Symbol.dispose](): void {
    this.close();
  }
}

/** Calls back after some virtual time, for the process that asks. */
export function after(ms: number, run: () => void): { cancel(): void } {
  const { clock, process } = onStage();
  return clock.at(clock.nowMs() + Math.max(0, ms), process, run);
}

/** Puts the virtual clock in place of Node's, for everything that runs in this process from now on. */
export function installGlobals(): void {
  class VirtualDate extends RealDate {
    constructor(...facts: [] | [number | string | Date]) {
      const [value = onStage().clock.wallMs()] = facts;
      super(value);
    }
    static override now(): number {
      return Math.floor(onStage().clock.wallMs());
    }
  }
  const clear = (timer: unknown): void => {
    if (timer instanceof VirtualTimer) timer.close();
  };
  const replaced = {
    Date: VirtualDate,
    // Node runs a timer of 0 ms after 1 ms.
    setTimeout: (run: (...facts: unknown[]) => void, ms = 1, ...facts: unknown[]) =>
      new VirtualTimer(() => after(Math.max(1, ms), () => run(...facts))),
    setImmediate: (run: (...facts: unknown[]) => void, ...facts: unknown[]) =>
      new VirtualTimer(() => after(0, () => run(...facts))),
    setInterval: (run: (...facts: unknown[]) => void, ms = 1, ...facts: unknown[]) => {
      const again = (): { cancel(): void } => {
        let timer = after(Math.max(1, ms), function fire() {
          timer = after(Math.max(1, ms), fire);
          run(...facts);
        });
        return { cancel: () => timer.cancel() };
      };
      return new VirtualTimer(again);
    },
    clearTimeout: clear,
    clearImmediate: clear,
    clearInterval: clear,
  };
  Object.assign(globalThis, replaced);
  Object.defineProperty(globalThis.performance, "now", { value: () => onStage().clock.nowMs() });
  Object.defineProperty(AbortSignal, "timeout", {
    value: (ms: number) => {
      const abort = new AbortController();
      after(ms, () => abort.abort(new DOMException("the time is over", "TimeoutError")));
      return abort.signal;
    },
  });
  // memfs asks for them at every step of a path, which is a system call each.
  for (const name of ["getuid", "getgid"] as const) {
    const id = process[name]?.();
    Object.assign(process, { [name]: () => id });
  }
  Object.defineProperty(Math, "random", { value: () => onStage().random.next() });
}
