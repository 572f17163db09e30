import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { codeOf, type KbsyncError } from "../../../src/lib/failure.ts";
import type { DaemonOptions } from "../../../src/sync/daemon.ts";
import { changesOf } from "../../../src/sync/daemon/notices.ts";
import { openWorld, until, type World } from "./harness.ts";

describe("blocker changes", () => {
  const held = { kind: "held", reason: "60 deletes at once", remedy: "approve" } as const;
  it("reports a blocker once, and not again when only numbers change", () => {
    const first = changesOf([held], new Map());
    expect(first.started).toEqual([held]);
    const second = changesOf([{ ...held, reason: "61 deletes at once" }], first.reported);
    expect(second).toMatchObject({ started: [], ended: [] });
    expect(changesOf([{ ...held, reason: "the folder was emptied" }], second.reported).started).toHaveLength(
      1,
    );
    expect(changesOf([], second.reported)).toMatchObject({ started: [], ended: ["held"] });
  });
});

describe("the log of a running daemon", () => {
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
  const run = async (more: Partial<DaemonOptions> = {}) => {
    const { url, key } = world.service;
    const daemon = world.daemon({
      ...more,
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

  it.each([
    ["missing", {}, "the folder is missing or is not a folder", /^mount it or put it back/],
    [
      "not shown by its unit",
      { unit: "kbsync@docs.service" },
      "the folder is missing, or kbsync@docs.service does not show it",
      /`systemctl restart kbsync@docs\.service`/,
    ],
  ])("warns of a folder that is %s, with the remedy", async (_, more, reason, hint) => {
    world.write("a.txt", "text");
    await world.sync();
    rmSync(world.root, { recursive: true });
    await run({ sources: [{ ...world.source(), ...more }] });
    await until(() => warned("source_halted").length > 0);
    expect(warned("source_halted")[0]?.message).toContain(reason);
    expect(warned("source_halted")[0]?.hint).toMatch(hint);
  });

  it("warns of held deletes, and reports when they are no longer held", async () => {
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
    expect(notices).toEqual([`${world.root}: no deletes are held now`]);
    expect(warned("deletes_held")).toHaveLength(1);
  });

  it("warns once of a folder that disappears, and reports its return", async () => {
    writeAll();
    const daemon = await run();
    renameSync(world.root, `${world.root}-away`);
    await daemon.retry();
    await until(() => warned("source_halted").length > 0);
    await daemon.retry();
    await daemon.whenIdle();
    renameSync(`${world.root}-away`, world.root);
    await daemon.retry();
    await until(() => notices.length > 0);
    expect(warned("source_halted")).toMatchObject([
      { hint: expect.stringContaining("put it back") as string },
    ]);
    expect(notices).toEqual([
      `${world.root}: the folder is back, or its replacement was approved: the source is synced again`,
    ]);
  });

  it("warns of a blocker of an earlier process after its own first pass", async () => {
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

  it("warns of a service that lost most of its resources", async () => {
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
    expect(notices[0]).toContain("the source is synced again");
  });
});
