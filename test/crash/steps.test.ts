import { spawn } from "node:child_process";
import { once } from "node:events";
import { renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../e2e/program.ts";
import { buildPdf, textPage } from "../kb/ingest/extract/pdf-fixture.ts";
import { NODE_FLAGS } from "../node-flags.ts";
import { startBareService } from "./bare-service.ts";
import { openChance, wholeNumberOf } from "./chance.ts";
import type { FatalOrders } from "./daemon-process.ts";
import { endGrounds, type Ground, openGround } from "./ground.ts";
import { openListView } from "./list-view.ts";
import { openOrdered, type Orders, runDaemon } from "./live-daemon.ts";
import { type CrashService, startService } from "./service.ts";

/** How often each step is died at: its first times, half as many by the watching daemon, which takes longer. */
const TIMES = wholeNumberOf("KBSYNC_CRASH_TIMES", 2);
/**
 * Agreement comes within a second or two. Where lists lag, a create may be sent twice; lists after 1.25, 4 and 12 times the lag
 * show the extra resources.
 */
const AGREE_MS = 45_000;
const AGREE_LAGGING_MS = 100_000;
/** Each change becomes visible to lagging lists after a delay of its own, up to this. */
const LAG_MS = 4000;
const PROCESS = fileURLToPath(new URL("daemon-process.ts", import.meta.url));

/** Every step that a first sync takes a daemon through, and every one that changes do. */
const FIRST_STEPS = ["collections", "list", "search"].flatMap((name) => [name, `${name}:answered`]);
const STEPS = ["commit", "committed"].concat(
  ["list", "create", "upload", "update", "take", "delete"].flatMap((name) => [name, `${name}:answered`]),
);

/** The steps after which what a list shows decides, for a service whose lists lag: each such death takes half a minute. */
const LISTED_STEPS = ["list:answered", "create", "create:answered", "update:answered", "delete:answered"];

let truthful: CrashService;
let lagging: CrashService;
beforeAll(async () => {
  truthful = await startService();
  const lists = openListView(openChance(1), { lagMs: LAG_MS, share: 0 });
  lagging = await startBareService({
    onWrite: (resource) => lists.note(resource),
    listed: () => lists.show(),
  });
});
afterAll(async () => {
  await endGrounds();
  await Promise.all([truthful.end(), lagging.end()]);
});

/** What a daemon runs against: a service with additions or the bare specification, whose lists lag or do not. */
interface World {
  readonly bare: boolean;
  readonly lags: boolean;
}
const serviceOf = ({ lags }: World): CrashService => (lags ? lagging : truthful);

const pdf = (text: string): Buffer => buildPdf([textPage([text])]);
let grounds = 0;

/** A folder that no daemon has seen. */
async function openFirst(world: World): Promise<Ground> {
  grounds += 1;
  const { bare } = world;
  const service = serviceOf(world);
  const ground = await openGround({ service, ownerId: `steps-${grounds}`, bare });
  for (const name of ["edited", "renamed", "deleted", "kept", "became a file", "retitled/a"]) {
    ground.write(`${name}.txt`, `text of ${name}`);
  }
  ground.write("edited.pdf", pdf("first edition"));
  ground.write("renamed.pdf", pdf("a paper"));
  ground.write("became a text.txt", pdf("a paper by its bytes"));
  loseAnAnswer(ground);
  return ground;
}

/** A folder in agreement, then one change of every kind, of texts and of files that are uploaded. */
async function openChanged(world: World): Promise<Ground> {
  const ground = await openFirst(world);
  await agree(ground, world, "sync");
  await ground.addForeign({
    title: "created.txt",
    description: "from created.txt",
    content: "somebody else's",
  });
  ground.write("edited.txt", "another text of edited");
  ground.write("edited.pdf", pdf("second edition"));
  renameSync(join(ground.root, "renamed.txt"), join(ground.root, "new name.txt"));
  renameSync(join(ground.root, "renamed.pdf"), join(ground.root, "new name.pdf"));
  rmSync(join(ground.root, "deleted.txt"));
  ground.write("created.txt", "a new text");
  ground.write("twin of created.txt", "a new text");
  ground.write("created.pdf", pdf("a new paper"));
  // No update turns a text into a file, or a file into a text.
  ground.write("became a file.txt", pdf("a paper now"));
  ground.write("became a text.txt", "a text now");
  ground.configure({ word: "of" });
  loseAnAnswer(ground);
  return ground;
}

/** The answer to the next create is lost, so that a daemon lists what there is and settles it. */
function loseAnAnswer({ proxy }: Ground): void {
  let lost = false;
  proxy.fault = ({ operation }) => {
    if (operation !== "create" || lost) return undefined;
    lost = true;
    return { kind: "swallow" };
  };
}

function ordersOf({ configFile }: Ground, world: World, mode: Orders["mode"]): Orders {
  const { keyFile } = serviceOf(world);
  return { configFile, keyFile, mode, ...(world.lags && { listLagMs: 2 * LAG_MS }) };
}

/** Runs a daemon in this process until it rests and service and folder agree, and ends it. */
async function agree(
  ground: Ground,
  world: World,
  mode: Orders["mode"],
  step: (name: string) => void = () => undefined,
): Promise<void> {
  const orders = ordersOf(ground, world, mode);
  const daemon = openOrdered(orders, step);
  const stop = new AbortController();
  const ended = runDaemon(daemon, orders, stop.signal);
  if (mode === "run") {
    await Promise.race([ended, daemon.whenIdle().then(async () => agreement(ground, world))]);
    stop.abort();
  }
  await ended;
}

/** Resolves when service and folder agree; after a while in any case, so that the caller reports what is wrong. */
async function agreement(ground: Ground, { lags }: World): Promise<void> {
  const agreeMs = lags ? AGREE_LAGGING_MS : AGREE_MS;
  await until("agreement", async () => (await ground.disagreements()).length === 0, agreeMs).catch(
    () => undefined,
  );
}

/** Runs a daemon of its own process until it dies as ordered; false when it brought about agreement instead. */
async function dies(ground: Ground, world: World, orders: FatalOrders): Promise<boolean> {
  const child = spawn(process.execPath, [...NODE_FLAGS, PROCESS, JSON.stringify(orders)], {
    stdio: ["ignore", "inherit", "inherit"],
    // The sources are compiled once, not once a death.
    env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), "kbsync-crash-compiled") },
  });
  const closed = once(child, "close") as Promise<[number | null, string | null]>;
  await Promise.race([closed, agreement(ground, world)]);
  if (orders.mode === "run") child.kill("SIGTERM");
  const [code, signal] = await closed;
  if (signal === null) expect(code, "exit code of a daemon that was not killed").toBe(0);
  return signal === "SIGKILL";
}

