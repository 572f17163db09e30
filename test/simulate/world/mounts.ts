/** A file system that is mounted somewhere. */
interface MountedAt {
  readonly id: number;
  readonly path: string;
  readonly device: number;
}

/** What is mounted on the simulated machine. */
export interface Mounts {
  /** Mounts a file system: the one that was first mounted there, or another one over it. It gets a number of its own. */
  add(path: string): void;
  /** Unmounts what is mounted at a path and below it. */
  remove(path: string): void;
  /** Unmounts what was mounted last at a path. */
  uncover(path: string): void;
  /** The mount that a path is on. */
  at(path: string): Omit<MountedAt, "path">;
  numbers(): readonly number[];
  /** As /proc/self/mountinfo. */
  table(): string;
}

/** Opens the mounts of a machine with nothing but its own disk. */
export function openMounts(): Mounts {
  let id = 20;
  let device = 20;
  let mounted: MountedAt[] = [{ id, path: "/", device: 0 }];
  /** Of the file systems that belong somewhere. */
  const devices = new Map<string, number>();
  const isBelow = (path: string, folder: string): boolean =>
    folder === "/" || path === folder || path.startsWith(`${folder}/`);
  return {
    add: (path) => {
      id += 1;
      device += 1;
      const isOver = mounted.some((each) => each.path === path);
      const own = isOver ? device : (devices.get(path) ?? device);
      if (!isOver) devices.set(path, own);
      mounted.push({ id, path, device: own });
    },
    remove: (path) => {
      mounted = mounted.filter((each) => !isBelow(each.path, path));
    },
    uncover: (path) => {
      mounted.splice(
        mounted.findLastIndex((each) => each.path === path),
        1,
      );
    },
    at: (path) => {
      const found = mounted.findLast((each) => isBelow(path, each.path));
      return { id: found?.id ?? 0, device: found?.device ?? 0 };
    },
    numbers: () => mounted.map((each) => each.id),
    table: () =>
      mounted.map((each) => `${each.id} 1 0:${each.device} / ${each.path} rw - ext4 disk rw`).join("\n"),
  };
}
