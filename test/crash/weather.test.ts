import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildPdf, textPage } from "../kb/ingest/extract/pdf-fixture.ts";
import { CONCURRENCY_HOSTED } from "../../src/config/schema/sync.ts";
import { type Started, stop, until } from "../e2e/program.ts";
import { openChance, wholeNumberOf } from "./chance.ts";
import { fill } from "./edits.ts";
import type { Fault } from "./fault-proxy.ts";
import { endGrounds, type Ground, openGround } from "./ground.ts";
import { type CrashService, startService } from "./service.ts";
import { tooMany } from "./weather.ts";

/** How long the service fails; the promise is for any time, and a check has little of it. */
const STORM_MS = wholeNumberOf("KBSYNC_CRASH_STORM_MS", 8000);
/** The daemon checks again within half a minute after so short a storm. */
const AGREE_MS = 60_000;
const FILES = 100;

let service: CrashService;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await endGrounds();
  await service.end();
});

async function expectAgreement(ground: Ground, running: Started): Promise<void> {
  let wrong: string[] = [];
  const agrees = async (): Promise<boolean> => {
    wrong = await ground.disagreements();
    return wrong.length === 0;
  };
  await until("agreement", agrees, AGREE_MS).catch((error: unknown) => {
    const lines = [...wrong, ground.historyOf(wrong), running.output.stderr];
    throw new Error(lines.join("\n"), { cause: error });
  });
}

describe("a service that asks for time", () => {
  it.each<[string, () => Record<string, string>]>([
    ["in seconds", () => ({ "retry-after": "3" })],
    ["by a date", () => ({ "retry-after": new Date(Date.now() + 4000).toUTCString() })],
  ])(
    "a service that asks for time with %s gets it from all requests, and nothing is lost",
    async (_, headers) => {
      const ground = await openGround({ service, ownerId: `wait-${headers()["retry-after"]}` });
      fill(ground, openChance(2), 60);
      let askedMs = 0;
      const leftMs: number[] = [];
      ground.proxy.fault = ({ operation, atMs, number }) => {
        if (askedMs > 0) leftMs.push(atMs - askedMs);
        if (operation !== "create" || askedMs > 0 || number < 20) return undefined;
        askedMs = atMs;
        return tooMany(headers());
      };
      const running = ground.start();
      await expectAgreement(ground, running);
      expect(await stop(running)).toBe(0);
      // What was on its way when the service asked came after it, on a busy machine a second later; all else waited. A date has
      // whole seconds.
      expect(leftMs.filter((ms) => ms < 2900).length).toBeLessThanOrEqual(CONCURRENCY_HOSTED);
      expect(leftMs.filter((ms) => ms > 2000 && ms < 2900)).toEqual([]);
      expect(leftMs.filter((ms) => ms >= 2900).length).toBeGreaterThan(10);
      const titles = ground.proxy.requests.filter(
        ({ operation, fault }) => operation === "create" && fault === undefined,
      );
      expect(new Set(titles.map(({ title }) => title)).size).toBe(titles.length);
      await ground.end();
    },
  );
});

describe("a document that the service cannot index", () => {
  it.each<[string, Fault]>([
    ["fails", { kind: "answer", status: 500, body: '{"success":false,"message":"indexing failed"}' }],
    ["never answers", { kind: "hang" }],
  ])("parks a file with the reason when it %s, and does not send it again and again", async (how, fault) => {
    const ground = await openGround({
      service,
      ownerId: `poison-${how}`,
      hangMs: 1000,
    });
    fill(ground, openChance(3), 30);
    ground.write("poison.pdf", buildPdf([textPage(["what nobody can index"])]));
    ground.proxy.fault = ({ operation, title }) =>
      operation === "create" && title === "poison.pdf" ? fault : undefined;
    const running = ground.start();
    await until("the file to be parked, and nothing else", async () => {
      const { stdout } = await ground.command("status");
      return stdout.includes("30 of 31 files searchable, 1 waiting\n") && stdout.includes("poison.pdf: ");
    });
    const before = ground.proxy.requests.length;
    const poison = ground.proxy.requests.filter(({ title }) => title === "poison.pdf");
    expect(poison.length).toBeLessThanOrEqual(4);
    const uploads = ground.proxy.requests.filter(({ operation }) => operation === "upload").length;
    await sleep(5000);
    expect(ground.proxy.writesSince(before)).toEqual([]);
    expect(ground.proxy.requests.filter(({ operation }) => operation === "upload")).toHaveLength(uploads);
    expect((await ground.disagreements()).map((line) => line.split(" [")[0])).toEqual(["missing poison.pdf"]);

    // The next pass tries it, and by now the service can.
    expect(await stop(running)).toBe(0);
    ground.proxy.fault = () => undefined;
    ground.write("poison.pdf", buildPdf([textPage(["what can be indexed"])]));
    expect(await ground.command("sync")).toMatchObject({ code: 0 });
    expect(await ground.disagreements()).toEqual([]);
    await ground.end();
  });
});

