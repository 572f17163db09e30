import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { Agent, FormData, request } from "undici";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { generateKey } from "../../../src/kb/keys/keys.ts";
import { dashedPdf } from "../ingest/extract/pdf-fixture.ts";
import { type ServiceProcess, startProcess } from "./process.ts";
import { createBody, fileForm } from "./running.ts";

const WAIT = { timeout: 30_000, interval: 50 };
/** One more than the crashes that a document may cause. */
const STOPS = 5;

/** The global dispatcher may be that of the undici inside Node.js, which never sends a form of this package. */
const dispatcher = new Agent();
let stateDir: string;
const key = generateKey();
let service: ServiceProcess | undefined;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "kbsync-stop-"));
});
afterEach(async () => {
  service?.child.kill("SIGKILL");
  await rm(stateDir, { recursive: true });
});

/** In a process group of its own, to which signals go as those of a terminal do. */
async function start(): Promise<ServiceProcess> {
  service = await startProcess({ stateDir, key }, { detached: true });
  return service;
}

/** Whether a process that the service started recognises text. */
async function isReading({ child }: { child: ChildProcess }): Promise<boolean> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const read = (pid: string, file: string) => readFile(join("/proc", pid, file), "utf8").catch(() => "");
  const found = await Promise.all(
    pids.map(async (pid) => {
      const isChild = (await read(pid, "status")).includes(`\nPPid:\t${child.pid}\n`);
      return isChild && (await read(pid, "cmdline")).includes("ocr-child");
    }),
  );
  return found.includes(true);
}

it("a document whose text is being recognised at every stop is never given up", async () => {
  let running = await start();
  const call = async (
    path: string,
    body: object | FormData,
  ): Promise<{ data: { _id: string }; file_url: string }> => {
    const isForm = body instanceof FormData;
    const answer = await request(running.url + path, {
      dispatcher,
      method: "POST",
      headers: {
        pauthkey: key,
        prefer: "respond-async",
        ...(!isForm && { "content-type": "application/json" }),
      },
      body: isForm ? body : JSON.stringify(body),
    });
    return (await answer.body.json()) as { data: { _id: string }; file_url: string }; // one or the other of them
  };
  const { file_url: url } = await call("/image/processing/upload", fileForm(dashedPdf(), "a.pdf"));
  await call("/api/rag/resource", createBody({ content: undefined, url }));
  const db = new Database(join(stateDir, "kb.sqlite"), { readonly: true });
  const jobs = (): unknown[] => db.prepare("SELECT crashes, is_working, attempts FROM job").all();
  for (let stop = 1; stop <= STOPS; stop += 1) {
    await vi.waitFor(async () => expect(await isReading(running)).toBe(true), WAIT);
    // Nor is a crash counted against what waits for a process or is read by one.
    expect(jobs()).toEqual([{ crashes: 0, is_working: 0, attempts: 0 }]);
    const gone = once(running.child, "exit");
    process.kill(-(running.child.pid ?? 0), "SIGTERM");
    await gone;
    expect(jobs()).toEqual([{ crashes: 0, is_working: 0, attempts: 0 }]);
    if (stop < STOPS) running = await start();
  }
  db.close();
});
