import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stop, until } from "../e2e/program.ts";
import { startBareService } from "./bare-service.ts";
import { type Chance, openChance, wholeNumberOf } from "./chance.ts";
import { change, fill } from "./edits.ts";
import { endGrounds, type Ground, openGround } from "./ground.ts";
import { openListView } from "./list-view.ts";
import { type CrashService, startService } from "./service.ts";
import { storm } from "./weather.ts";

/** The first seed, how many of them, and rounds of each: some for every check, more on demand. */
const SEED = wholeNumberOf("KBSYNC_CRASH_SEED", 1);
const SEEDS = wholeNumberOf("KBSYNC_CRASH_SEEDS", 2);
const ROUNDS = wholeNumberOf("KBSYNC_CRASH_ROUNDS", 2);
const KILLS = 3;
const FILES = 80;
/** A resource counts as older than an intent when it is so by more than two clocks may differ. */
const OLDER_MS = 7000;
/** Each change becomes visible to the lists of a bare service after a delay of its own, up to this. */
const LAG_MS = 4000;
/** An extra resource, of a create that was under way when the daemon died, is searched for until two minutes after that. */
const AGREE_MS = 240_000;

const TWIN = { path: "papers/twin.txt", text: "the same words in many files" };

let service: CrashService;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await endGrounds();
  await service.end();
});

/** Runs the daemon, changes the folder meanwhile, and kills it when so many requests have come. */
async function killAmidChanges(ground: Ground, chance: Chance): Promise<void> {
  const faultOf = storm(chance, { share: 0.2, bare: ground.bare });
  const last = ground.proxy.requests.length + chance.below(chance.pick([5, 40, 120]));
  const running = ground.start();
  const closed = once(running.child, "close") as Promise<[number | null, string | null]>;
  ground.proxy.fault = (request) => {
    // In the middle of whatever the daemon does at this moment; the request goes its way.
    if (request.number >= last) running.child.kill("SIGKILL");
    return faultOf(request);
  };
  const lives = (): boolean => running.child.exitCode === null && running.child.signalCode === null;
  for (let steps = 0; lives() && steps < 60; steps += 1) {
    if (chance.happens(0.5)) change(ground, chance);
    await Promise.race([closed, sleep(50)]);
  }
  running.child.kill("SIGKILL");
  const [code, signal] = await closed;
  expect({ code, signal }, `it said: ${running.output.stderr}`).toEqual({ code: null, signal: "SIGKILL" });
}

/** Lets a daemon come to rest in a network without faults; then nothing is left to send. */
async function expectAgreement(ground: Ground, when: string): Promise<void> {
  ground.proxy.fault = () => undefined;
  const running = ground.start();
  let wrong: string[] = [];
  const agrees = async (): Promise<boolean> => {
    expect(running.child.exitCode, `it said: ${running.output.stderr}`).toBe(null);
    wrong = await ground.disagreements();
    return wrong.length === 0;
  };
  await until(`agreement ${when}`, agrees, AGREE_MS).catch((error: unknown) => {
    const lines = [`no agreement ${when}`, ...wrong, ground.historyOf(wrong), running.output.stderr];
    throw new Error(lines.join("\n"), { cause: error });
  });
  expect(await stop(running)).toBe(0);
  expect(await ground.command("sync")).toMatchObject({ code: 0 });
  const before = ground.proxy.requests.length;
  expect(await ground.command("sync")).toMatchObject({ code: 0 });
  expect(ground.proxy.writesSince(before), `sent ${when}`).toEqual([]);
  expect(await ground.disagreements(), `wrong ${when}`).toEqual([]);
}

describe("kill -9 at any moment, in a network on a bad day", () => {
  it.concurrent.each(Array.from({ length: SEEDS }, (_, index) => SEED + index))(
    "leaves one resource a file, with its content, and what others have there as it is (seed %i)",
    async (seed) => {
      const chance = openChance(seed);
      // Every other service is one that knows nothing but the bare specification, and whose lists lag.
      const bare = seed % 2 === 0;
      const lists = openListView(openChance(seed + 1000), { lagMs: LAG_MS, share: 0 });
      const lagging = bare
        ? await startBareService({ onWrite: (resource) => lists.note(resource), listed: () => lists.show() })
        : undefined;
      const ground = await openGround({ service: lagging ?? service, ownerId: `kill-${seed}`, bare });
      fill(ground, chance, FILES);
      await ground.addForeign({ title: "notes/file-1.txt", description: "theirs", content: "theirs" });
      for (let round = 1; round <= ROUNDS; round += 1) {
        for (let kill = 0; kill < KILLS; kill += 1) {
          await killAmidChanges(ground, chance);
          change(ground, chance);
        }
        await expectAgreement(ground, `in round ${round} of seed ${seed}`);
        if (round === 1) {
          // What somebody else has there becomes a file of ours, too, to the letter.
          const { path, text } = TWIN;
          await ground.addForeign({ title: path, description: `from ${path}`, content: text });
          await sleep(OLDER_MS);
          ground.write(path, text);
        }
      }
      expect(await ground.disagreements()).toEqual([]);
      await ground.end();
      await lagging?.end();
    },
    (ROUNDS + 1) * AGREE_MS,
  );
});
