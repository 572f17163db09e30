import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Started, stop, until } from "../e2e/program.ts";
import { endGrounds, type Ground, openGround } from "./ground.ts";
import { type CrashService, startService } from "./service.ts";

const ROUNDS = 3;

let service: CrashService;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await endGrounds();
  await service.end();
});

async function agreement(ground: Ground): Promise<void> {
  await until("agreement", async () => (await ground.disagreements()).length === 0);
}

describe("two daemons on one state folder", () => {
  it("of two daemons started at the same instant on one state folder, one runs and the other refuses naming it; a new one starts at once after kill -9", async () => {
    const ground = await openGround({ service, ownerId: "double" });
    for (let round = 0; round < ROUNDS; round += 1) {
      ground.write(`file-${round}.txt`, `text ${round}`);
      const both = [ground.start(), ground.start()] as const;
      const ended = both.map(async (started) => {
        await once(started.child, "close");
        return started;
      });
      const refused = await Promise.race(ended);
      const runs = both.find((started) => started !== refused) as Started; // there are two of them
      expect(refused.child.exitCode, `it said: ${refused.output.stderr}`).toBe(75);
      expect(refused.output.stderr).toMatch(
        new RegExp(`^kbsync: another kbsync \\(process ${runs.child.pid}\\) is using the state folder .*\\n`),
      );
      await agreement(ground);
      expect(runs.child.exitCode).toBe(null);
      await stop(runs, "SIGKILL");
    }
    const last = ground.start();
    ground.write("last.txt", "a last text");
    await agreement(ground);
    expect(await stop(last)).toBe(0);
    const created = ground.proxy.requests.filter(({ operation }) => operation === "create");
    expect(created.map(({ title }) => title)).toEqual(["file-0.txt", "file-1.txt", "file-2.txt", "last.txt"]);
    await ground.end();
  });
});
