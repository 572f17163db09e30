/**
 * What the sync engine costs a file: a first sync of generated files against a service that answers at once, beside a
 * bare loop that posts the same bodies over the same kind of connection.
 *
 *     node bench/sync-engine.ts [files=20000]
 *
 * The service runs in a process of its own; main-thread cost is this process's CPU time, the watcher's thread left out.
 */
import { fork } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Pool } from "undici";
import { CONCURRENCY_EMBEDDED, ConfigFile } from "../src/config/schema.ts";
import { openDaemon } from "../src/sync/daemon.ts";
import { writeTree } from "./tree.ts";

const OWNER = "bench";

if (process.argv[2] === "serve") serve();
else await measure(Number(process.argv[2] ?? 20_000));

/** Answers every create at once. */
function serve(): void {
  let made = 0;
  const server = createServer((request, response) => {
    request.on("data", () => undefined);
    request.on("end", () => {
      response.setHeader("content-type", "application/json");
      if (request.url === "/api/rag/collections") {
        const collections = [{ _id: "c".repeat(24), details: "fastest", resources: 0, chunks: 0 }];
        response.end(JSON.stringify({ success: true, data: { collections } }));
        return;
      }
      made += 1;
      const at = new Date().toISOString();
      response.statusCode = 201;
      response.end(
        JSON.stringify({
          success: true,
          message: "created",
          data: {
            _id: made.toString(16).padStart(24, "0"),
            title: "t",
            description: "d",
            collectionId: "c".repeat(24),
            ownerId: OWNER,
            refreshedAt: null,
            isDeleted: false,
            settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
            createdAt: at,
            updatedAt: at,
          },
        }),
      );
    });
  });
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
}

async function measure(files: number): Promise<void> {
  const base = mkdtempSync(join(tmpdir(), "kbsync-bench-"));
  const root = join(base, "docs");
  const service = fork(fileURLToPath(import.meta.url), ["serve"]);
  const port = await new Promise<number>((resolve) => {
    service.once("message", resolve);
  });
  try {
    writeTree(root, { files, folders: Math.ceil(files / 50), meanBytes: 4650 });
    const url = `http://127.0.0.1:${port}`;
    const concurrency = CONCURRENCY_EMBEDDED;
    const { sync, sources } = ConfigFile.parse({ sources: [{ path: root }] });
    const [config] = sources;
    if (config === undefined) throw new Error("no source");
    const open = (stateDir: string): ReturnType<typeof openDaemon> =>
      openDaemon({
        stateDir,
        service: { apiUrl: url, dbUrl: url, pauthkey: "k" },
        sources: [{ ...config, absolutePath: root, ownerId: OWNER }],
        sync: { ...sync, concurrency, settleMs: 0 },
      });

    await bare(root, url, concurrency, Math.min(files, 3000)); // Warms both sides up.
    const bareRun = await timed(() => bare(root, url, concurrency, files));
    const engine = await timed(async () => {
      const daemon = open(join(base, "state"));
      const { status } = await daemon.syncOnce();
      if (status.sources[0]?.inAgreement !== files) throw new Error(JSON.stringify(status));
      await daemon.close();
    });
    const again = await timed(async () => {
      const daemon = open(join(base, "state"));
      await daemon.syncOnce();
      await daemon.close();
    });
    print("bare undici loop", bareRun, files);
    print("sync engine, first sync", engine, files);
    print("sync engine, unchanged", again, files);
    console.log(`engine / bare throughput: ${(bareRun.ms / engine.ms).toFixed(2)}`);
  } finally {
    service.kill();
    rmSync(base, { recursive: true, force: true });
  }
}

async function bare(root: string, url: string, concurrency: number, files: number): Promise<void> {
  const pool = new Pool(url, { connections: concurrency });
  const paths = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".md"),
  );
  let next = 0;
  const lane = async (): Promise<void> => {
    for (;;) {
      const path = paths[next++];
      if (path === undefined || next > files) return;
      const body = JSON.stringify({
        title: path,
        description: path,
        settings: config,
        content: readFileSync(join(root, path), "utf8"),
        collection_details: "fastest",
        owner_id: OWNER,
      });
      const headers = { pauthkey: "k", "content-type": "application/json" };
      const answer = await pool.request({ method: "POST", path: "/api/rag/resource", headers, body });
      JSON.parse(await answer.body.text());
    }
  };
  const config = { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 };
  await Promise.all(Array.from({ length: concurrency }, lane));
  await pool.close();
}

interface Timed {
  readonly ms: number;
  readonly cpuMs: number;
}

async function timed(work: () => Promise<void>): Promise<Timed> {
  const cpu = process.cpuUsage();
  const start = performance.now();
  await work();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  return { ms, cpuMs: (user + system) / 1000 };
}

function print(name: string, { ms, cpuMs }: Timed, files: number): void {
  const perFile = `${((1000 * ms) / files).toFixed(0)} µs a file, ${((1000 * cpuMs) / files).toFixed(0)} µs of CPU`;
  console.log(
    `${name.padEnd(26)} ${ms.toFixed(0).padStart(6)} ms  ${Math.round((1000 * files) / ms)} files/s  ${perFile}`,
  );
}
