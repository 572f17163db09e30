import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Started, stop, until } from "../e2e/program.ts";
import { openChance } from "./chance.ts";
import { fill } from "./edits.ts";
import { endGrounds, type Ground, openGround } from "./ground.ts";
import { type CrashService, startService } from "./service.ts";

const FILES = 150;
/** A service manager and a person both wait that long before they do worse. */
const STOP_MS = 10_000;

let service: CrashService;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await endGrounds();
  await service.end();
});

async function openSyncing(ownerId: string, command: "run" | "sync"): Promise<[Ground, Started]> {
  const ground = await openGround({ service, ownerId });
  fill(ground, openChance(5), FILES);
  ground.proxy.fault = () => ({ kind: "delay", ms: 20 });
  const running = ground.start(command);
  await until("some of it to be sent", () => ground.proxy.requests.length > 60);
  return [ground, running];
}

async function expectContinued(ground: Ground): Promise<void> {
  ground.proxy.fault = () => undefined;
  const sent = new Set(
    ground.proxy.requests.filter(({ operation }) => operation === "create").map(({ title }) => title),
  );
  const before = ground.proxy.requests.length;
  expect(await ground.command("sync")).toMatchObject({ code: 0 });
  expect(await ground.disagreements()).toEqual([]);
  const again = ground.proxy.writesSince(before).filter(({ title }) => sent.has(title));
  expect(again, "what had been acknowledged is not sent again").toEqual([]);
}

describe("a stop in the middle of a first sync", () => {
  it.each([
    ["run", "SIGTERM", 0],
    ["sync", "SIGINT", 130],
  ] as const)(
    "a stop in the middle of a first sync ends %s by %s soon with exit code %i, and the next start goes on",
    async (command, signal, code) => {
      const [ground, running] = await openSyncing(`stop-${command}-${signal}`, command);
      const startMs = Date.now();
      expect(await stop(running, signal), `it said: ${running.output.stderr}`).toBe(code);
      expect(Date.now() - startMs).toBeLessThan(STOP_MS);
      expect(running.output.stderr).not.toMatch(/defect|Error/);
      await expectContinued(ground);
      await ground.end();
    },
  );

  it.concurrent.each(["run", "sync"] as const)(
    "a stop in the middle of a first sync ends %s within 10 s though the service does not answer",
    async (command) => {
      const ground = await openGround({
        service,
        ownerId: `stop-hung-${command}`,
      });
      fill(ground, openChance(6), 30);
      ground.proxy.fault = ({ operation }) => (operation === "create" ? { kind: "hang" } : undefined);
      const running = ground.start(command);
      await until("a create under way", () =>
        ground.proxy.requests.some(({ operation }) => operation === "create"),
      );
      const startMs = Date.now();
      expect(await stop(running)).toBe(command === "run" ? 0 : 130);
      expect(Date.now() - startMs).toBeLessThan(STOP_MS);
      ground.proxy.fault = () => undefined;
      expect(await ground.command("sync")).toMatchObject({ code: 0 });
      expect(await ground.disagreements()).toEqual([]);
      await ground.end();
    },
  );

  it("a stop in the middle of a first sync ends at once at a second signal, and nothing is lost by that either", async () => {
    const ground = await openGround({ service, ownerId: "stop-twice" });
    fill(ground, openChance(7), 60);
    ground.proxy.fault = ({ number }) => (number > 30 ? { kind: "hang" } : undefined);
    const running = ground.start();
    await until("requests under way", () => ground.proxy.requests.length > 35);
    const closed = once(running.child, "close") as Promise<[number | null]>;
    running.child.kill("SIGINT");
    // The first one is being handled when it stops taking new work; its state shows only that it runs.
    await until("the first signal to be seen", () => running.child.exitCode === null);
    const startMs = Date.now();
    const again = setInterval(() => running.child.kill("SIGINT"), 50);
    expect((await closed)[0]).toBe(130);
    clearInterval(again);
    // After one signal alone it waits this long for requests that nobody answers.
    expect(Date.now() - startMs).toBeLessThan(8000);
    ground.proxy.fault = () => undefined;
    expect(await ground.command("sync")).toMatchObject({ code: 0 });
    expect(await ground.disagreements()).toEqual([]);
    await ground.end();
  });
});
