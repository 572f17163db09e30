import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { openWaits } from "../../../src/kb/queue/waits.ts";

it("ends a wait when its own job ends, and not with another's", async () => {
  const completions = openWaits();
  const wait = completions.listen("a/1", 60_000);
  const first = async (): Promise<string> =>
    await Promise.race([wait.ended.then(() => "ended"), sleep(1, "waits")]);
  completions.notify("a/2");
  expect(await first()).toBe("waits");
  completions.notify("a/1");
  expect(await first()).toBe("ended");
  wait.stop();
});

it("ends a wait after its time", async () => {
  const wait = openWaits().listen("a/1", 1);
  await expect(wait.ended).resolves.toBeUndefined();
  wait.stop();
});

it("ends every wait at a release, and later ones at once", async () => {
  const completions = openWaits();
  const before = completions.listen("a/1", 60_000);
  completions.release();
  const after = completions.listen("a/2", 60_000);
  await expect(Promise.all([before.ended, after.ended])).resolves.toHaveLength(2);
  before.stop();
  after.stop();
});

it("ends a wait whose time is over at once, without a warning of Node", async () => {
  const stop = new AbortController();
  const warned = once(process, "warning", { signal: stop.signal }).then(
    ([warning]) => warning as Error,
    () => undefined,
  );
  const wait = openWaits().listen("a/1", -12);
  await wait.ended;
  wait.stop();
  await sleep(10);
  stop.abort();
  expect(await warned).toBeUndefined();
});
