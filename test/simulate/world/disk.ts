import { dirname } from "node:path";
import { Volume } from "memfs";
import type { Dirent } from "node:fs";
import type { Clock } from "../virtual/clock.ts";
import type { Random } from "../virtual/random.ts";
import { SECOND } from "../history.ts";
import { openMounts } from "./mounts.ts";

/** Everything below it lies on the simulation's disk. */
const VIRTUAL_ROOT = "/simulated";
/** Folder of the source. */
export const SOURCE_ROOT = `${VIRTUAL_ROOT}/docs`;
/** Folder of the second source, where there is one, and where that lies inside the first. */
export const SECOND_ROOT = `${VIRTUAL_ROOT}/more`;
export const NESTED_ROOT = `${SOURCE_ROOT}/${SECOND.slice(0, -1)}`;
const AWAY_ROOT = `${VIRTUAL_ROOT}/away`;
/** The mount below the source's folder, where there are mounts. */
const SUB_MOUNT = "m";
/** What is mounted is read from here. */
const MOUNT_TABLE = "/proc/self/mountinfo";
/** memfs counts its descriptors down from 2^31. */
export const VIRTUAL_FD_MIN = 2 ** 30;

/** The only file of another folder in the place of the source's. */
export const OTHER_FILE = "stranger.txt";

/** Where the source's folder is. */
export type RootState = "here" | "missing" | "emptied" | "other";

/** The disk of the simulated machine: what the daemon sees of it, and what other programs do to it. */
export interface Disk {
  /** A synchronous call of `node:fs` by the daemon. Takes time, in which others may change the disk. */
  call(name: string, facts: readonly unknown[]): unknown;
  /** Notified of every path below a source that changed; "" is the first one's root. */
  onChange: (path: string) => void;
  /** Notified of every call by the daemon, with its first argument. */
  onCall: (name: string, first: unknown) => void;

  /** What follows is what others do. A change that is not possible as things are (no such file) does nothing: false. */
  write(path: string, bytes: Buffer): boolean;
  append(path: string, bytes: Buffer): boolean;
  rename(from: string, to: string): boolean;
  swap(a: string, b: string): boolean;
  remove(path: string): boolean;
  /** Sets the modification time; default now. */
  touch(path: string, mtimeMs?: number): boolean;
  /** Makes looking at or reading a path fail, or not any more. */
  spoil(path: string, code: string | undefined): void;
  setRoot(state: RootState): void;
  root(): RootState;
  /**
   * Unmounts the file system of a folder ("" is the source's), mounts another one over it, or undoes either. No hint comes
   * of it. `changes` are made to it meanwhile, elsewhere.
   */
  mount(folder: string, state: MountState, changes?: readonly (readonly [string, Buffer])[]): void;
  /** The number of the mount that a path is on. */
  mountAt(path: string): number;
  mountNumbers(): readonly number[];

  /** Paths of all files of the source that is here or away, sorted. */
  files(): readonly string[];
  /** Paths of the files of other folders and file systems that are in the place of the source's. */
  strangers(): readonly string[];
  /** Paths at or below which something may have changed since this was asked last; "" is everything. */
  takeChanged(): readonly string[];
  /** The bytes of a file of the source, wherever it is. */
  bytes(path: string): Buffer | undefined;
  isSpoilt(path: string): boolean;
  inode(path: string): number | undefined;
}

/** What is at the path of a folder: what belongs there, the empty folder below it, or another file system. */
export type MountState = "here" | "away" | "over";

export function isVirtualPath(path: unknown): path is string {
  return typeof path === "string" && (path.startsWith(VIRTUAL_ROOT) || path === MOUNT_TABLE);
}

/** What a disk is like. */
export interface DiskOptions {
  /** Longest time of one call. */
  readonly slowMs: number;
  /** There is a second source. */
  readonly isDouble: boolean;
  /** It lies inside the first one. */
  readonly isNested: boolean;
  /** Times are multiples of this; 0: as they are. */
  readonly coarseMs: number;
  /** The source's folder is a mount, and so is `m` in it. */
  readonly isMounted: boolean;
}

