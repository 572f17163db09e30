import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { markFile, writeMark } from "../../../src/sync/ledger/mark.ts";
import { rootIdentityOf } from "../../../src/sync/scan/disk/root-identity.ts";
import type { Kept } from "../history.ts";
import type { SimulatedProcess } from "../virtual/stage.ts";

/** The machine the daemon runs on: its state folder, which survives processes, and what a crash makes of it. */
export interface Machine {
  /** The state folder as it is now; another one after a crash. */
  stateDir(): string;
  /** A text without the name of this machine's folder, which is another one in each run. */
  withoutFolder(text: string): string;
  /** Begins a process. */
  boot(onEffect: (process: SimulatedProcess, name: string) => void): SimulatedProcess;
  /**
   * Ends a process at once. Its code may go on until it waits for something: nothing of that is kept. Returns what is
   * left of the ledger, for there may be no backup.
   */
  kill(process: SimulatedProcess, kept: Kept): Kept;
  /** Copies the state folder as it is. */
  backUp(): void;
  /** Empties the state folder, which no process has. */
  empty(): void;
  /** Closes what dead processes left open. */
  bury(): void;
  close(): void;
}

/** Thrown at the point of a crash. */
export class Crash extends Error {
  override readonly name = "Crash";
}

const LEDGER_FILE = "ledger.db";
const LOG_FILE = `${LEDGER_FILE}-wal`;
/** Files of a running process, which a crash leaves without meaning. */
const FLEETING = /\.(?:lock|pid|sock)$|-shm$|-journal$/;

interface LivingProcess extends SimulatedProcess {
  alive: boolean;
}

/** A write-ahead log as far as it is on the disk for good; SQLite writes another head when it starts over. */
interface Log {
  readonly head: string;
  readonly sizeBytes: number;
}

/** In memory where the system has such a folder: a simulation flushes thousands of times. */
const BASE = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** Makes a machine with an empty state folder. */
export function openMachine(): Machine {
  const base = mkdtempSync(join(BASE, "kbsync-simulated-"));
  let number = 0;
  let folder = join(base, "0");
  /** What a dead process left unflushed is so still, until another one flushes the log. */
  let durable: Log = { head: "", sizeBytes: 0 };
  mkdirSync(folder);
  let buried: { readonly process: LivingProcess; readonly folder: string }[] = [];
  const processes = new Set<LivingProcess>();
  const backup = join(base, "backup");

  const bury = (): void => {
    for (const dead of buried) {
      for (const handle of dead.process.handles) {
        try {
          handle.close();
        } catch {
          // Closed by the process itself on its way out.
        }
      }
      dead.process.handles.clear();
      rmSync(dead.folder, { recursive: true, force: true });
    }
    buried = [];
  };
  return {
    stateDir: () => folder,
    withoutFolder: (text) => text.replaceAll(base, "state"),
    boot: (onEffect) => {
      number += 1;
      const process: LivingProcess = {
        alive: true,
        number,
        handles: new Set(),
        effect: (name) => {
          if (!process.alive) throw new Crash(name);
          onEffect(process, name);
        },
        flushed: (log) => {
          durable = log;
        },
      };
      processes.add(process);
      return process;
    },
    kill: (dead, asked) => {
      const kept = asked === "backup" && !existsSync(backup) ? "none" : asked;
      const process = [...processes].find((each) => each === dead);
      if (process === undefined || !process.alive) return kept;
      process.alive = false;
      const before = folder;
      folder = join(base, String(number));
      if (kept === "backup") copyState(backup, folder, "all", durable);
      else {
        copyState(before, folder, kept, durable);
        markCopy(before, folder);
      }
      // After a power loss, what is there is what the disk holds.
      if (kept !== "all") durable = logOf(join(folder, LOG_FILE));
      buried.push({ process, folder: before });
      return kept;
    },
    backUp: () => {
      rmSync(backup, { recursive: true, force: true });
      copyState(folder, backup, "all", durable);
    },
    empty: () => {
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
    },
    bury,
    close: () => {
      bury();
      rmSync(base, { recursive: true, force: true });
    },
  };
}

function copyState(from: string, to: string, kept: Exclude<Kept, "backup">, log: Log): void {
  mkdirSync(to, { mode: 0o700 });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) copyState(source, target, "all", log);
    else if (entry.isFile() && !FLEETING.test(entry.name)) {
      if (kept === "none" && entry.name.startsWith(LEDGER_FILE)) continue;
      copyFileSync(source, target);
      if (typeof kept === "number" && entry.name === LOG_FILE) cutLog(target, kept, log);
    }
  }
}

/** The copy stands for the very files that the dead process left: its mark names the copied ledger if it named theirs. */
function markCopy(from: string, to: string): void {
  const mark = markFile(to);
  if (!existsSync(mark) || !existsSync(join(to, LEDGER_FILE))) return;
  const { count, file } = JSON.parse(readFileSync(mark, "utf8")) as { count: number; file: number };
  if (file === fileIdentity(join(from, LEDGER_FILE)))
    writeMark(mark, { count, file: fileIdentity(join(to, LEDGER_FILE)) });
}

function fileIdentity(file: string): number {
  return rootIdentityOf(statSync(file)).ino;
}

/** Leaves what was flushed of a log, and a part of the rest. A log that started over since has nothing flushed. */
function cutLog(file: string, kept: number, log: Log): void {
  const now = logOf(file);
  const flushed = now.head === log.head ? log.sizeBytes : 0;
  truncateSync(file, Math.floor(flushed + (now.sizeBytes - flushed) * kept));
}

function logOf(file: string): Log {
  if (!existsSync(file)) return { head: "", sizeBytes: 0 };
  const bytes = readFileSync(file);
  return { head: bytes.subarray(0, 32).toString("hex"), sizeBytes: bytes.length };
}
