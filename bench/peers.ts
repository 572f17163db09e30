import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** A peer that moves or indexes the same tree; `seconds` undefined when it is not installed here, with the reason. */
export interface PeerRun {
  readonly name: string;
  readonly seconds: number | undefined;
  readonly note: string;
}

/** Longest time a peer may take, in seconds. */
const PEER_SECONDS_MAX = 300;

/** `qmd collection add` of the tree into an empty index (npm package @tobilu/qmd, found on PATH). */
export function runQmd(tree: string): PeerRun {
  const name = "qmd collection add";
  if (!installed("qmd", ["--version"]))
    return { name, seconds: undefined, note: "not installed (npm i -g @tobilu/qmd)" };
  const home = mkdtempSync(join(tmpdir(), "qmd-"));
  try {
    const env = { ...process.env, HOME: home, XDG_CACHE_HOME: home, XDG_CONFIG_HOME: home };
    const start = performance.now();
    const run = spawnSync("qmd", ["collection", "add", tree, "--name", "bench", "--mask", "**/*.md"], {
      env,
      encoding: "utf8",
      timeout: PEER_SECONDS_MAX * 1000,
      maxBuffer: 64 * 1024 * 1024,
    });
    const seconds = (performance.now() - start) / 1000;
    if (run.status !== 0)
      return { name, seconds: undefined, note: `ended with ${run.status}: ${run.stderr.slice(-200)}` };
    return { name, seconds, note: "index only, no service" };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Syncthing from one local peer to another, from the start of both processes until the second holds every file. */
export async function runSyncthing(tree: string, files: number): Promise<PeerRun> {
  const name = "Syncthing, two local peers";
  if (!installed("syncthing", ["--version"]))
    return { name, seconds: undefined, note: "not installed (apt install syncthing)" };
  const home = mkdtempSync(join(tmpdir(), "syncthing-"));
  const peers = [0, 1].map((index) => syncthingPeer(join(home, `peer-${index}`), index));
  try {
    cpSync(tree, peers[0]?.folder ?? "", { recursive: true });
    for (const peer of peers) writeSyncthingConfig(peer, peers);
    const start = performance.now();
    const children = peers.map((peer) =>
      spawn("syncthing", ["serve", "--home", peer.home, "--no-browser", "--no-restart", "--no-upgrade"], {
        stdio: "ignore",
        // Syncthing runs as a monitor and a child: a group of their own, so that both can be ended.
        detached: true,
      }),
    );
    try {
      while (performance.now() - start < PEER_SECONDS_MAX * 1000) {
        await sleep(100);
        const status = await syncthingStatus(peers[1]);
        if (status?.localFiles === files && status.needFiles === 0) {
          return {
            name,
            seconds: (performance.now() - start) / 1000,
            note: "moves the files, indexes nothing",
          };
        }
      }
      return { name, seconds: undefined, note: `not done after ${PEER_SECONDS_MAX} s` };
    } finally {
      for (const { pid } of children) if (pid !== undefined) process.kill(-pid, "SIGKILL");
    }
  } finally {
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

interface SyncthingPeer {
  readonly home: string;
  readonly folder: string;
  readonly id: string;
  readonly gui: string;
  readonly listen: string;
}

const SYNCTHING_API_KEY = "bench";

function syncthingPeer(path: string, index: number): SyncthingPeer {
  const home = join(path, "home");
  const folder = join(path, "folder");
  mkdirSync(home, { recursive: true });
  mkdirSync(join(folder, ".stfolder"), { recursive: true });
  execFileSync("syncthing", ["generate", "--home", home, "--no-default-folder"], { stdio: "ignore" });
  const id = execFileSync("syncthing", ["--home", home, "--device-id"], { encoding: "utf8" }).trim();
  return {
    home,
    folder,
    id,
    gui: `127.0.0.1:${28_384 + index}`,
    listen: `tcp://127.0.0.1:${32_000 + index}`,
  };
}

function writeSyncthingConfig(self: SyncthingPeer, peers: readonly SyncthingPeer[]): void {
  const devices = peers
    .map(({ id, listen }) => `<device id="${id}" compression="never"><address>${listen}</address></device>`)
    .join("");
  const members = peers.map(({ id }) => `<device id="${id}"></device>`).join("");
  const version =
    /<configuration version="(\d+)"/.exec(readFileSync(join(self.home, "config.xml"), "utf8"))?.[1] ?? "35";
  writeFileSync(
    join(self.home, "config.xml"),
    `<configuration version="${version}"><folder id="bench" path="${self.folder}" type="sendreceive" rescanIntervalS="3600" fsWatcherEnabled="true">${members}</folder>` +
      `${devices}<gui enabled="true" tls="false"><address>${self.gui}</address><apikey>${SYNCTHING_API_KEY}</apikey></gui>` +
      `<options><listenAddress>${self.listen}</listenAddress><globalAnnounceEnabled>false</globalAnnounceEnabled>` +
      `<localAnnounceEnabled>false</localAnnounceEnabled><relaysEnabled>false</relaysEnabled><natEnabled>false</natEnabled>` +
      `<urAccepted>-1</urAccepted><startBrowser>false</startBrowser><crashReportingEnabled>false</crashReportingEnabled></options></configuration>`,
  );
}

async function syncthingStatus(
  peer: SyncthingPeer | undefined,
): Promise<{ localFiles: number; needFiles: number } | undefined> {
  try {
    const answer = await fetch(`http://${peer?.gui}/rest/db/status?folder=bench`, {
      headers: { "X-API-Key": SYNCTHING_API_KEY },
    });
    return (await answer.json()) as { localFiles: number; needFiles: number }; // the peer's documented shape
  } catch {
    return undefined; // not listening yet
  }
}

/** rclone copying the tree to its own sftp server on loopback. */
export async function runRclone(tree: string): Promise<PeerRun> {
  const name = "rclone copy over sftp";
  if (!installed("rclone", ["version"]))
    return { name, seconds: undefined, note: "not installed (apt install rclone)" };
  const target = mkdtempSync(join(tmpdir(), "rclone-"));
  const server = spawn(
    "rclone",
    [
      "serve",
      "sftp",
      target,
      "--addr",
      "127.0.0.1:28390",
      "--user",
      "bench",
      "--pass",
      "bench",
      "--vfs-cache-mode",
      "off",
    ],
    { stdio: "ignore", env: { ...process.env, HOME: target } },
  );
  try {
    const password = execFileSync("rclone", ["obscure", "bench"], { encoding: "utf8" }).trim();
    await sleep(1500);
    const remote = `:sftp,host=127.0.0.1,port=28390,user=bench,pass=${password}:/tree`;
    const start = performance.now();
    const run = spawnSync("rclone", ["copy", tree, remote, "--transfers", "16", "--checkers", "16"], {
      encoding: "utf8",
      timeout: PEER_SECONDS_MAX * 1000,
      env: { ...process.env, HOME: target },
    });
    const seconds = (performance.now() - start) / 1000;
    if (run.status !== 0)
      return { name, seconds: undefined, note: `ended with ${run.status}: ${run.stderr.slice(-200)}` };
    return { name, seconds, note: "moves the files, indexes nothing" };
  } finally {
    server.kill("SIGKILL");
    rmSync(target, { recursive: true, force: true });
  }
}

function installed(command: string, args: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).error === undefined;
}