/** Opens an empty disk. */
export function openDisk(
  clock: Clock,
  random: Random,
  { slowMs, isDouble, isNested, coarseMs, isMounted }: DiskOptions,
): Disk {
  const volume = new Volume();
  volume.mkdirSync(SOURCE_ROOT, { recursive: true });
  const isBeside = isDouble && !isNested;
  if (isDouble) volume.mkdirSync(isNested ? NESTED_ROOT : SECOND_ROOT, { recursive: true });
  const spoilt = new Map<string, string>();
  let root: RootState = "here";
  const base = (): string => (root === "here" ? SOURCE_ROOT : AWAY_ROOT);
  /** Folders whose files are unmounted or hidden, and where these are meanwhile. */
  const hidden = new Map<string, string>();
  const isBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);
  const mounts = openMounts();
  /** Folders over which another file system is mounted. */
  const covered = new Set<string>();
  /** See `takeChanged`. */
  let touched = [""];
  /** Of open files. */
  const devices = new Map<number, number>();
  if (isMounted) {
    volume.mkdirSync(`${SOURCE_ROOT}/${SUB_MOUNT}`);
    mounts.add(SOURCE_ROOT);
    mounts.add(`${SOURCE_ROOT}/${SUB_MOUNT}`);
  }
  const at = (path: string): string => {
    for (const [folder, away] of hidden) if (isBelow(path, folder)) return away + path.slice(folder.length);
    if (isBeside && path.startsWith(SECOND)) return `${SECOND_ROOT}/${path.slice(SECOND.length)}`;
    return path === "" ? base() : `${base()}/${path}`;
  };
  const exists = (path: string): boolean => volume.existsSync(at(path));
  const isFile = (path: string): boolean => exists(path) && volume.statSync(at(path)).isFile();

  const attempt = (change: () => readonly string[]): boolean => {
    if (root !== "here") return false;
    let changed: readonly string[];
    try {
      changed = change();
    } catch {
      return false;
    }
    touched.push(...changed);
    for (const path of changed) disk.onChange(path);
    return changed.length > 0;
  };
  const isHidden = (path: string): boolean => [...hidden.keys()].some((folder) => isBelow(path, folder));
  const exchangeRoot = (next: RootState): void => {
    if (root !== "here") {
      if (root !== "missing") volume.rmSync(SOURCE_ROOT, { recursive: true });
      volume.renameSync(AWAY_ROOT, SOURCE_ROOT);
    }
    root = "here";
    if (next === "here") return;
    volume.renameSync(SOURCE_ROOT, AWAY_ROOT);
    root = next;
    if (next !== "missing") volume.mkdirSync(SOURCE_ROOT);
    if (next === "other") volume.writeFileSync(`${SOURCE_ROOT}/${OTHER_FILE}`, "of another folder");
  };
  const exchangeFolder = (folder: string, next: MountState): void => {
    const path = `${SOURCE_ROOT}/${folder}`;
    const away = hidden.get(folder);
    if (away !== undefined) {
      volume.rmSync(path, { recursive: true });
      volume.renameSync(away, path);
      hidden.delete(folder);
    }
    if (next === "here") return;
    const stash = `${AWAY_ROOT}-${folder}`;
    volume.renameSync(path, stash);
    hidden.set(folder, stash);
    volume.mkdirSync(path);
    if (next === "over") volume.writeFileSync(`${path}/${OTHER_FILE}`, "of another disk");
  };
  /** A rename changes the inode's change time on Linux; memfs leaves it. */
  const stamp = (path: string): void => {
    const { atimeMs, mtimeMs } = volume.statSync(at(path));
    volume.utimesSync(at(path), atimeMs / 1000, mtimeMs / 1000);
  };

  const codeFor = (name: string, absolutePath: string): string | undefined => {
    if (spoilt.size === 0) return undefined;
    const path = absolutePath.startsWith(`${SECOND_ROOT}/`)
      ? SECOND + absolutePath.slice(SECOND_ROOT.length + 1)
      : absolutePath.slice(SOURCE_ROOT.length + 1);
    const own = spoilt.get(path);
    // A file that may not be read can be checked all the same; a sick one cannot.
    const isStat = name === "lstatSync" || name === "statSync";
    if (own !== undefined && (!isStat || own === "EIO")) return own;
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
      const code = spoilt.get(path.slice(0, end));
      if (code !== undefined) return code;
    }
    return undefined;
  };

  const disk: Disk = {
    onChange: () => undefined,
    onCall: () => undefined,
    call: (name, facts) => {
      if (facts[0] === MOUNT_TABLE) return mounts.table();
      disk.onCall(name, facts[0]);
      clock.charge(random.between(0, slowMs));
      const [path] = facts;
      if (typeof path === "string") {
        const code = codeFor(name, path);
        if (code !== undefined) throw systemError(code, name, path);
      }
      const method: unknown = Reflect.get(volume, name);
      if (typeof method !== "function" || !READING.has(name)) {
        throw new Error(`the daemon calls ${name} on the watched folder, which it must only read`);
      }
      const found: unknown = Reflect.apply(method, volume, facts);
      if (isMounted && name === "openSync") devices.set(Number(found), mounts.at(String(path)).device);
      if (!isStats(found)) return found;
      if (isMounted)
        found.dev = typeof path === "string" ? mounts.at(path).device : (devices.get(Number(path)) ?? 0);
      else if (root === "emptied" && path === SOURCE_ROOT) found.dev = 2;
      if (coarseMs > 0) coarsen(found, coarseMs);
      return found;
    },
    write: (path, bytes) =>
      attempt(() => {
        if ((exists(path) && !isFile(path)) || isHidden(path)) return [];
        volume.mkdirSync(dirname(at(path)), { recursive: true });
        volume.writeFileSync(at(path), bytes);
        return [path];
      }),
    append: (path, bytes) =>
      attempt(() => {
        if (!isFile(path)) return [];
        volume.appendFileSync(at(path), bytes);
        return [path];
      }),
    rename: (from, to) =>
      attempt(() => {
        if (!exists(from) || to === from || to.startsWith(`${from}/`)) return [];
        if (exists(to) && !(isFile(from) && isFile(to))) return [];
        volume.mkdirSync(dirname(at(to)), { recursive: true });
        volume.renameSync(at(from), at(to));
        stamp(to);
        return [from, to];
      }),
    swap: (a, b) =>
      attempt(() => {
        if (!isFile(a) || !isFile(b) || a === b) return [];
        const renamed = `${a}.tmp`;
        volume.renameSync(at(a), at(renamed));
        volume.renameSync(at(b), at(a));
        volume.renameSync(at(renamed), at(b));
        stamp(a);
        stamp(b);
        return [a, b];
      }),
    remove: (path) =>
      attempt(() => {
        if (!exists(path) || path === "") return [];
        volume.rmSync(at(path), { recursive: true });
        return [path];
      }),
    touch: (path, mtimeMs = clock.wallMs()) =>
      attempt(() => {
        if (!isFile(path)) return [];
        volume.utimesSync(at(path), mtimeMs / 1000, mtimeMs / 1000);
        return [path];
      }),
    spoil: (path, code) => {
      if (code === undefined) spoilt.delete(path);
      else spoilt.set(path, code);
    },
    setRoot: (next) => {
      if (next === root) return;
      exchangeRoot(next);
      touched.push("");
      disk.onChange("");
    },
    root: () => root,
    mount: (folder, state, changes = []) => {
      const path = folder === "" ? SOURCE_ROOT : `${SOURCE_ROOT}/${folder}`;
      const isOver = covered.delete(folder);
      touched.push("");
      // The files of a mount that is not there cannot change but elsewhere.
      for (const [each, bytes] of changes) {
        volume.mkdirSync(dirname(at(each)), { recursive: true });
        volume.writeFileSync(at(each), bytes);
      }
      if (folder === "") exchangeRoot(state === "here" ? "here" : state === "away" ? "emptied" : "other");
      else if (volume.existsSync(path)) exchangeFolder(folder, state);
      if (state === "over") {
        covered.add(folder);
        mounts.add(path);
      } else if (isOver) mounts.uncover(path);
      else if (state === "away") mounts.remove(path);
      else {
        mounts.add(path);
        if (folder === "") mounts.add(`${path}/${SUB_MOUNT}`);
      }
    },
    mountAt: (path) => mounts.at(path === "" ? SOURCE_ROOT : `${SOURCE_ROOT}/${path}`).id,
    mountNumbers: () => mounts.numbers(),
    files: () => {
      const found: string[] = [];
      const walk = (folder: string): void => {
        for (const entry of volume.readdirSync(at(folder), { withFileTypes: true }) as Dirent[]) {
          const { name } = entry;
          const path = folder === "" || folder.endsWith("/") ? folder + name : `${folder}/${name}`;
          if (entry.isDirectory()) walk(path);
          else found.push(path);
        }
      };
      walk("");
      if (isBeside) walk(SECOND);
      return found.sort();
    },
    strangers: () => {
      const below = [...covered].flatMap((folder) => (folder === "" ? [] : [`${folder}/${OTHER_FILE}`]));
      return root === "other" ? [OTHER_FILE, ...below] : below;
    },
    takeChanged: () => {
      const paths = touched;
      touched = [];
      return paths;
    },
    bytes: (path) => (isFile(path) ? (volume.readFileSync(at(path)) as Buffer) : undefined),
    isSpoilt: (path) => [...spoilt.keys()].some((each) => path === each || path.startsWith(`${each}/`)),
    inode: (path) => (exists(path) ? volume.statSync(at(path)).ino : undefined),
  };
  return disk;
}

/** Calls that only look. */
const READING: ReadonlySet<string> = new Set([
  "lstatSync",
  "statSync",
  "readdirSync",
  "openSync",
  "fstatSync",
  "readSync",
  "closeSync",
  "readFileSync",
  "existsSync",
  "realpathSync",
  "readlinkSync",
  "accessSync",
]);

type FoundStats = Record<"dev" | (typeof TIMES)[number], number>;

const TIMES = ["atimeMs", "mtimeMs", "ctimeMs", "birthtimeMs"] as const;

function isStats(found: unknown): found is FoundStats {
  return typeof found === "object" && found !== null && "dev" in found;
}

function coarsen(found: FoundStats, coarseMs: number): void {
  for (const name of TIMES) {
    const time: number | bigint = found[name];
    // Stats in `bigint` are asked for to compare identities, not times.
    if (typeof time === "number") found[name] = Math.floor(time / coarseMs) * coarseMs;
  }
}

function systemError(code: string, syscall: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: simulated, ${syscall} '${path}'`), {
    code,
    syscall,
    path,
    errno: -1,
  });
}
