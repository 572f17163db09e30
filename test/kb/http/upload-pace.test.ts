import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openUploadPace } from "../../../src/kb/http/upload-pace.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Lets one account upload so many files at once while that many of its documents wait. */
function upload(files: number, waiting: () => number): { readonly begun: () => number } {
  const pace = openUploadPace(async () => waiting());
  let begun = 0;
  for (let file = 0; file < files; file += 1) void pace.turn("a").then(() => (begun += 1));
  return { begun: () => begun };
}

it("lets uploads begin at once while few documents of the account wait", async () => {
  const { begun } = upload(500, () => 100);
  await vi.advanceTimersByTimeAsync(0);
  expect(begun()).toBe(500);
});

it("lets 20 begin, then 10 a second, while more wait", async () => {
  const { begun } = upload(500, () => 101);
  await vi.advanceTimersByTimeAsync(0);
  expect(begun()).toBe(20);
  await vi.advanceTimersByTimeAsync(3000);
  expect(begun()).toBe(50);
});

it("lets all begin once the documents are read", async () => {
  let waiting = 101;
  const { begun } = upload(500, () => waiting);
  await vi.advanceTimersByTimeAsync(1000);
  expect(begun()).toBe(30);
  waiting = 50;
  await vi.advanceTimersByTimeAsync(500);
  expect(begun()).toBe(500);
});

it("asks for the number of waiting documents a few times a second, however many uploads come", async () => {
  const countWaiting = vi.fn<(account: string) => Promise<number>>(async () => 500);
  const pace = openUploadPace(countWaiting);
  for (let file = 0; file < 100; file += 1) void pace.turn("a");
  await vi.advanceTimersByTimeAsync(2000);
  expect(countWaiting.mock.calls.length).toBeLessThan(12);
});
