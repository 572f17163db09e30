import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import { openModelEndpoint } from "../../fakes/model-endpoint.ts";
import { openReceiver } from "../webhooks/receiver.ts";
import { ask, openAsking } from "./asking.ts";

/** Generous, for a busy machine. */
const WAIT = { timeout: 60_000, interval: 20 };

it("after a crash, interrupted questions restart one at a time, and a new one runs at the same time", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "kbsync-ends-"));
  const endpoint = await openModelEndpoint();
  const receiver = await openReceiver();
  const goOn = Promise.withResolvers<void>();
  const nowMs = Date.now();
  endpoint.behave = async () => {
    await goOn.promise;
    return { kind: "answer", text: "Well." };
  };
  const asked = (): string[] =>
    endpoint.requests.map(({ messages }) => JSON.stringify(messages.at(-1)?.content));
  const send = async (service: Awaited<ReturnType<typeof openAsking>>, user: string): Promise<void> => {
    const webhook = { url: `${receiver.url}/${user}` };
    expect((await ask(service, { user, thread_id: user, webhook })).status).toBe(202);
  };
  try {
    const first = await openAsking(endpoint, {}, { stateDir });
    for (const user of ["deadly", "one", "two"]) await send(first, user);
    await vi.waitFor(() => expect(asked()).toHaveLength(3), WAIT);
    await first.close();

    const store = await openSqliteStore({ path: join(stateDir, "kb.sqlite") });
    const jobs = (await store.queue.due({ queue: "chat", nowMs, perLine: 1 })).toSorted(
      (a, b) => a.number - b.number,
    );
    expect(jobs.map(({ crashes }) => crashes)).toEqual([0, 0, 0]);
    // The state after a crash with all of them, and three more crashes with only the first.
    const crash = async (numbers: readonly number[], worker: string): Promise<void> => {
      for (const number of numbers) await store.queue.lease({ number, worker, nowMs });
      await store.queue.resume("next", nowMs, true);
    };
    await crash(
      jobs.map(({ number }) => number),
      "all",
    );
    for (let ends = 0; ends < 3; ends++) await crash([jobs[0]?.number ?? 0], `alone ${ends}`);
    await store.close();

    const running = await openAsking(endpoint, {}, { stateDir });
    try {
      await vi.waitFor(() => expect(receiver.messages).toHaveLength(1), WAIT);
      expect(receiver.messages[0]).toMatchObject({ path: "/deadly", json: { success: false } });
      await send(running, "new");
      await vi.waitFor(() => expect(asked().slice(3).toSorted()).toEqual(['"new"', '"one"']), WAIT);
      goOn.resolve();
      await vi.waitFor(() => expect(receiver.messages).toHaveLength(4), WAIT);
      expect(receiver.messages.slice(1).every(({ json }) => json.success === true)).toBe(true);
      expect(asked().at(-1)).toBe('"two"');
    } finally {
      await running.close();
    }
  } finally {
    await endpoint.close();
    await receiver.close();
    await rm(stateDir, { recursive: true });
  }
});