describe("a create that some gateway sends twice to a service that knows no request keys", () => {
  it("leaves an extra resource without a trace; verify finds it and repairs", async () => {
    const ground = await openGround({ service, ownerId: "twice", bare: true });
    fill(ground, openChance(8), 20);
    ground.proxy.fault = ({ operation, number }) =>
      operation === "create" && number % 5 === 0 ? { kind: "duplicate" } : undefined;
    expect(await ground.command("sync")).toMatchObject({ code: 0 });
    ground.proxy.fault = () => undefined;
    expect((await ground.disagreements()).filter((line) => line.startsWith("too much"))).not.toEqual([]);
    const repaired = await ground.command("verify", "--repair");
    expect(repaired, `it said: ${repaired.stdout}${repaired.stderr}`).toMatchObject({ code: 0 });
    expect(await ground.disagreements()).toEqual([]);
    await ground.end();
  });
});

// These two wait most of the time.
describe.concurrent("a service that fails for a while", () => {
  it("a failing service is not pressed, and the backlog then drains once, without a duplicate", async () => {
    const ground = await openGround({
      service,
      ownerId: "storm",
      bare: true,
      hangMs: 5000,
    });
    const chance = openChance(1);
    fill(ground, chance, FILES);
    const faults: readonly Fault[] = [
      { kind: "answer", status: 500, body: "<html>Internal Server Error</html>" },
      { kind: "page", status: 502 },
      { kind: "drop" },
      { kind: "swallow" },
      { kind: "reset-midway" },
      { kind: "hang" },
    ];
    ground.proxy.fault = () => chance.pick(faults);
    const running = ground.start();
    await until("a first request", () => ground.proxy.requests.length > 0);
    await sleep(STORM_MS);
    const met = ground.proxy.requests.length;
    // The gate lets one request through at a time, each later than the one before; those of the start left together.
    expect(met).toBeLessThan(16 + STORM_MS / 250);
    ground.proxy.fault = () => undefined;
    await expectAgreement(ground, running);
    expect(await stop(running)).toBe(0);
    const before = ground.proxy.requests.length;
    expect(await ground.command("sync")).toMatchObject({ code: 0 });
    expect(ground.proxy.writesSince(before)).toEqual([]);
    // Each file went over once, but for those whose answers were lost in the storm.
    const creates = ground.proxy.requests.slice(met).filter(({ operation }) => operation === "create");
    expect(creates.length).toBeLessThanOrEqual(FILES);
    await ground.end();
  });
});

describe.concurrent("a service that is down", () => {
  it("a service that is down is asked a few times in 20 s, while files go on changing, and all is there when it is back", async () => {
    const ground = await openGround({ service, ownerId: "down" });
    fill(ground, openChance(4), 100);
    // As a dead address answers: the connection is taken away before anything is said.
    ground.proxy.fault = () => ({ kind: "drop" });
    const running = ground.start();
    await until("a first request", () => ground.proxy.requests.length > 0);
    for (let second = 0; second < 20; second += 1) {
      ground.write("changing.txt", `text of second ${second}`);
      await sleep(1000);
    }
    // 16 at the start, then one after 250 ms, 500 ms, 1 s, … each with a chance of half the time.
    expect(ground.proxy.requests.length).toBeLessThanOrEqual(16 + 9);
    expect(await stop(running)).toBe(0);
    ground.proxy.fault = () => undefined;
    const again = ground.start();
    await expectAgreement(ground, again);
    expect(await stop(again)).toBe(0);
    await ground.end();
  });
});
