import { chmodSync, lstatSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { writeDurably } from "../../lib/durable-file.ts";

/** Longest path of a Unix socket in bytes: `sun_path` has 108 with its end on Linux (unix(7)), 104 elsewhere. */
const SOCKET_PATH_BYTES_MAX = process.platform === "linux" ? 107 : 103;

/** Folder of a socket that has no room in the state folder; the rest of the name is random. */
const OUTSIDE_PREFIX = "kbsync-";

const Note = z.object({ socket: z.string().min(1) });

/** Where the socket of a state folder lies, and the note that leads to one that lies elsewhere. */
export interface ControlPlaces {
  readonly socket: string;
  readonly note: string;
}

/** Names the files; touches nothing. */
export function controlPlaces(stateDir: string): ControlPlaces {
  return { socket: join(stateDir, "control.sock"), note: join(stateDir, "control.json") };
}

/** Whether a socket can have this path. */
export function fitsSocket(path: string): boolean {
  return Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX;
}

/** Where to knock: the socket that the note names, else the one in the state folder. Whether somebody is there is not said. */
export function findSocket(stateDir: string): string | undefined {
  const places = controlPlaces(stateDir);
  return readNote(places) ?? (fitsSocket(places.socket) ? places.socket : undefined);
}

/** A place for a socket that is being made. */
export interface FreshSocket {
  /** To be bound: it lies in a folder that nobody else may enter, so that its first mode does not matter. */
  readonly path: string;
  /** Gives the bound socket its mode and its name. From here on clients find it. */
  publish(): void;
  /** Removes the socket if it is still this one. May be called at any time. */
  remove(): void;
}

/**
 * Prepares a socket in the state folder. It is bound in a new folder of mode 0700, made 0600 there and then renamed into
 * place: so it is nobody else's at any time, whatever the state folder's mode and the process's umask, and a socket that
 * a killed daemon left is replaced in one step. To be called by who holds the state folder's lock: then that one is dead.
 */
export function socketInState(stateDir: string): FreshSocket {
  const { socket, note } = controlPlaces(stateDir);
  removeOutside(controlPlaces(stateDir));
  // Short names: where `control.sock` fits, this one does.
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
      // Another daemon's, which began after this one let go of the lock, stays.
      if (ino !== undefined && lstatSync(socket, { throwIfNoEntry: false })?.ino === ino)
        rmSync(socket, { force: true });
    },
  };
}

/**
 * Prepares a socket outside the state folder, where its own path is too long for one or its disk holds none: in a new
 * folder of mode 0700 below the user's runtime folder or the temporary one. A note in the state folder leads there.
 */
export function socketOutside(stateDir: string, env: NodeJS.ProcessEnv): FreshSocket {
  const places = controlPlaces(stateDir);
  removeOutside(places);
  const path = join(mkdtempSync(join(outsideFolder(env), OUTSIDE_PREFIX)), "control.sock");
  return {
    path,
    publish: () => {
      chmodSync(path, 0o600);
      writeDurably(places.note, `${JSON.stringify({ socket: path })}\n`);
    },
    remove: () => {
      rmSync(dirname(path), { recursive: true, force: true });
      if (readNote(places) === path) rmSync(places.note, { force: true });
    },
  };
}

/** The shorter-lived of the two is the better: it is cleared when the user logs out. */
function outsideFolder(env: NodeJS.ProcessEnv): string {
  const runtime = env["XDG_RUNTIME_DIR"];
  const isUsable =
    runtime !== undefined &&
    runtime.startsWith("/") &&
    fitsSocket(join(runtime, `${OUTSIDE_PREFIX}XXXXXX`, "control.sock")) &&
    statSync(runtime, { throwIfNoEntry: false })?.isDirectory() === true;
  return isUsable ? runtime : tmpdir();
}

/** What a killed daemon left outside. Only a folder of our own making is removed, whatever the note says. */
function removeOutside(places: ControlPlaces): void {
  const path = readNote(places);
  if (path === undefined) return;
  const folder = dirname(path);
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  const isOurs =
    basename(folder).startsWith(OUTSIDE_PREFIX) &&
    stats?.isDirectory() === true &&
    stats.uid === process.getuid?.() &&
    (stats.mode & 0o077) === 0;
  if (isOurs) rmSync(folder, { recursive: true, force: true });
  rmSync(places.note, { force: true });
}

function readNote({ note }: ControlPlaces): string | undefined {
  try {
    return Note.parse(JSON.parse(readFileSync(note, "utf8"))).socket;
  } catch {
    return undefined; // there is none, or a crash left half of one
  }
}
