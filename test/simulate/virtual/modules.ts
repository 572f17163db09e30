import * as realCrypto from "node:crypto";
import * as realFs from "node:fs";
import * as realFsPromises from "node:fs/promises";
import RealDatabase from "better-sqlite3";
import { after } from "./globals.ts";
import { diskOnStage, onStage } from "./stage.ts";
import { isVirtualPath, VIRTUAL_FD_MIN } from "../world/disk.ts";

type Call = (...facts: never[]) => unknown;
type Module = Record<string, unknown>;

/** Longest time of one flush of the ledger's log: that of a disk that turns. */
const FLUSH_MS_MAX = 25;
/** Longest time of one asynchronous call into the disk. */
const DISK_MS_MAX = 2;

/** The modules that `src` gets in place of Node's and SQLite's own, by specifier. */
export function replacedModules(): ReadonlyMap<string, Module> {
  return new Map<string, Module>([
    ["node:fs", fsModule()],
    ["node:fs/promises", fsPromisesModule()],
    ["node:timers/promises", timersModule()],
    ["node:crypto", cryptoModule()],
    ["better-sqlite3", { default: sqliteClass() }],
  ]);
}

/**
 * Paths below the virtual root go to the simulation's disk, all else (the state folder) to the real one. No call waits
 * for the real disk: what is asynchronous is done at once, and reported after some virtual time.
 */
function fsModule(): Module {
  const module: Module = { ...realFs, openSync: openFile, closeSync: closeFile };
  for (const [name, real] of Object.entries(realFs)) {
    if (typeof real !== "function" || /^[A-Z_]/.test(name) || module[name] !== real) continue;
    module[name] = (...facts: unknown[]) => callDisk(name, facts);
  }
  for (const name of Object.keys(realFs)) {
    const sync = module[`${name}Sync`];
    if (typeof sync === "function") module[name] = withCallback(`${name}Sync`);
  }
  module["fdatasync"] = (fd: number, done: (error: Error | null) => void) => {
    const log = logOf(fd);
    const { random, process } = onStage();
    after(random.between(0.05, FLUSH_MS_MAX), () => {
      process.flushed(log);
      done(null);
    });
  };
  // The state folder has another name after each crash, which nothing but its real path shows.
  module["realpathSync"] = Object.assign(module["realpathSync"] as Call, {
    native: (path: string) => (isVirtualPath(path) ? path : "/state"),
  });
  module["default"] = module;
  return module;
}

function isVirtual(first: unknown): boolean {
  return isVirtualPath(first) || (typeof first === "number" && first >= VIRTUAL_FD_MIN);
}

/** A synchronous call into whichever disk the path or descriptor belongs to. */
function callDisk(name: string, facts: readonly unknown[]): unknown {
  if (name === "openSync") return openFile(...(facts as Parameters<typeof realFs.openSync>));
  if (name === "closeSync") return closeFile(Number(facts[0]));
  if (isVirtual(facts[0])) return diskOnStage().call(name, facts);
  return Reflect.apply(Reflect.get(realFs, name) as Call, realFs, facts);
}

const fds = new Map<number, { close(): void }>();

/** Files of the real disk are noted, so that those of a process that dies can be closed. */
function openFile(...facts: Parameters<typeof realFs.openSync>): number {
  if (isVirtualPath(facts[0])) return Number(diskOnStage().call("openSync", facts));
  const fd = realFs.openSync(...facts);
  const handle = { close: () => realFs.closeSync(fd) };
  fds.set(fd, handle);
  onStage().process.handles.add(handle);
  return fd;
}

function closeFile(fd: number): void {
  if (fd >= VIRTUAL_FD_MIN) {
    diskOnStage().call("closeSync", [fd]);
    return;
  }
  const handle = fds.get(fd);
  if (handle !== undefined) onStage().process.handles.delete(handle);
  fds.delete(fd);
  realFs.closeSync(fd);
}

function withCallback(name: string) {
  return (...all: unknown[]): void => {
    const done = all.pop() as (error: unknown, value?: unknown) => void;
    afterDisk(() => {
      let value: unknown;
      try {
        value = callDisk(name, all);
      } catch (error) {
        done(error);
        return;
      }
      done(null, value);
    });
  };
}

function afterDisk(run: () => void): void {
  after(onStage().random.between(0.01, DISK_MS_MAX), run);
}

/** How much of a write-ahead log there is, and which one: SQLite writes another head when it starts over. */
function logOf(fd: number): { head: string; sizeBytes: number } {
  const head = Buffer.alloc(32);
  realFs.readSync(fd, head, 0, head.length, 0);
  return { head: head.toString("hex"), sizeBytes: realFs.fstatSync(fd).size };
}

