import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readStatus } from "../../../src/sync/operate/status.ts";
import { openFakeService, type FakeService } from "../../fakes/knowledge-service.ts";

/** The program as a process of its own, watching a folder for a service in this one. */
export interface RunningProgram {
  /** The folder; empty at first. */
  readonly root: string;
  readonly service: FakeService;
  readonly child: ChildProcess;
  /** What the program wrote to its error output. */
  readonly log: () => string;
  /** What `kbsync status` would say of the folder. */
  readonly status: () => NonNullable<ReturnType<typeof readStatus>>["sources"][number] | undefined;
  readonly troubled: () => NonNullable<ReturnType<typeof readStatus>>["troubled"];
  readonly end: () => Promise<void>;
}

/** The built program, which starts faster than its sources. */
const main = fileURLToPath(new URL("../../../dist/main.js", import.meta.url));

/** Starts `kbsync run`; `wrapper` is a command that runs it with other limits or rights. */
export async function startProgram({
  wrapper = [],
  fill = () => undefined,
}: {
  readonly wrapper?: readonly string[];
  /** Fills the folder before the program starts. */
  readonly fill?: (root: string) => void;
} = {}): Promise<RunningProgram> {
  const base = mkdtempSync(join(tmpdir(), "kbsync-program-"));
  chmodSync(base, 0o777); // it may run as another user
  const root = join(base, "docs");
  const stateDir = join(base, "state");
  mkdirSync(root);
  chmodSync(root, 0o777);
  fill(root);
  const service = await openFakeService();
  const config = join(base, "kbsync.config.json");
  const addresses = { apiUrl: service.url, dbUrl: service.url, resourcesUrl: service.url };
  writeFileSync(config, JSON.stringify({ service: addresses, stateDir, sources: [{ path: root }] }));
  const [command, ...args] = [...wrapper, process.execPath, main, "run", "--config", config];
  const child = spawn(command, args, {
    cwd: base,
    env: { ...process.env, KBSYNC_PAUTHKEY: service.key, KBSYNC_LOG: "warn" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr?.on("data", (data: Buffer) => (log += data.toString()));
  return {
    root,
    service,
    child,
    log: () => log,
    status: () => readStatus(stateDir, 0)?.sources[0],
    troubled: () => readStatus(stateDir, 100)?.troubled ?? [],
    end: async () => {
      child.kill("SIGCONT");
      child.kill("SIGTERM");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      await service.close();
      rmSync(base, { recursive: true, force: true });
    },
  };
}
