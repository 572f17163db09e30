import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { DaemonActivity, Explanation } from "../../../src/wire/daemon-files.ts";
import { explain } from "../../../src/sync/operate/why/explain.ts";
import type { SyncConfig } from "../../../src/config/schema/sync.ts";
import { syncSettings } from "../settings.ts";
import { ConfigFile } from "../../../src/config/schema.ts";
import { openDaemon, type Daemon, type DaemonOptions } from "../../../src/sync/daemon.ts";
import { type Commands, openCommands } from "../../../src/sync/operate/commands.ts";
import {
  changeLedger,
  openForReading,
  type OperatorLedger,
  readLedger,
} from "../../../src/sync/operate/offline.ts";
import type { WatchedSource } from "../../../src/sync/scan/rules/rules.ts";
import type { Timing } from "../../../src/sync/plan/timing.ts";
import { openFakeService, type FakeOptions, type FakeService } from "../../fakes/knowledge-service.ts";

/** Shortest possible waits for a service whose answers are the tests' own. */
const BRISK: Partial<Timing> = {
  listAgainMs: 5,
  retryMs: 20,
  goneAgainMs: [5, 5],
  missingAgainMs: [5, 5],
  gatherMs: 5,
};

/**
 * For tests that delete single files while a daemon runs. Not for those that delete many: what the watcher reports of them
 * may come in parts, and must be one burst all the same.
 */
export const SINGLE_DELETES: Partial<Timing> = { burstGapMs: 20 };

/** A folder, a state folder and a fake service, with daemons on them. */
export interface World {
  readonly root: string;
  readonly stateDir: string;
  readonly service: FakeService;
  readonly activity: DaemonActivity[];
  write(path: string, text: string | Buffer): void;
  source(more?: Record<string, unknown>): WatchedSource;
  daemon(more?: Partial<DaemonOptions> & { settings?: Partial<SyncConfig> }): Daemon;
  /** One pass with a separate daemon. */
  sync(more?: Partial<DaemonOptions> & { settings?: Partial<SyncConfig> }): Promise<void>;
  /** A person's commands without a running daemon. */
  readonly offline: Pick<Commands, "approve" | "pause" | "resume" | "trash" | "undelete">;
  /** Explains a file without a running daemon; by default of the world's own source. */
  explain(path: string, source?: WatchedSource): Promise<Explanation>;
  end(): Promise<void>;
}

export async function openWorld(options?: FakeOptions): Promise<World> {
  const base = mkdtempSync(join(tmpdir(), "kbsync-"));
  const root = join(base, "docs");
  mkdirSync(root);
  const service = await openFakeService(options);
  const open = new Set<Daemon>();
  const commandsOf = (ledger: OperatorLedger): Commands =>
    openCommands(ledger, { stateDir: world.stateDir, sources: () => [world.source()] });
  const offline = <T>(command: (commands: Commands) => Promise<T>): Promise<T | undefined> =>
    changeLedger(world.stateDir, (ledger) => command(commandsOf(ledger)));
  const listOffline = <T>(list: (commands: Commands) => readonly T[]): readonly T[] => {
    const reading = openForReading(world.stateDir);
    try {
      return reading === undefined ? [] : list(commandsOf(reading.ledger));
    } finally {
      reading?.close();
    }
  };
  const world: World = {
    root,
    stateDir: join(base, "state"),
    service,
    activity: [],
    write: (path, text) => {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    },
    source: (more = {}) => {
      const config = ConfigFile.parse({ sources: [{ path: root, ...more }] }).sources[0];
      if (config === undefined) throw new Error("no source");
      return { ...config, absolutePath: root, ownerId: config.ownerId ?? "docs-owner" };
    },
    daemon: ({ settings = {}, ...more } = {}) => {
      const daemon = openDaemon({
        stateDir: world.stateDir,
        service: { apiUrl: service.url, dbUrl: service.url, pauthkey: service.key },
        sources: [world.source()],
        // Tests count requests: without a trash each delete is one.
        sync: syncSettings({ settleMs: 0, trashDays: 0, ...settings }),
        onActivity: (activity) => world.activity.push(activity),
        ...more,
        timing: { ...BRISK, ...more.timing },
      });
      open.add(daemon);
      return daemon;
    },
    sync: async (more) => {
      const daemon = world.daemon(more);
      try {
        await daemon.syncOnce();
      } finally {
        await daemon.close();
      }
    },
    offline: {
      approve: async (...named) => (await offline((commands) => commands.approve(...named))) ?? [],
      pause: async (folder) => (await offline((commands) => commands.pause(folder))) ?? [],
      resume: async (folder) => (await offline((commands) => commands.resume(folder))) ?? [],
      trash: (path) => listOffline((commands) => commands.trash(path)),
      undelete: async (...named) =>
        (await readLedger(world.stateDir, async (ledger) => commandsOf(ledger).undelete(...named))) ?? [],
    },
    explain: async (path, source = world.source()) => {
      const explainFrom = (ledger?: OperatorLedger): Promise<Explanation> =>
        explain(ledger, [source], join(source.absolutePath, path), new AbortController().signal);
      return (await readLedger(world.stateDir, explainFrom)) ?? explainFrom();
    },
    end: async () => {
      // A daemon that was made to crash may fail to close, too.
      for (const daemon of open) await daemon.close().catch(() => undefined);
      await service.close();
      rmSync(base, { recursive: true, force: true });
    },
  };
  return world;
}

/** Waits until a condition holds; fails with its last words after a while. */
export async function until(
  condition: () => boolean,
  words: () => string = () => "the condition",
  timeoutMs = 10_000,
): Promise<void> {
  const endMs = Date.now() + timeoutMs;
  while (!condition()) {
    if (Date.now() > endMs) throw new Error(`waited in vain for ${words()}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
}
