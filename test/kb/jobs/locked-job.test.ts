import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { openJobRunner } from "../../../src/kb/jobs/job-runner.ts";
import type { QueuedJob } from "../../../src/kb/queue/queue.ts";
import type { KnowledgeBase } from "../../../src/kb/resources/knowledge-base.ts";

it("a document's due job that another transaction has locked is tried again after a pause, not at once", async () => {
  const job: QueuedJob = {
    number: 1,
    accountId: "one",
    ownerId: "owner",
    line: "one/document",
    dueMs: 0,
    bodyBytes: 1,
    crashes: 0,
  };
  const startMs = performance.now();
  const triedMs: number[] = [];
  // The runner uses nothing else for a job that it does not get.
  const kb = {
    steadyMs: () => performance.now(),
    queue: {
      after: async ({ number }: { number: number }) => (number === 0 ? [job] : []),
      first: async () => job,
    },
    leases: { take: async () => void triedMs.push(performance.now() - startMs) },
    turns: { run: async (_line: string, work: () => Promise<unknown>) => work() },
    jobWaits: { notify: () => undefined },
  } as unknown as KnowledgeBase;
  const runner = openJobRunner(kb, (error) => {
    throw error;
  });
  runner.wake();
  await vi.waitFor(() => expect(triedMs).toHaveLength(1));
  await sleep(300);
  expect(triedMs).toHaveLength(1);
  await vi.waitFor(() => expect(triedMs).toHaveLength(2), { timeout: 10_000 });
  await runner.close();
});
