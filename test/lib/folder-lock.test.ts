import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lockFolder } from "../../src/lib/folder-lock.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-lock-"));
});
const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

interface Try {
  readonly pid: number;
  readonly locked: boolean;
  readonly message: string;
}

async function answer<T>(child: ChildProcess): Promise<T> {
  const [message] = (await once(child, "message")) as [T]; // the contender sends nothing else
  return message;
}

async function startContenders(count: number): Promise<ChildProcess[]> {
  const program = fileURLToPath(new URL("lock-contender.ts", import.meta.url));
  return Promise.all(
    Array.from({ length: count }, async () => {
      const child = fork(program);
      started.push(child);
      await answer(child);
      return child;
    }),
  );
}

describe("lockFolder", () => {
  const ROUNDS = 15;

  it("exactly one of several simultaneous processes takes the lock, and the others name it", async () => {
    const contenders = await startContenders(3);
    for (let round = 0; round < ROUNDS; round += 1) {
      const atMs = Date.now() + 10;
      const tries = contenders.map(async (child) => answer<Try>(child));
      for (const child of contenders) child.send({ folder, atMs });
      const results = await Promise.all(tries);
      const winners = results.filter(({ locked }) => locked);
      expect(winners, `round ${round}: ${JSON.stringify(results)}`).toHaveLength(1);
      const refused = results.filter(({ locked }) => !locked);
      expect(refused.filter(({ message }) => !message.includes(`process ${winners[0]?.pid}`))).toEqual([]);
      const released = contenders.map(async (child) => answer(child));
      for (const child of contenders) child.send("release");
      await Promise.all(released);
    }
  });

  it("the refusal names the holder, never a dead process that left its pid behind", async () => {
    const [holder] = await startContenders(1);
    if (holder === undefined) throw new Error("no contender");
    const taken = answer<Try>(holder);
    holder.send({ folder, atMs: 0 });
    expect(await taken).toMatchObject({ locked: true });
    expect(() => lockFolder(folder, "daemon")).toThrow(`process ${holder.pid}`);
    // Until the holder has written its pid, the message names no process rather than a dead one.
    const dead = await startContenders(1);
    dead[0]?.kill("SIGKILL");
    if (dead[0]?.exitCode === null) await once(dead[0], "exit");
    writeFileSync(join(folder, "daemon.pid"), `${dead[0]?.pid}\n`);
    expect(() => lockFolder(folder, "daemon")).toThrow(/another kbsync is using the state folder/);
  });
});
