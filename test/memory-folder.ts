import { mkdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A container's default of 64 MB would not do; a whole run leaves some tens of MB behind when it is killed. */
const FREE_BYTES_MIN = 1024 ** 3;
/** For servers of PostgreSQL, each test of which has a database of some 10 MB. */
const FREE_BYTES_SERVERS = 8 * 1024 ** 3;

/**
 * The temporary folder of the unit and long tests: in memory where the machine has room, because they create thousands of databases
 * and wait for the disk at each. What must survive a crash is tested on the real disk, in the projects crash, e2e and
 * scenarios.
 */
export const TEST_FOLDER = join(memoryFolder() ?? tmpdir(), `kbsync-test-${process.pid}`);

/** Where servers of PostgreSQL have their folders: their tests end processes, which what is in memory outlives as well. */
export function serversFolder(): string {
  return memoryFolder(FREE_BYTES_SERVERS) ?? "/tmp";
}

/** A folder in memory with enough room, in which programs may run; undefined: there is none. */
function memoryFolder(freeMin = FREE_BYTES_MIN): string | undefined {
  try {
    const mount = readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .find((line) => line.split(" ")[1] === "/dev/shm");
    if (mount === undefined || mount.includes("noexec")) return undefined;
    const { bavail, bsize } = statfsSync("/dev/shm");
    return bavail * bsize < freeMin ? undefined : "/dev/shm";
  } catch {
    return undefined; // no Linux
  }
}

/** Creates the folder before the tests, and removes it after them. */
export function setup(): () => void {
  mkdirSync(TEST_FOLDER, { recursive: true });
  return () => rmSync(TEST_FOLDER, { recursive: true, force: true });
}
