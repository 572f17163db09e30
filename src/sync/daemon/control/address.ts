import { chmodSync, lstatSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { writeDurably } from "../../../lib/durable-file.ts";

/** Longest path of a Unix socket in bytes: `sun_path` has 108 with its terminator on Linux (unix(7)), 104 elsewhere. */
const SOCKET_PATH_BYTES_MAX = process.platform === "linux" ? 107 : 103;

/** Interval at which a daemon shows each client that waits for an answer that it is alive. */
export const LIFE_MS = 500;

/** Media type of an answer in lines. */
export const LINES_TYPE = "application/x-ndjson";

/** Prefix of the folder for a socket that cannot be in the state folder; the rest of the name is random. */
const OUTSIDE_PREFIX = "kbsync-";

/** Paths of the control socket in a state folder, and of the note that names a socket elsewhere. */
interface ControlPaths {
  readonly socket: string;
  readonly note: string;
}

/** Returns the paths without touching the files. */
export function controlPaths(stateDir: string): ControlPaths {
  return { socket: join(stateDir, "control.sock"), note: join(stateDir, "control.path") };
}

/** Whether the path is short enough for a socket. */
export function fitsSocket(path: string): boolean {
  return Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX;
}

/** Returns the socket to connect to: the one in the note, else the one in the state folder. Does not check for a listener. */
export function findSocket(stateDir: string): string | undefined {
  const paths = controlPaths(stateDir);
  return readNote(paths) ?? (fitsSocket(paths.socket) ? paths.socket : undefined);
}

/** The path of a new socket. */
export interface FreshSocket {
  /** The path to bind. Its folder is private, so the socket's initial mode does not matter. */
  readonly path: string;
  /** Sets the mode of the bound socket and renames it. Clients find it from here on. */
  publish(): void;
  /** Removes the socket if it is still this one. May be called at any time. */
  remove(): void;
}

/**
 * Prepares a socket in the state folder. It is bound in a new folder of mode 0700, set to 0600 and then renamed to its path:
 * so no other user can access it at any time, whatever the state folder's mode and the process's umask, and it replaces the
 * socket of a killed daemon atomically. The caller must hold the state folder's lock, which proves that daemon dead.
 */
export function socketInState(stateDir: string): FreshSocket {
  const { socket, note } = controlPaths(stateDir);
  // Short names: this path fits wherever `control.sock` does.
  const folder = mkdtempSync(join(stateDir, ".c"));
  const path = join(folder, "s");
  let ino: number | undefined;
  return {
    path,
    publish: () => {
      chmodSync(path, 0o600);
      ino = statSync(path).ino;
      rmSync(note, { force: true });
      renameSync(path, socket);
      rmSync(folder, { recursive: true, force: true });
    },
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
      // Keeps the socket of another daemon that started after this one released the lock.
      if (ino !== undefined && lstatSync(socket, { throwIfNoEntry: false })?.ino === ino)
        rmSync(socket, { force: true });
    },
  };
}

/**
 * Prepares a socket outside the state folder, whose path is too long for one or whose file system supports none: in a new
 * folder of mode 0700 below the user's runtime folder or the temporary folder. A note in the state folder names it.
 */
export function socketOutside(stateDir: string, env: NodeJS.ProcessEnv): FreshSocket {
  const paths = controlPaths(stateDir);
  const path = join(mkdtempSync(join(outsideFolder(env), OUTSIDE_PREFIX)), "control.sock");
  return {
    path,
    publish: () => {
      chmodSync(path, 0o600);
      writeDurably(paths.note, path);
    },
    remove: () => {
      rmSync(dirname(path), { recursive: true, force: true });
      if (readNote(paths) === path) rmSync(paths.note, { force: true });
    },
  };
}

/** Prefers the runtime folder, which the system clears when the user logs out. */
function outsideFolder(env: NodeJS.ProcessEnv): string {
  const runtime = env["XDG_RUNTIME_DIR"];
  const isUsable =
    runtime !== undefined &&
    runtime.startsWith("/") &&
    fitsSocket(join(runtime, `${OUTSIDE_PREFIX}XXXXXX`, "control.sock")) &&
    statSync(runtime, { throwIfNoEntry: false })?.isDirectory() === true;
  return isUsable ? runtime : tmpdir();
}

function readNote({ note }: ControlPaths): string | undefined {
  try {
    return readFileSync(note, "utf8");
  } catch {
    return undefined; // there is none
  }
}
