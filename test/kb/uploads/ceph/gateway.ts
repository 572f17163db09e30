import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { endWithThisProcess } from "../../../servers/end-with-process.ts";
import { ACCESS_KEY } from "../s3-server.ts";

const START_MS = 60_000;

/** Ceph's object gateway, which stores its objects in a database in a temporary folder. */
export interface Gateway {
  readonly endpoint: string;
  /** Stops it and removes its files. Both happen by themselves when this process ends, however it ends. */
  remove(this: void): Promise<void>;
}

/** Returns the folder of the programs of Ceph; undefined: there is none. */
export function findCeph(): string | undefined {
  const folder = process.env["KBSYNC_TEST_CEPH"];
  return folder !== undefined && existsSync(join(folder, "radosgw")) ? folder : undefined;
}

/** Starts a gateway whose only user has the key `ACCESS_KEY`. Resolves when it answers. */
export async function startGateway(programs: string): Promise<Gateway> {
  const folder = mkdtempSync(join(tmpdir(), "kbsync-ceph-"));
  const port = await freePort();
  const configuration = join(folder, "ceph.conf");
  writeFileSync(configuration, configurationOf(folder, port));
  const options = ["--conf", configuration, "--no-mon-config", "--name", "client.tests"];
  await createUser(programs, options);
  const gateway = spawn(join(programs, "radosgw"), [...options, "--foreground"], { stdio: "ignore" });
  const remove = endWithThisProcess(`kill ${gateway.pid}; rm -rf ${folder}`);
  const endpoint = `http://127.0.0.1:${port}`;
  try {
    await untilItAnswers(endpoint, gateway);
  } catch (cause) {
    await remove();
    throw cause;
  }
  return { endpoint, remove };
}

/**
 * Creates the user. Once in twenty times the program does not end, because one of its threads misses that it should; by then it has
 * printed the user that it stored.
 */
async function createUser(programs: string, options: readonly string[]): Promise<void> {
  const user = ["user", "create", "--uid=tests", "--display-name=tests"];
  const key = [`--access-key=${ACCESS_KEY.id}`, `--secret-key=${ACCESS_KEY.secret}`];
  const program = spawn(join(programs, "radosgw-admin"), [...options, ...user, ...key], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: START_MS,
  });
  let problem = "";
  program.stderr.setEncoding("utf8").on("data", (text: string) => (problem += text));
  let printed = "";
  for await (const text of program.stdout.setEncoding("utf8")) {
    printed += text;
    if (isJson(printed)) break;
  }
  program.kill("SIGKILL");
  if (!isJson(printed)) throw new Error(`radosgw-admin failed: ${problem}`);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** One process without a cluster: objects and users are in SQLite. */
function configurationOf(folder: string, port: number): string {
  return `[global]
rgw_backend_store = dbstore
rgw_config_store = dbstore
dbstore_config_uri = file:${folder}/config.db
dbstore_db_dir = ${folder}
rgw_data = ${folder}
run_dir = ${folder}
log_file = ${folder}/log
admin_socket =
rgw_enable_apis = s3
rgw_frontends = beast endpoint=127.0.0.1:${port}
`;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function untilItAnswers(endpoint: string, gateway: ReturnType<typeof spawn>): Promise<void> {
  for (;;) {
    const answer = await fetch(endpoint).catch(() => undefined);
    if (answer?.ok === true) return;
    if (gateway.exitCode !== null || gateway.signalCode !== null) throw new Error("radosgw ended");
    await sleep(20);
  }
}
