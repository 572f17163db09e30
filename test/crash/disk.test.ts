import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Ended, type Started, stop, until } from "../e2e/program.ts";
import { openChance } from "./chance.ts";
import { fill } from "./edits.ts";
import { endGrounds, type Ground, openGround } from "./ground.ts";
import { canMount, mountDisk, type SmallDisk } from "./mount.ts";
import { type CrashService, startService } from "./service.ts";

const FILES = 120;
const mayMount = canMount();
/** Words for a report: what these need is the right to mount a file system. */
const NEEDS_MOUNT = mayMount ? "" : " (skipped: this user may not mount a disk)";

let service: CrashService;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await endGrounds();
  await service.end();
});

let grounds = 0;
async function openFilled(stateDir?: string): Promise<Ground> {
  grounds += 1;
  const ground = await openGround({
    service,
    ownerId: `disk-${grounds}`,
    bare: true,
    ...(stateDir !== undefined && { stateDir }),
  });
  fill(ground, openChance(grounds), FILES);
  return ground;
}

async function ended({ child, output }: Started): Promise<Ended> {
  if (child.exitCode === null) await once(child, "close");
  return { code: child.exitCode, ...output };
}

/** One line that says what is wrong, one that says what to do. */
function expectWords({ stderr }: Ended, what: string, todo: string): void {
  // Log lines are JSON; the message for a person is at the end.
  const lines = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
  expect(lines).toEqual([
    expect.stringMatching(/^kbsync: /) as string,
    expect.stringContaining(todo) as string,
  ]);
  expect(lines[0]).toContain(what);
}

async function expectAgreement(ground: Ground): Promise<void> {
  const last = await ground.command("sync");
  expect(last, `it said: ${last.stderr}`).toMatchObject({ code: 0 });
  expect(await ground.disagreements()).toEqual([]);
}

/** No file was made twice, not even for a moment. */
function expectCreatedOnce({ proxy }: Ground): void {
  const titles = proxy.requests.filter(({ operation }) => operation === "create").map(({ title }) => title);
  expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([]);
}

describe.skipIf(!mayMount)(`a state folder's disk that is full${NEEDS_MOUNT}`, () => {
  let disk: SmallDisk;
  beforeEach(() => {
    disk = mountDisk({ sizeKib: 4096, inodes: 64 });
  });
  afterEach(() => disk.unmount());

  it.each(["run", "sync"] as const)(
    "a full disk of the state folder ends %s in the middle of a first sync, and nothing is sent that was not recorded",
    async (command) => {
      const ground = await openFilled(join(disk.path, "state"));
      // Full from the moment of the tenth create on.
      ground.proxy.fault = ({ operation, number }) => {
        if (operation === "create" && number > 10 && !existsSync(join(disk.path, "filler"))) disk.fill();
        return undefined;
      };
      const result = command === "run" ? await ended(ground.start()) : await ground.command("sync");
      expect(result, `it said: ${result.stderr}`).toMatchObject({ code: 74 });
      expectWords(result, "no space is left on its disk", "Free some space");
      expect(ground.proxy.requests.length).toBeLessThan(FILES);
      ground.proxy.fault = () => undefined;
      disk.free();
      await expectAgreement(ground);
      expectCreatedOnce(ground);
      await ground.end();
    },
  );

  it("a full disk of the state folder ends a daemon that watched, and what changed meanwhile is sent later", async () => {
    const ground = await openFilled(join(disk.path, "state"));
    const running = ground.start();
    await until("agreement", async () => (await ground.disagreements()).length === 0);
    disk.fill();
    const before = ground.proxy.requests.length;
    for (let index = 0; index < 200; index += 1) ground.write(`late-${index}.txt`, `late text ${index}`);
    const result = await ended(running);
    expect(result, `it said: ${result.stderr}`).toMatchObject({ code: 74 });
    expectWords(result, "no space is left on its disk", "Free some space");
    expect(ground.proxy.requests.length - before).toBeLessThan(200);
    disk.free();
    await expectAgreement(ground);
    expectCreatedOnce(ground);
    await ground.end();
  });

  it.each<[string, (full: SmallDisk) => void, string]>([
    ["space", (full) => full.fill(), "no space is left on its disk"],
    ["inodes", (full) => full.fillInodes(), "its disk takes no more files (no inodes are left)"],
  ])("reports before anything is sent that no %s is left at the start", async (_, take, words) => {
    const ground = await openFilled(join(disk.path, "state"));
    // A state folder that is new, and one that was there before.
    take(disk);
    const fresh = await ground.command("sync");
    expect(fresh, `it said: ${fresh.stderr}`).toMatchObject({ code: 74 });
    expect(ground.proxy.requests).toEqual([]);
    disk.free();
    await expectAgreement(ground);
    take(disk);
    ground.write("late.txt", "a late text");
    const before = ground.proxy.requests.length;
    const again = await ground.command("sync");
    expect(again, `it said: ${again.stderr}`).toMatchObject({ code: 74 });
    expectWords(again, words, "start again: nothing is lost");
    expect(ground.proxy.writesSince(before)).toEqual([]);
    disk.free();
    await expectAgreement(ground);
    expectCreatedOnce(ground);
    await ground.end();
  });

  it("reports a read-only disk in one line, and sends nothing", async () => {
    const ground = await openFilled(join(disk.path, "state"));
    disk.setReadonly(true);
    const fresh = await ground.command("sync");
    expect(fresh, `it said: ${fresh.stderr}`).toMatchObject({ code: 2 });
    expect(fresh.stderr).toMatch(/^kbsync: cannot create the state folder .*read-only file system/);
    disk.setReadonly(false);
    await expectAgreement(ground);
    disk.setReadonly(true);
    ground.write("late.txt", "a late text");
    const before = ground.proxy.requests.length;
    for (const command of ["run", "sync"]) {
      const result = await ground.command(command);
      expect(result, `it said: ${result.stderr}`).toMatchObject({ code: 2 });
      expectWords(result, "the state folder cannot be used", "writable");
    }
    expect(ground.proxy.requests.length).toBe(before);
    disk.setReadonly(false);
    await expectAgreement(ground);
    await ground.end();
  });
});

