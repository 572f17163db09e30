import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { buildProgram } from "../../../src/cli/command-line.ts";
import { type NotifySocket, openNotifySocket } from "../../system/socket.ts";
import { cliContext, outputTo } from "../context.ts";

let folder: string;
let socket: NotifySocket;
let stopping: AbortController;
let hangup: () => void;

// The commands are loaded here, not while a test waits for them.
beforeAll(async () => {
  await Promise.all([
    import("../../../src/cli/commands/question.ts"),
    import("../../../src/cli/commands/up.ts"),
  ]);
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-up-"));
  socket = openNotifySocket();
  stopping = new AbortController();
  hangup = () => undefined;
});
afterEach(() => {
  socket.close();
  rmSync(folder, { recursive: true });
});

/** Runs a command in this process; resolves with what it printed. `onOutput` is notified of each piece as it comes. */
async function run(args: readonly string[], onOutput: () => void = () => undefined): Promise<string> {
  let said = "";
  const context = cliContext({
    stdout: outputTo((text) => {
      said += text;
      onOutput();
    }),
    env: { NOTIFY_SOCKET: socket.address, KBSYNC_LOG: "silent" },
    cwd: folder,
    signal: stopping.signal,
    onHangup: (listener) => {
      hangup = listener;
      return () => undefined;
    },
  });
  await (await buildProgram(context, args)).parseAsync(args, { from: "user" });
  return said;
}

/** Writes a configuration with these folders as its sources, each of an owner of its own name. */
function configure(...names: readonly string[]): void {
  const sources = names.map((name) => ({ path: name, ownerId: name, collection: "fastest" }));
  // Words alone are quick, and enough here.
  const kb = { embedding: { model: "no-model" } };
  const config = { stateDir: "state", sources, service: { port: 0 }, kb };
  writeFileSync(join(folder, "kbsync.config.json"), JSON.stringify(config));
}

function source(name: string, text: string): void {
  mkdirSync(join(folder, name));
  writeFileSync(join(folder, name, "note.md"), text);
}

describe("up", () => {
  it("kbsync up has its agent read a source that a reload added", async () => {
    source("ships", "# Ships\n\nThe ferry leaves at seven.\n");
    source("trees", "# Trees\n\nThe oak behind the mill is three hundred years old.\n");
    configure("ships");
    const reported: string[] = [];
    const received = (word: string): boolean => {
      reported.push(...socket.take());
      return reported.some((message) => message.includes(word));
    };
    const running = run(["up"]);
    await expect.poll(() => received("READY=1"), { timeout: 15_000 }).toBe(true);
    const ask = (): Promise<string> => run(["ask", "How old is the oak behind the mill?"]);
    expect(await ask()).not.toContain("three hundred");
    configure("ships", "trees");
    hangup();
    await expect.poll(ask, { timeout: 15_000 }).toContain("three hundred");
    stopping.abort();
    await running;
  });

  it("writes its service's address once commands reach its daemon, and removes that of a killed process before", async () => {
    source("ships", "# Ships\n");
    configure("ships");
    mkdirSync(join(folder, "state"), { mode: 0o700 });
    const address = join(folder, "state", "service.json");
    const former = JSON.stringify({ url: "http://127.0.0.1:1", pid: process.pid });
    writeFileSync(address, former);
    let isRemoved = false;
    let isReachable: boolean | undefined;
    const watching = setInterval(() => {
      if (!existsSync(address)) isRemoved = true;
      else if (readFileSync(address, "utf8") !== former)
        isReachable ??= existsSync(join(folder, "state", "control.sock"));
    }, 1);
    const running = run(["up"]);
    await expect.poll(() => isReachable, { timeout: 15_000 }).toBe(true);
    clearInterval(watching);
    expect(isRemoved).toBe(true);
    stopping.abort();
    await running;
    expect(existsSync(address)).toBe(false);
  });

  it("reports a stop during the start as STOPPING, and never READY", async () => {
    source("ships", "# Ships\n");
    configure("ships");
    // It prints its address before it scans anything.
    await run(["up"], () => stopping.abort());
    const reported = socket.take().join("\n");
    expect(reported).toContain("STOPPING=1");
    expect(reported).not.toContain("READY=1");
  });
});
