import { once } from "node:events";
import { statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { stop, until } from "../e2e/program.ts";
import { startBareService } from "./bare-service.ts";
import { openChance, wholeNumberOf, type Chance } from "./chance.ts";
import { change, fill } from "./edits.ts";
import { endGrounds, openGround, type Ground } from "./ground.ts";
import { openListView } from "./list-view.ts";
import { unkindFaults } from "./unkind-faults.ts";

/** A small share for every check; `npm run test:storm` runs ten seeds with 24 kills each. */
const SEED = wholeNumberOf("KBSYNC_STORM_SEED", 1);
const SEEDS = wholeNumberOf("KBSYNC_STORM_SEEDS", 1);
const KILLS = wholeNumberOf("KBSYNC_STORM_KILLS", 6);
const FILES = 40;
const SHARE = 0.25;
/** Extra resources are searched for until two minutes after a start. */
const AGREE_MS = 300_000;
/** What was changed more lately may not have been noticed. */
const NOTICED_MS = 5000;
const ROOMY_MS = AGREE_MS + 30_000 * KILLS;

afterAll(endGrounds);

/** Trailing blanks go, and Unicode is composed. */
function normalise(_field: string, text: string): string {
  return text.normalize("NFC").replaceAll(/[ \t]+$/gm, "");
}

interface Status {
  /** Null: none runs, and what is said is of its last pass. */
  readonly daemon: { readonly idle: boolean } | null;
  readonly sources: readonly {
    readonly files: number;
    readonly searchable: number;
    readonly waiting: number;
    readonly failed: number;
    readonly held: number;
    readonly holdReason: string | null;
  }[];
}

/** Files that the status says are in agreement have a resource with what they hold. */
async function expectHonesty(ground: Ground, when: string): Promise<void> {
  const before = Date.now();
  const { code, stdout } = await ground.command("status", "--json");
  if (code !== 0) return;
  const { daemon, sources } = JSON.parse(stdout) as Status;
  const [source] = sources;
  if (daemon?.idle !== true) return;
  if (source === undefined || source.files === 0) return;
  const { waiting, failed, held, holdReason } = source;
  if (waiting + failed + held > 0 || holdReason !== null) return;
  const missing = (await ground.disagreements()).filter((line) => line.startsWith("missing "));
  const isOld = (line: string): boolean => {
    const path = line.slice("missing ".length).split(" [")[0] ?? "";
    const { mtimeMs, ctimeMs } = statSync(join(ground.root, path));
    return Math.max(mtimeMs, ctimeMs) < before - NOTICED_MS;
  };
  expect(missing.filter(isOld), `the status said ${stdout} ${when}`).toEqual([]);
}

/** Runs the daemon amid changes and kills it when so many requests have come. */
async function killAmidChanges(ground: Ground, chance: Chance, names: Map<number, string>): Promise<void> {
  const faultOf = unkindFaults(chance, SHARE);
  const last = ground.proxy.requests.length + 1 + chance.below(chance.pick([4, 15, 60]));
  const running = ground.start();
  const closed = once(running.child, "close") as Promise<[number | null, string | null]>;
  ground.proxy.fault = (request) => {
    if (request.number >= last) running.child.kill("SIGKILL");
    const unkind = faultOf(request);
    if (unkind !== undefined) names.set(request.number, unkind.name);
    return unkind?.fault;
  };
  const lives = (): boolean => running.child.exitCode === null && running.child.signalCode === null;
  for (let steps = 0; lives() && steps < 60; steps += 1) {
    if (chance.happens(0.4)) change(ground, chance);
    await Promise.race([closed, sleep(50)]);
  }
  running.child.kill("SIGKILL");
  const [code, signal] = await closed;
  expect({ code, signal }, `it said: ${running.output.stderr}`).toEqual({ code: null, signal: "SIGKILL" });
}

/** Runs the daemon in the storm while nothing changes, and asks for its status. */
async function askWhileItRests(ground: Ground, chance: Chance): Promise<void> {
  const faultOf = unkindFaults(chance, SHARE);
  const running = ground.start();
  ground.proxy.fault = (request) => faultOf(request)?.fault;
  for (let asked = 0; asked < 5; asked += 1) {
    await sleep(1500);
    await expectHonesty(ground, "while nothing changed");
  }
  running.child.kill("SIGKILL");
  await once(running.child, "close");
}

describe("a storm of kills and faults before a service that only speaks the published specification", () => {
  it.concurrent.each(Array.from({ length: SEEDS }, (_, index) => SEED + index))(
    "a storm of kills and faults ends with one resource a file, what others have as it is, and a status that never lied (seed %i)",
    async (seed) => {
      const chance = openChance(seed);
      const lists = openListView(openChance(seed + 1000), {
        lagMs: chance.pick([500, 2000, 4000]),
        share: 0.15,
      });
      const service = await startBareService({
        normalise,
        skewMs: chance.pick([0, -7_200_000, 86_400_000, 1500]),
        onWrite: (resource) => lists.note(resource),
        listed: () => lists.show(),
      });
      const ground = await openGround({
        service,
        ownerId: `storm-${seed}`,
        bare: true,
        normalise,
        hangMs: 4000,
      });
      const names = new Map<number, string>();
      fill(ground, chance, FILES);
      ground.write("notes/blanks.txt", "one line  \nanother \t\n");
      ground.write("notes/composed.txt", "cafe\u0301 and \u00e9\n");
      await ground.addForeign({ title: "notes/file-1.txt", description: "theirs", content: "theirs" });
      for (let kill = 1; kill <= KILLS; kill += 1) {
        await killAmidChanges(ground, chance, names);
        if (kill % 6 === 0) await askWhileItRests(ground, chance);
      }

      ground.proxy.fault = () => undefined;
      lists.calm();
      const running = ground.start();
      let wrong: string[] = [];
      const agrees = async (): Promise<boolean> => {
        expect(running.child.exitCode, `it said: ${running.output.stderr}`).toBe(null);
        await expectHonesty(ground, "in the end");
        wrong = await ground.disagreements();
        if (wrong.length === 0) return true;
        // A file that was refused by an answer of the storm waits for a person, who has it tried again.
        await ground.command("retry");
        await sleep(2000);
        return false;
      };
      await until("agreement", agrees, AGREE_MS).catch((error: unknown) => {
        const faults = [...names].map(([number, name]) => `${number} ${name}`).join(", ");
        const lines = [`no agreement, seed ${seed}`, ...wrong, ground.historyOf(wrong), faults];
        throw new Error([...lines, running.output.stderr].join("\n"), { cause: error });
      });
      expect(await stop(running)).toBe(0);
      // What is still in doubt is settled by the first pass; the second one sends nothing.
      expect(await ground.command("sync")).toMatchObject({ code: 0 });
      const before = ground.proxy.requests.length;
      expect(await ground.command("sync")).toMatchObject({ code: 0 });
      expect(ground.proxy.writesSince(before), "sent at rest").toEqual([]);
      expect(await ground.disagreements()).toEqual([]);
      await ground.end();
      await service.end();
    },
    ROOMY_MS,
  );
});
