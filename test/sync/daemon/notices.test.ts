import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { codeOf, type KbsyncError } from "../../../src/lib/failure.ts";
import { newsOf } from "../../../src/sync/daemon/notices.ts";
import { missingReason, standstillsOf } from "../../../src/sync/ledger/standstill.ts";
import { openWorld, until, type World } from "./harness.ts";

describe("what is news", () => {
  const held = { kind: "held", reason: "60 deletes at once", remedy: "approve" } as const;
  it("is told once, and not again where only numbers changed", () => {
    const first = newsOf([held], new Map());
    expect(first.begun).toEqual([held]);
    const second = newsOf([{ ...held, reason: "61 deletes at once" }], first.told);
    expect(second).toMatchObject({ begun: [], over: [] });
    expect(newsOf([{ ...held, reason: "the folder was emptied" }], second.told).begun).toHaveLength(1);
    expect(newsOf([], second.told)).toMatchObject({ begun: [], over: ["held"] });
  });
});

describe("what waits for a person has its remedy", () => {
  const none = { lost: null, halted: null, haltRoot: undefined, held: 0, holdReason: null };
  it.each([
    ["held deletes", { held: 2, holdReason: "2 of 3" }, "kbsync approve"],
    ["a missing folder", { halted: "the folder is missing or is no folder" }, "mount it or put it back"],
    [
      "a folder that a unit does not show",
      { halted: missingReason("kbsync@srv-x\\x20y.service") },
      "`systemctl restart 'kbsync@srv-x\\x20y.service'`",
    ],
    ["an unreadable folder", { halted: "the folder cannot be read: EACCES" }, "owner and mode"],
    ["another folder", { halted: "replaced", haltRoot: { dev: 1, ino: 2 } }, "kbsync approve"],
    ["a service that lost most", { lost: "the service has lost 9 of 9" }, "kbsync approve"],
  ])("%s", (_name, more, remedy) => {
    expect(standstillsOf({ ...none, ...more })[0]?.remedy).toContain(remedy);
  });

  it("a source that goes on waits for nobody", () => {
    expect(standstillsOf(none)).toEqual([]);
  });
});

describe("a running daemon tells in its log", () => {
  let world: World;
  let stopping: AbortController;
  let running: Promise<void>[];
  let warnings: Error[];
  let notices: string[];
  beforeEach(async () => {
    world = await openWorld();
    stopping = new AbortController();
    running = [];
    warnings = [];
    notices = [];
  });
  afterEach(async () => {
    await stop();
    await world.end();
  });
  const run = async () => {
    const { url, key } = world.service;
    const daemon = world.daemon({
      service: { apiUrl: url, dbUrl: url, pauthkey: key, listLagMs: 0 },
      onWarning: (error) => warnings.push(error),
      onNotice: (words) => notices.push(words),
    });
    running.push(daemon.run({ signal: stopping.signal }));
    await daemon.whenIdle();
    return daemon;
  };
  const stop = async () => {
    stopping.abort();
    await Promise.all(running);
    stopping = new AbortController();
    running = [];
  };
  const warned = (code: string): KbsyncError[] =>
    warnings.filter((error): error is KbsyncError => codeOf(error) === code);
  const writeAll = () => {
    for (let index = 0; index < 6; index += 1) world.write(`${index}.txt`, `text ${index}`);
  };

  it("of deletes that come to be held, and that they no longer are", async () => {
    writeAll();
    const daemon = await run();
    for (let index = 0; index < 6; index += 1) rmSync(join(world.root, `${index}.txt`));
    await until(() => warned("deletes_held").length > 0);
    expect(warned("deletes_held")).toMatchObject([
      {
        message: `${world.root}: 6 deletes are held: the folder was emptied`,
        hint: expect.stringContaining("kbsync approve") as string,
      },
    ]);
    await daemon.approve();
    await until(() => notices.length > 0);
    expect(notices).toEqual([`${world.root}: no deletes are held any more`]);
    expect(warned("deletes_held")).toHaveLength(1);
  });

  it("of a folder that goes away, once, and that it is back", async () => {
    writeAll();
    const daemon = await run();
    renameSync(world.root, `${world.root}-away`);
    daemon.rescan();
    await until(() => warned("source_halted").length > 0);
    daemon.rescan();
    await daemon.whenIdle();
    renameSync(`${world.root}-away`, world.root);
    daemon.rescan();
    await until(() => notices.length > 0);
    expect(warned("source_halted")).toMatchObject([
      { hint: expect.stringContaining("put it back") as string },
    ]);
    expect(notices).toEqual([
      `${world.root}: the folder is there again, or a person agreed: the source goes on`,
    ]);
  });

  it("of one that another process left so, when it has looked itself", async () => {
    writeAll();
    await world.sync();
    renameSync(world.root, `${world.root}-away`);
    await world.sync();
    await run();
    await until(() => warned("source_halted").length === 1);
    await stop();
    warnings = [];
    renameSync(`${world.root}-away`, world.root);
    await run();
    for (let index = 0; index < 6; index += 1) rmSync(join(world.root, `${index}.txt`));
    await until(() => warned("deletes_held").length === 1);
    expect(warned("source_halted")).toEqual([]);
  });

  it("of a service that lost most of what it had", async () => {
    writeAll();
    const daemon = await run();
    for (const resource of world.service.live()) resource.isDeleted = true;
    await daemon.audit({ repair: true });
    await until(() => warned("service_lost").length > 0);
    expect(warned("service_lost")).toMatchObject([
      { hint: expect.stringContaining("kbsync approve") as string },
    ]);
    await daemon.approve();
    await until(() => notices.length > 0);
    expect(notices[0]).toContain("sending goes on");
  });
});
