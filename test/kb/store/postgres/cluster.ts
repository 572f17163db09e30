import { spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { endWithThisProcess } from "../../../servers/end-with-process.ts";

/** Where Debian puts the programs of each version. */
const DEBIAN = "/usr/lib/postgresql";
/** Version 15 on Debian 12. */
const DEBIAN_PACKAGE = "postgresql";
const INSTALL_MS = 300_000;
const START_MS = 300_000;

/** A PostgreSQL server of its own in a temporary folder. It flushes commits, as a real one does. */
export interface Cluster {
  /** Where its socket is. */
  readonly folder: string;
  /** Address of one of its databases. */
  url(this: void, database: string): string;
  /** Runs a script in one of its databases, and returns what it printed. */
  sql(this: void, script: string, database?: string): string;
  /** Stops the server: `fast` ends its connections, `immediate` is a crash. */
  stop(this: void, how?: "fast" | "immediate"): void;
  start(this: void): void;
  /** Makes a standby the primary. */
  promote(this: void): void;
  /** Stops the server and removes its files. Both happen by themselves when this process ends, however it ends. */
  remove(this: void): Promise<void>;
}

/** The folder of the programs of a server, or why there is none. */
type Programs = { readonly folder: string } | { readonly missing: string };

/** Finds a server with pgvector. */
export function findPgvector(): Programs {
  const folder = process.env["KBSYNC_TEST_PGVECTOR"];
  if (folder !== undefined && existsSync(join(folder, "initdb"))) return { folder };
  return {
    missing:
      "A server with pgvector is missing: set KBSYNC_TEST_PGVECTOR to the folder of its programs, which " +
      "`npm run --silent unpack:servers -- FOLDER` unpacks and prints",
  };
}

/** Finds a server of any version. Installs the Debian package where that is possible. */
export function findPrograms(): Programs {
  const given = process.env["KBSYNC_TEST_POSTGRES"];
  if (given !== undefined) return { folder: given };
  const found = debianPrograms() ?? (install() ? debianPrograms() : undefined);
  return found === undefined
    ? {
        missing: `PostgreSQL is missing: install ${DEBIAN_PACKAGE}, or set KBSYNC_TEST_POSTGRES to the folder of its programs`,
      }
    : { folder: found };
}

function debianPrograms(): string | undefined {
  if (!existsSync(DEBIAN)) return undefined;
  const newest = readdirSync(DEBIAN).toSorted((one, other) => Number(other) - Number(one));
  return newest.map((version) => join(DEBIAN, version, "bin")).find((bin) => existsSync(join(bin, "initdb")));
}

function install(): boolean {
  if (process.getuid?.() !== 0) return false;
  const get = (...args: string[]): boolean =>
    spawnSync("apt-get", ["-qq", ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      stdio: "ignore",
      timeout: INSTALL_MS,
    }).status === 0;
  const packages = ["install", "-y", "--no-install-recommends", DEBIAN_PACKAGE];
  return get(...packages) || (get("update") && get(...packages));
}

/** Creates a cluster and starts its server. It listens on a socket in its folder alone, which is created in `parent`. */
export function startCluster(programs: string, parent = "/tmp"): Cluster {
  return openCluster(programs, parent, (run, data) => {
    run("initdb", [
      "-D",
      data,
      "--no-sync",
      "-U",
      "postgres",
      "-A",
      "trust",
      "-E",
      "UTF8",
      "--locale=C.UTF-8",
    ]);
  });
}

/** Copies a running cluster and starts the copy as its standby, for whose flush each commit of the other one waits from here on. */
export function startStandby(programs: string, primary: Cluster): Cluster {
  const standby = openCluster(programs, dirname(primary.folder), (run, data) => {
    run("pg_basebackup", [
      "-D",
      data,
      "-h",
      primary.folder,
      "-U",
      "postgres",
      "-R",
      "-X",
      "stream",
      "-c",
      "fast",
    ]);
  });
  // Not in the copy, which would wait for a standby of its own as soon as it is the primary.
  primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
  primary.sql("SELECT pg_reload_conf()");
  return standby;
}

type Run = (program: string, args: readonly string[], input?: string) => string;

/** Makes the files of a server in a new folder, and starts it. */
function openCluster(programs: string, parent: string, make: (run: Run, data: string) => void): Cluster {
  // Not below the folder of the tests' files: a socket's path may have a hundred characters at most.
  const folder = mkdtempSync(join(parent, "kbsync-postgres-"));
  const user = serverUser(folder);
  const run: Run = (program, args, input) => {
    const { status, error, stdout, stderr } = spawnSync(join(programs, program), args, {
      ...user,
      cwd: folder,
      encoding: "utf8",
      ...(input !== undefined && { input }),
      timeout: START_MS,
    });
    if (status === 0) return stdout;
    throw new Error(`${program} failed: ${error?.message ?? stderr}`);
  };
  const data = join(folder, "data");
  const log = join(folder, "log");
  const start = (): void => {
    const options = `-k ${folder} -c listen_addresses= -c max_connections=200`;
    run("pg_ctl", ["start", "-w", "-s", "-D", data, "-l", log, "-o", options]);
  };
  const end = endWithThisProcess(
    `${join(programs, "pg_ctl")} stop -w -s -D ${data} -m immediate; rm -rf ${folder}`,
    user,
  );
  make(run, data);
  start();
  return {
    folder,
    url: (database) => `postgres://postgres@${encodeURIComponent(folder)}/${database}`,
    sql: (script, database = "postgres") => {
      const args = ["-h", folder, "-U", "postgres", "-d", database, "-v", "ON_ERROR_STOP=1", "-qAt"];
      return run("psql", args, script);
    },
    stop: (how = "fast") => void run("pg_ctl", ["stop", "-w", "-s", "-D", data, "-m", how]),
    start,
    promote: () => void run("pg_ctl", ["promote", "-w", "-s", "-D", data]),
    remove: end,
  };
}

/** The server refuses to run as root: there it runs as the user that Debian's package creates. */
function serverUser(folder: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (what: string): number =>
    Number(spawnSync("id", [what, "postgres"], { encoding: "utf8" }).stdout.trim());
  const user = { uid: id("-u"), gid: id("-g") };
  chownSync(folder, user.uid, user.gid);
  return user;
}