describe.skipIf(!mayMount)(`the service's disk that is full${NEEDS_MOUNT}`, () => {
  let disk: SmallDisk;
  beforeEach(() => {
    disk = mountDisk({ sizeKib: 12_288 });
  });
  afterEach(() => disk.unmount());

  it("the daemon waits out a full disk of the service, and nothing is lost", async () => {
    const own = await startService(join(disk.path, "service"));
    const ground = await openGround({ service: own, ownerId: "full-store" });
    for (let index = 0; index < FILES; index += 1)
      ground.write(`file-${index}.txt`, `text ${index} `.repeat(2000));
    const running = ground.start();
    const { requests } = ground.proxy;
    await until("some of it to be sent", () => requests.length > 20);
    disk.fill();
    await until("the store to be full", () => requests.some(({ status }) => status === 503));
    // Those that were on their way come back with it; then the service has the minute that it asks for.
    const refused = requests.length;
    await sleep(3000);
    expect(requests.length).toBeLessThanOrEqual(refused + 16);
    expect(running.child.exitCode).toBe(null);
    expect(await stop(running)).toBe(0);
    disk.free();
    await expectAgreement(ground);
    await ground.end();
    await own.end();
  });
});

describe("a ledger that is taken away or damaged", () => {
  const ledgerOf = ({ stateDir }: Ground): string => join(stateDir, "ledger.db");

  it("a ledger that is taken away or damaged ends a running daemon before it sends anything more, and no file is sent twice after it", async () => {
    const ground = await openFilled();
    const running = ground.start();
    await until("agreement", async () => (await ground.disagreements()).length === 0);
    for (const end of ["", "-wal", "-shm"]) rmSync(`${ledgerOf(ground)}${end}`);
    const before = ground.proxy.requests.length;
    ground.write("late.txt", "a late text");
    const result = await ended(running);
    expect(result, `it said: ${result.stderr}`).toMatchObject({ code: 2 });
    expectWords(result, "was removed or replaced while kbsync was running", "`kbsync sync --recover ");
    expect(ground.proxy.writesSince(before)).toEqual([]);
    await expectAgreement(ground);
    expectCreatedOnce(ground);

    const bytes = readFileSync(ledgerOf(ground));
    writeFileSync(ledgerOf(ground), bytes.fill(0xa7, bytes.length / 4));
    const whole = ground.proxy.requests.length;
    expect(await ground.command("sync")).toMatchObject({ code: 2 });
    expect(ground.proxy.writesSince(whole)).toEqual([]);
    expect(await ground.command("sync", "--recover")).toMatchObject({ code: 0 });
    await expectAgreement(ground);
    // A bare service names its collection only in the answer to a create, without which a new ledger can list nothing.
    expect(ground.proxy.writesSince(whole).map(({ operation }) => operation)).toEqual(["create", "delete"]);
    await ground.end();
  });

  it.each<[string, (bytes: Buffer) => Buffer | string]>([
    ["random bytes", (bytes) => Buffer.alloc(bytes.length, 0x5b)],
    ["a text", () => "a text that somebody put here\n"],
    ["no byte", () => ""],
    ["half of it", (bytes) => bytes.subarray(0, bytes.length / 2)],
    ["rubbish in the middle", (bytes) => bytes.fill(0xa7, bytes.length / 4, (3 * bytes.length) / 4)],
  ])("a ledger stays, and nothing is sent, when it holds %s", async (_, damage) => {
    const ground = await openFilled();
    await expectAgreement(ground);
    const damaged = Buffer.from(damage(readFileSync(ledgerOf(ground))));
    writeFileSync(ledgerOf(ground), damaged);
    ground.write("late.txt", "a late text");
    const before = ground.proxy.requests.length;
    for (const command of ["run", "sync"]) {
      const result = await ground.command(command);
      expect(result, `it said: ${result.stderr}`).toMatchObject({ code: 2 });
      expectWords(result, `the ledger ${ledgerOf(ground)} is damaged`, "`kbsync sync --recover ");
    }
    expect(readFileSync(ledgerOf(ground)).equals(damaged)).toBe(true);
    expect(ground.proxy.writesSince(before)).toEqual([]);

    const recovered = await ground.command("sync", "--recover");
    expect(recovered, `it said: ${recovered.stderr}`).toMatchObject({ code: 0 });
    const files = readdirSync(ground.stateDir).map((name) => join(ground.stateDir, name));
    expect(files.filter((file) => statSync(file).isFile() && readFileSync(file).equals(damaged))).not.toEqual(
      [],
    );
    await expectAgreement(ground);
    expectCreatedOnce(ground);
    await ground.end();
  });
});
