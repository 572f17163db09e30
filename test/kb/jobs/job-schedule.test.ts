import { expect, it } from "vitest";
import { openJobSchedule } from "../../../src/kb/jobs/job-schedule.ts";
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

/** Takes all jobs, each for the given time; returns their order by account and owner. */
function drain(schedule: ReturnType<typeof openJobSchedule>, costMs: (taken: QueuedJob) => number): string[] {
  const order: string[] = [];
  schedule.ripen(0);
  for (let next = schedule.next("other", any); next !== undefined; next = schedule.next("other", any)) {
    schedule.take("other", any);
    order.push(`${next.accountId}/${next.ownerId}`);
    schedule.end(next, costMs(next), undefined);
  }
  return order;
}

it("an account that queued many jobs first does not delay the next account", () => {
  const schedule = openJobSchedule();
  for (let at = 0; at < 5; at += 1) schedule.add(job("busy"));
  for (let at = 0; at < 2; at += 1) schedule.add(job("quiet"));
  const order = drain(schedule, () => 10).map((name) => name.split("/")[0]);
  expect(order.slice(0, 4).filter((name) => name === "quiet")).toHaveLength(2);
});

it("accounts take turns by the time that their documents took, not by their number", () => {
  const schedule = openJobSchedule();
  for (let at = 0; at < 4; at += 1) schedule.add(job("slow"));
  for (let at = 0; at < 8; at += 1) schedule.add(job("quick"));
  const order = drain(schedule, ({ accountId }) => (accountId === "slow" ? 100 : 1));
  expect(order.slice(0, 9).filter((name) => name === "quick/owner")).toHaveLength(8);
});

it("owners of an account take turns", () => {
  const schedule = openJobSchedule();
  for (let at = 0; at < 5; at += 1) schedule.add(job("a", { ownerId: "busy" }));
  schedule.add(job("a", { ownerId: "quiet" }));
  expect(drain(schedule, () => 10).indexOf("a/quiet")).toBeLessThan(2);
});

it("schedules one job of a resource at a time, and reports later ones", () => {
  const schedule = openJobSchedule();
  const first = job("a", { line: "same" });
  schedule.add(first);
  schedule.ripen(0);
  expect(schedule.next("other", any)).toEqual(first);
  schedule.take("other", any);
  expect(schedule.hasMore(first)).toBe(false);
  const second = job("a", { line: "same" });
  schedule.add(second);
  schedule.ripen(0);
  expect([schedule.next("other", any), schedule.hasMore(first)]).toEqual([undefined, true]);
  schedule.end(first, 1, second);
  schedule.ripen(0);
  expect([schedule.next("other", any), schedule.hasMore(second)]).toEqual([second, false]);
});

it("schedules a postponed job at its time, and suspects in a class of their own", () => {
  const schedule = openJobSchedule();
  const later = job("a", { dueMs: 500 });
  const suspect = job("a", { crashes: 1 });
  schedule.add(later);
  schedule.add(suspect);
  schedule.ripen(0);
  expect([schedule.next("other", any), schedule.next("suspect", any), schedule.dueMs()]).toEqual([
    undefined,
    suspect,
    500,
  ]);
  schedule.ripen(500);
  expect([schedule.next("other", any), schedule.dueMs()]).toEqual([later, undefined]);
});

it("schedules parked jobs in classes of their own, fair by account, and charges the class they came from", () => {
  const schedule = openJobSchedule();
  const jobs = [job("busy"), job("busy"), job("quiet")];
  for (const each of jobs) schedule.add(each);
  schedule.ripen(0);
  for (let next = schedule.next("other", any); next !== undefined; next = schedule.next("other", any)) {
    schedule.take("other", any);
    schedule.park(next, 1, next.accountId === "quiet" ? "text" : "file");
  }
  expect([schedule.next("text", any), schedule.next("suspect", any)]).toEqual([jobs[2], undefined]);
  expect(schedule.next("file", any)).toEqual(jobs[0]);
  schedule.take("file", any);
  // A resource has one job at a time, parked or not.
  schedule.add(job("busy", { line: jobs[1]?.line ?? "" }));
  schedule.ripen(0);
  expect(schedule.next("other", any)).toBeUndefined();
  schedule.end(jobs[0] ?? job("busy"), 1, undefined);
  expect(schedule.next("file", any)).toEqual(jobs[1]);
});
