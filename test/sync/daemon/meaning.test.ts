import { afterEach, beforeEach, expect, it } from "vitest";
import { until, openWorld, type World } from "./harness.ts";

let world: World;
/** What the service says that waits; undefined: it does not say. */
let pending: { read: number; embed: number; more?: true } | undefined;
let fallback: string | undefined;
beforeEach(async () => {
  world = await openWorld({ collections: true });
  [pending, fallback] = [{ read: 0, embed: 0 }, undefined];
  world.service.fault = ({ operation }) =>
    operation === "search"
      ? {
          kind: "answer",
          status: 200,
          body: JSON.stringify({ success: true, text: "", results: [], pending, fallback }),
        }
      : undefined;
});
afterEach(() => world.end());

const signal = AbortSignal.timeout(20_000);

it("waits for vectors only when asked to, and until the service has them", async () => {
  world.write("a.md", "text");
  pending = { read: 0, embed: 3 };
  const stopping = new AbortController();
  const daemon = world.daemon({ sources: [world.source({ collection: "moderate" })] });
  const running = daemon.run({ signal: stopping.signal });
  await daemon.whenIdle();
  expect(await daemon.wait({ signal })).toMatchObject({ agreed: true });
  const counts: number[] = [];
  let isOver = false;
  const onEmbedding = (documents: number): void => void counts.push(documents);
  const wait = daemon.wait({ signal, embedded: true, onEmbedding }).finally(() => (isOver = true));
  await until(() => counts.includes(3));
  expect(isOver).toBe(false);
  pending = { read: 0, embed: 0 };
  expect(await wait).toMatchObject({ agreed: true });
  expect(await daemon.pending(signal)).toEqual({ read: 0, embed: 0, isOff: false });
  pending = { read: 0, embed: 9, more: true };
  await expect
    .poll(() => daemon.pending(signal), { timeout: 10_000 })
    .toMatchObject({ embed: 9, more: true });
  pending = undefined;
  expect(await daemon.wait({ signal, embedded: true })).toMatchObject({
    agreed: false,
    reasons: [{ code: "no_meaning", message: "the service does not say what is found by meaning" }],
  });
  stopping.abort();
  await running;
});

it("waits for vectors although a file failed", async () => {
  world.write("a.md", "text");
  world.write("bad.png", "no picture");
  pending = { read: 0, embed: 3 };
  const stopping = new AbortController();
  const daemon = world.daemon({ sources: [world.source({ collection: "moderate" })] });
  const running = daemon.run({ signal: stopping.signal });
  await daemon.whenIdle();
  const onEmbedding = (): void => void (pending = { read: 0, embed: 0 });
  const { reasons } = await daemon.wait({ signal, embedded: true, onEmbedding });
  expect([reasons.map(({ path }) => path), pending.embed]).toEqual([["bad.png"], 0]);
  stopping.abort();
  await running;
});

it("explains whether a file is found by meaning", async () => {
  world.write("a.md", "text");
  const daemon = world.daemon({ sources: [world.source({ collection: "moderate" })] });
  await daemon.syncOnce();
  const stateOf = async () => (await daemon.why(`${world.root}/a.md`, signal)).version;
  expect(await stateOf()).toMatchObject({ state: "searchable", code: "by_meaning" });
  pending = { read: 0, embed: 1 };
  expect(await stateOf()).toMatchObject({ state: "searchable", code: "by_words" });
  [pending, fallback] = [{ read: 0, embed: 0 }, "words"];
  expect(await stateOf()).toMatchObject({ state: "searchable", code: "by_words" });
  await daemon.close();
});
