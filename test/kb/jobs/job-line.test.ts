import { expect, it } from "vitest";
import { openJobLine } from "../../../src/kb/jobs/job-line.ts";
import type { QueuedJob } from "../../../src/kb/queue/queue.ts";

let numbers = 0;
const job = (accountId: string, more: Partial<QueuedJob> = {}): QueuedJob => {
  numbers += 1;
  return {
    number: numbers,
    accountId,
    ownerId: "owner",
    line: `r${numbers}`,
    dueMs: 0,
    bodyBytes: 1,
    crashes: 0,
    ...more,
  };
};
const any = (): boolean => true;

/** Takes everything, each job for so long; the order by account and owner. */
function drain(line: ReturnType<typeof openJobLine>, costMs: (taken: QueuedJob) => number): string[] {
  const order: string[] = [];
  line.ripen(0);
  for (let next = line.next("other", any); next !== undefined; next = line.next("other", any)) {
    line.take("other", any);
    order.push(`${next.accountId}/${next.ownerId}`);
    line.end(next, costMs(next), undefined);
  }
  return order;
}

it("an account that came first with many does not hold up the next one", () => {
  const line = openJobLine();
  for (let at = 0; at < 5; at += 1) line.add(job("busy"));
  for (let at = 0; at < 2; at += 1) line.add(job("quiet"));
  const order = drain(line, () => 10).map((name) => name.split("/")[0]);
  expect(order.slice(0, 4).filter((name) => name === "quiet")).toHaveLength(2);
});

it("what counts is the time that documents took, not their number", () => {
  const line = openJobLine();
  for (let at = 0; at < 4; at += 1) line.add(job("slow"));
  for (let at = 0; at < 8; at += 1) line.add(job("quick"));
  const order = drain(line, ({ accountId }) => (accountId === "slow" ? 100 : 1));
  expect(order.slice(0, 9).filter((name) => name === "quick/owner")).toHaveLength(8);
});

it("owners of an account take turns too", () => {
  const line = openJobLine();
  for (let at = 0; at < 5; at += 1) line.add(job("a", { ownerId: "busy" }));
  line.add(job("a", { ownerId: "quiet" }));
  expect(drain(line, () => 10).indexOf("a/quiet")).toBeLessThan(2);
});

it("a resource has one job at a time, and what was read of it meanwhile shows", () => {
  const line = openJobLine();
  const first = job("a", { line: "same" });
  line.add(first);
  line.ripen(0);
  expect(line.next("other", any)).toEqual(first);
  line.take("other", any);
  expect(line.hasMore(first)).toBe(false);
  const second = job("a", { line: "same" });
  line.add(second);
  line.ripen(0);
  expect([line.next("other", any), line.hasMore(first)]).toEqual([undefined, true]);
  line.end(first, 1, second);
  line.ripen(0);
  expect(line.next("other", any)).toEqual(second);
});

it("a job that is put off is due at its time, and those of a crash stand apart", () => {
  const line = openJobLine();
  const later = job("a", { dueMs: 500 });
  const suspect = job("a", { crashes: 1 });
  line.add(later);
  line.add(suspect);
  line.ripen(0);
  expect([line.next("other", any), line.next("suspect", any), line.dueMs()]).toEqual([
    undefined,
    suspect,
    500,
  ]);
  line.ripen(500);
  expect([line.next("other", any), line.dueMs()]).toEqual([later, undefined]);
});

it("parked jobs stand in parts of their own, shared by account, and charge the part that they came from", () => {
  const line = openJobLine();
  const jobs = [job("busy"), job("busy"), job("quiet")];
  for (const each of jobs) line.add(each);
  line.ripen(0);
  for (let next = line.next("other", any); next !== undefined; next = line.next("other", any)) {
    line.take("other", any);
    line.park(next, 1, next.accountId === "quiet" ? "text" : "file");
  }
  expect([line.next("text", any), line.next("suspect", any)]).toEqual([jobs[2], undefined]);
  expect(line.next("file", any)).toEqual(jobs[0]);
  line.take("file", any);
  // A resource has one job at a time, parked or not.
  line.add(job("busy", { line: jobs[1]?.line ?? "" }));
  line.ripen(0);
  expect(line.next("other", any)).toBeUndefined();
  line.end(jobs[0] ?? job("busy"), 1, undefined);
  expect(line.next("file", any)).toEqual(jobs[1]);
});
