import { spawn } from "node:child_process";
import { once } from "node:events";
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Daemon, DaemonOptions } from "../../../src/sync/daemon.ts";
import type { FakeRequest } from "../../fakes/knowledge-service.ts";
import { openWorld, until, type World } from "../daemon/harness.ts";

/** A folder that a daemon follows, and a service to compare it with. */
export interface Followed {
  readonly world: World;
  readonly daemon: Daemon;
  /** Absolute path of a file of the folder. */
  readonly at: (path: string) => string;
  /**
   * Waits until the service holds just what `expected` says (path → text; default: the regular files below the folder,
   * as `folderTexts` reads them) and nothing is left to do.
   */
  readonly agrees: (expected?: () => Record<string, string>) => Promise<void>;
  /** Ids of the live resources, by path. */
  readonly ids: () => Record<string, string>;
  /** The changes that were sent since the last call, by operation. */
  readonly sent: () => Partial<Record<FakeRequest["operation"], number>>;
  readonly end: () => Promise<void>;
}

/** Waits of a scenario: far longer than it takes, for machines that do other things too. */
const PATIENCE_MS = 15_000;
/** The same for one with thousands of files. */
export const LONG_PATIENCE_MS = 120_000;

/**
 * Fills a folder, starts a daemon that watches it, and waits until the two agree. Files end in `.txt`, so that each is
 * titled by its path and can be recognised at the service.
 */
export async function openFollowed(
  files: Readonly<Record<string, string>> = {},
  {
    settings = {},
    source = {},
    settleMs = 30,
    patienceMs = PATIENCE_MS,
    ...more
  }: Partial<Omit<DaemonOptions, "sources" | "patienceMs">> & {
    settings?: Record<string, unknown>;
    source?: Record<string, unknown>;
    settleMs?: number;
    /** How long `agrees` waits. */
    patienceMs?: number;
  } = {},
): Promise<Followed> {
  const world = await openWorld();
  for (const [path, text] of Object.entries(files)) world.write(path, text);
  const daemon = world.daemon({
    settings: { settleMs, ...settings },
    sources: [world.source(source)],
    ...more,
  });
  const stop = new AbortController();
  const ended = daemon.run({ signal: stop.signal });
  ended.catch(() => undefined); // reported by `end`
  let reported = 0;
  const texts = (): Record<string, string> =>
    Object.fromEntries(world.service.live().map(({ title, content }) => [title, content ?? ""]));
  const followed: Followed = {
    world,
    daemon,
    at: (path) => join(world.root, path),
    agrees: async (expected = () => folderTexts(world.root)) => {
      const same = (): boolean =>
        world.service.live().length === Object.keys(texts()).length && equal(texts(), expected());
      await until(
        () => daemon.status().idle && same(),
        () => `agreement: ${difference(texts(), expected())}; ${JSON.stringify(daemon.status().sources)}`,
        patienceMs,
      );
    },
    ids: () => Object.fromEntries(world.service.live().map(({ title, _id }) => [title, _id])),
    sent: () => {
      const requests = world.service.requests.slice(reported);
      reported = world.service.requests.length;
      const counts: Partial<Record<FakeRequest["operation"], number>> = {};
      for (const { operation } of requests)
        if (operation === "create" || operation === "update" || operation === "delete")
          counts[operation] = (counts[operation] ?? 0) + 1;
      return counts;
    },
    end: async () => {
      stop.abort();
      try {
        await ended;
      } finally {
        await world.end();
      }
    },
  };
  try {
    await followed.agrees();
    followed.sent();
    return followed;
  } catch (error) {
    await followed.end().catch(() => undefined);
    throw error;
  }
}

/** `count` small files in ten folders, with texts of their own. */
export function smallFiles(count: number, folder: string): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, n) => [`${folder}/${n % 10}/f${n}.txt`, `text ${folder} ${n}`]),
  );
}

/** Runs a shell script beside the daemon, so that both are at work at the same time. */
export async function shell(script: string, cwd: string): Promise<void> {
  const child = spawn("sh", ["-ec", script], { cwd, stdio: ["ignore", "ignore", "inherit"] });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`a script of the test ended with ${String(code)}: ${script}`);
}

/** The texts of the `.txt` files below a folder, hidden ones left out. A file that vanishes meanwhile is absent. */
export function folderTexts(root: string): Record<string, string> {
  const found: Record<string, string> = {};
  const walk = (folder: string): void => {
    for (const name of readdirSync(join(root, folder))) {
      if (name.startsWith(".")) continue;
      const path = folder === "" ? name : `${folder}/${name}`;
      const stats = lstatSync(join(root, path), { throwIfNoEntry: false });
      if (stats?.isDirectory() === true) walk(path);
      else if (stats?.isFile() === true && name.endsWith(".txt")) {
        found[path] = readFileSync(join(root, path), "utf8");
      }
    }
  };
  try {
    walk("");
  } catch {
    return {}; // it changes while it is read: the next read finds another one
  }
  return found;
}

function equal(a: Record<string, string>, b: Record<string, string>): boolean {
  const paths = Object.keys(a);
  return paths.length === Object.keys(b).length && paths.every((path) => a[path] === b[path]);
}

/** The first differences, in words. */
function difference(is: Record<string, string>, wanted: Record<string, string>): string {
  const lines = [...new Set([...Object.keys(is), ...Object.keys(wanted)])]
    .filter((path) => is[path] !== wanted[path])
    .map((path) => `${path}: ${String(is[path]).slice(0, 40)}, not ${String(wanted[path]).slice(0, 40)}`);
  return `${lines.length} files differ: ${lines.slice(0, 3).join("; ")}`;
}