const DAEMONS = [
  {
    name: "one pass against the embedded service",
    mode: "sync",
    world: { bare: false, lags: false },
    times: TIMES,
    steps: STEPS,
    firstSteps: FIRST_STEPS,
  },
  {
    name: "a watching daemon against the bare specification",
    mode: "run",
    world: { bare: true, lags: false },
    times: Math.ceil(TIMES / 2),
    steps: STEPS,
    firstSteps: FIRST_STEPS,
  },
  {
    name: "a watching daemon against lists that lag",
    mode: "run",
    world: { bare: true, lags: true },
    times: 1,
    steps: LISTED_STEPS,
    firstSteps: ["list:answered"],
  },
] as const;

describe.each(DAEMONS)("kill -9 at named steps of $name", ({ mode, world, times, steps, firstSteps }) => {
  /** What is wrong after a death and a restart, for the first times of a step. */
  const wrongAfter = async (open: typeof openFirst, step: string): Promise<string[]> => {
    const wrong: string[] = [];
    for (let nth = 1; nth <= times; nth += 1) {
      const ground = await open(world);
      const died = await dies(ground, world, { ...ordersOf(ground, world, mode), step, nth });
      await agree(ground, world, mode);
      const lines = await ground.disagreements();
      const before = ground.proxy.requests.length;
      await agree(ground, world, "sync");
      // A delete that only a 404 answered is sent once more, minutes later or by the next pass: it may have been a false one.
      const sent = ground.proxy
        .writesSince(before)
        .filter((each) => each.operation !== "delete" || each.status !== 404);
      lines.push(...sent.map(({ operation }) => `sent again: ${operation}`));
      wrong.push(...lines.map((line) => `killed at ${step} number ${nth}: ${line}`));
      await ground.end();
      if (died) continue;
      if (nth === 1) wrong.push(`there was no ${step}`);
      break;
    }
    return wrong;
  };
  const patienceMs = world.lags ? 3 * AGREE_LAGGING_MS : undefined;

  it.skipIf(world.lags)("dies at every step there is", async () => {
    const passed = new Set<string>();
    for (const open of [openFirst, openChanged]) {
      const ground = await open(world);
      // A state is read only where a doubt is open at that moment.
      await agree(ground, world, mode, (name) => {
        if (!name.startsWith("read")) passed.add(name);
      });
      expect(await ground.disagreements()).toEqual([]);
      await ground.end();
    }
    expect([...passed].sort()).toEqual([...new Set([...FIRST_STEPS, ...STEPS])].sort());
  });

  it.concurrent.each(steps)(
    "leaves one resource a file at %s, among changes of every kind",
    async (step) => {
      expect(await wrongAfter(openChanged, step)).toEqual([]);
    },
    patienceMs,
  );

  it.concurrent.each(firstSteps)(
    "leaves one resource a file at %s, in a first sync",
    async (step) => {
      expect(await wrongAfter(openFirst, step)).toEqual([]);
    },
    patienceMs,
  );
});
