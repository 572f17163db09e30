import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { startUp, stop, until } from "../e2e/program.ts";
import { openChance, wholeNumberOf } from "./chance.ts";
import { change, fill } from "./edits.ts";
import { endGrounds, openGround } from "./ground.ts";
import { serviceOf } from "./service.ts";

const SEED = wholeNumberOf("KBSYNC_CRASH_SEED", 1);
const KILLS = 2 * wholeNumberOf("KBSYNC_CRASH_ROUNDS", 2);
const FILES = 200;
const AGREE_MS = 60_000;

afterAll(endGrounds);

describe("kill -9 of service and daemon in one process", () => {
  it("leaves one resource a file, each searchable as it is on disk", { timeout: 200_000 }, async () => {
    const chance = openChance(SEED);
    const ground = await openGround({ service: "embedded", ownerId: "up" });
    fill(ground, chance, FILES);
    const args = ["up", "--config", ground.configFile];
    for (let kill = 0; kill < KILLS; kill += 1) {
      const running = await startUp(args, ground.stateDir);
      const killAtMs = Date.now() + chance.below(1500);
      while (Date.now() < killAtMs) {
        change(ground, chance);
        await sleep(30);
      }
      await stop(running, "SIGKILL");
      change(ground, chance);
    }
    const running = await startUp(args, ground.stateDir);
    const service = await serviceOf(running, () => Promise.resolve());
    let wrong: string[] = [];
    const agrees = async (): Promise<boolean> => {
      wrong = await ground.disagreements(service);
      return wrong.length === 0;
    };
    await until("agreement", agrees, AGREE_MS).catch((error: unknown) => {
      throw new Error(wrong.join("\n"), { cause: error });
    });
    expect(await stop(running)).toBe(0);
    await ground.end();
  });
});