function fsPromisesModule(): Module {
  const module: Module = { ...realFsPromises };
  const call = async (name: string, facts: readonly unknown[]): Promise<unknown> => {
    await new Promise<void>((resolve) => {
      afterDisk(resolve);
    });
    return callDisk(name, facts);
  };
  for (const [name, real] of Object.entries(realFsPromises)) {
    if (typeof real !== "function") continue;
    module[name] = (...facts: unknown[]) => call(`${name}Sync`, facts);
  }
  module["open"] = async (...facts: unknown[]) => handleOf(Number(await call("openSync", facts)), call);
  module["default"] = module;
  return module;
}

/** What of a FileHandle is used; any other method is missing, which shows. */
function handleOf(fd: number, call: (name: string, facts: readonly unknown[]) => Promise<unknown>): Module {
  return {
    fd,
    stat: () => call("fstatSync", [fd]),
    read: async (buffer: Buffer, ...rest: unknown[]) => ({
      bytesRead: await call("readSync", [fd, buffer, ...rest]),
      buffer,
    }),
    write: async (buffer: Buffer, ...rest: unknown[]) => ({
      bytesWritten: await call("writeSync", [fd, buffer, ...rest]),
      buffer,
    }),
    writeFile: (...facts: unknown[]) => call("writeFileSync", [fd, ...facts]),
    readFile: (...facts: unknown[]) => call("readFileSync", [fd, ...facts]),
    truncate: (...facts: unknown[]) => call("ftruncateSync", [fd, ...facts]),
    utimes: (...facts: unknown[]) => call("futimesSync", [fd, ...facts]),
    sync: () => call("fsyncSync", [fd]),
    datasync: () => call("fdatasyncSync", [fd]),
    close: async () => {
      closeFile(fd);
      await Promise.resolve();
    },
  };
}

function timersModule(): Module {
  const sleep = (ms: number, value?: unknown, { signal }: { signal?: AbortSignal } = {}): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(abortOf(signal));
        return;
      }
      const stop = (): void => {
        timer.cancel();
        if (signal !== undefined) reject(abortOf(signal));
      };
      const timer = after(Math.max(1, ms), () => {
        signal?.removeEventListener("abort", stop);
        resolve(value);
      });
      signal?.addEventListener("abort", stop, { once: true });
    });
  const turn = (value?: unknown): Promise<unknown> =>
    new Promise((resolve) => {
      after(0, () => resolve(value));
    });
  const module: Module = { setTimeout: sleep, setImmediate: turn };
  return { ...module, default: module };
}

function abortOf(signal: AbortSignal): Error {
  return Object.assign(new Error("The operation was aborted", { cause: signal.reason }), {
    name: "AbortError",
    code: "ABORT_ERR",
  });
}

function cryptoModule(): Module {
  const random = (): ReturnType<typeof onStage>["random"] => onStage().random;
  const replaced: Module = {
    randomUUID: () => {
      const hex = random().hex(32);
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
    },
    randomBytes: (count: number) => Buffer.from(random().hex(2 * count), "hex"),
    randomInt: (...[a, b]: [number, number?]) =>
      Math.floor(random().between(b === undefined ? 0 : a, b ?? a)),
  };
  const module: Module = { ...realCrypto, ...replaced };
  return { ...module, default: module };
}

/**
 * SQLite itself; a database that a crashed process leaves open is closed by the simulation. A statement is compiled when it
 * is first used: each start of a daemon prepares hundreds, and uses a few.
 */
function sqliteClass(): Call {
  class Database extends (RealDatabase as unknown as new (...facts: unknown[]) => RealDatabase.Database) {
    constructor(...facts: unknown[]) {
      super(...facts);
      // The class that holds it is SQLite's own: `this` is what it made.
      onStage().process.handles.add(this);
      // One process at a time has a state folder: no lock is taken and released at each read of the ledger.
      this.pragma("locking_mode = EXCLUSIVE");
    }
    override prepare(text: string): never {
      return new LazyStatement(() => super.prepare(text)) as never;
    }
  }
  return Database as unknown as Call;
}

/** A statement of SQLite's with the methods that `src` uses; any other is missing, which shows. */
class LazyStatement {
  #statement: RealDatabase.Statement | undefined;
  #open: () => RealDatabase.Statement;

  constructor(open: () => RealDatabase.Statement) {
    this.#open = open;
  }
  #opened(): RealDatabase.Statement {
    return (this.#statement ??= this.#open());
  }
  pluck(): this {
    const open = this.#open;
    this.#open = () => open().pluck();
    return this;
  }
  get(...values: unknown[]): unknown {
    return this.#opened().get(...values);
  }
  all(...values: unknown[]): unknown[] {
    return this.#opened().all(...values);
  }
  iterate(...values: unknown[]): Iterable<unknown> {
    return this.#opened().iterate(...values);
  }
  run(...values: unknown[]): RealDatabase.RunResult {
    return this.#opened().run(...values);
  }
}
