import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it, vi } from "vitest";
import { tellsOfMachine } from "../../../src/lib/capped/child.ts";
import { openCappedPool, type CappedPool } from "../../../src/lib/capped/pool.ts";
import { isAlive } from "../../../src/lib/process-alive.ts";
import type { OddRequest } from "./odd-child.ts";

const MODULE = new URL("odd-child.ts", import.meta.url);

let pool: CappedPool<OddRequest, string> | undefined;
afterEach(() => pool?.close());

function open(module: URL = MODULE): CappedPool<OddRequest, string> {
  const failure = (code: string): Error => new Error(code);
  const bounds = { processes: 1, memoryMb: 256, timeoutMs: 20_000, idleMs: 5000 };
  pool = openCappedPool<OddRequest, string, "broken">({ module, failure }, bounds);
  return pool;
}

describe("a process that works on requests", () => {
  it("that falls over what came before is replaced, and the request is answered", async () => {
    const opened = open();
    expect(await opened.ask({ deed: "answer" })).toEqual(["answer"]);
    expect(await opened.ask({ deed: "exit where used" })).toEqual(["exit where used"]);
  });

  it("that falls over the request twice has fallen over it", async () => {
    await expect(open().ask({ deed: "exit" })).rejects.toThrow("fall");
  });

  it("that somebody ends tells nothing of the request", async () => {
    await expect(open().ask({ deed: "end" })).rejects.toThrow("unable");
  });

  it("that cannot be started tells nothing of the request", async () => {
    await expect(open(new URL("absent.ts", MODULE)).ask({ deed: "answer" })).rejects.toThrow("unable");
  });

  it("does not outlive a parent that is killed, whatever a library left running in it", async () => {
    const module = fileURLToPath(new URL("abandoning-parent.ts", MODULE));
    const parent = spawn(process.execPath, ["--no-warnings", module], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [told] = (await once(parent.stdout, "data")) as [Buffer];
    const child = Number(told.toString());
    expect(isAlive(child)).toBe(true);
    parent.kill("SIGKILL");
    try {
      await vi.waitFor(() => expect(isAlive(child)).toBe(false), { timeout: 8000 });
    } finally {
      if (isAlive(child)) process.kill(child, "SIGKILL");
    }
  }, 15_000);
});

describe("what a failure tells of", () => {
  it.each([
    ["a file that is gone", "ENOENT", true],
    ["no more handles", "EMFILE", true],
    ["a library that cannot be loaded", "ERR_MODULE_NOT_FOUND", true],
    ["a channel that is closed", "ERR_IPC_CHANNEL_CLOSED", true],
    ["bytes that are not of their encoding", "ERR_ENCODING_INVALID_ENCODED_DATA", false],
    ["an argument out of range", "ERR_OUT_OF_RANGE", false],
    ["a library's own word", "FORMAT_BROKEN", false],
    ["no code", undefined, false],
  ])("%s", (_name, code, isMachine) => {
    expect(tellsOfMachine(Object.assign(new Error("x"), { code }))).toBe(isMachine);
  });
});
