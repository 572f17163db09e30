import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openUploadPace } from "../../../../src/kb/http/limits/upload-pace.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const CONNECTED = new AbortController().signal;

/** Lets one account upload so many files at once while that many of its documents wait. */
function upload(files: number, waiting: () => number): { readonly started: () => number } {
  const pace = openUploadPace(async () => waiting());
  let started = 0;
  for (let file = 0; file < files; file += 1) void pace.turn("a", CONNECTED).then(() => (started += 1));
  return { started: () => started };
}

it("lets uploads begin at once while few documents of the account wait", async () => {
  const { started } = upload(500, () => 250);
  await vi.advanceTimersByTimeAsync(0);
  expect(started()).toBe(500);
});

it("lets 20 begin, then 10 a second, while more wait", async () => {
  const { started } = upload(500, () => 251);
  await vi.advanceTimersByTimeAsync(0);
  expect(started()).toBe(20);
  await vi.advanceTimersByTimeAsync(3000);
  expect(started()).toBe(50);
});

it("lets all begin once the documents are read", async () => {
  let waiting = 251;
  const { started } = upload(500, () => waiting);
  await vi.advanceTimersByTimeAsync(1000);
  expect(started()).toBe(30);
  waiting = 50;
  await vi.advanceTimersByTimeAsync(500);
  expect(started()).toBe(500);
});

it("asks for the number of waiting documents a few times a second, however many uploads come", async () => {
  const countWaiting = vi.fn<(account: string) => Promise<number>>(async () => 500);
  const pace = openUploadPace(countWaiting);
  for (let file = 0; file < 100; file += 1) void pace.turn("a", CONNECTED);
  await vi.advanceTimersByTimeAsync(2000);
  expect(countWaiting.mock.calls.length).toBeLessThan(12);
});

it("counts no upload that did not need its turn, because the documents were read before", async () => {
  let waiting = 0;
  const pace = openUploadPace(async () => waiting);
  const uploadAll = async (files: number): Promise<void> => {
    const turns = Array.from({ length: files }, () => pace.turn("a", CONNECTED));
    await vi.advanceTimersByTimeAsync(250);
    waiting = 0;
    await vi.advanceTimersByTimeAsync(250);
    await Promise.all(turns);
  };
  for (let round = 0; round < 20; round += 1) {
    waiting = 251;
    await uploadAll(50);
  }
  await vi.advanceTimersByTimeAsync(3000);
  waiting = 251;
  let started = 0;
  for (let file = 0; file < 30; file += 1) void pace.turn("a", CONNECTED).then(() => (started += 1));
  await vi.advanceTimersByTimeAsync(1100);
  expect(started).toBe(30);
});

it("ends the wait of a client that disconnects, and gives its turn to the next upload", async () => {
  const pace = openUploadPace(async () => 500);
  const client = new AbortController();
  const left = Array.from({ length: 100 }, () =>
    pace.turn("a", client.signal).catch((error: unknown) => error),
  );
  await vi.advanceTimersByTimeAsync(0);
  const gone = new Error("gone");
  client.abort(gone);
  await vi.advanceTimersByTimeAsync(250);
  expect((await Promise.all(left)).filter((each) => each === gone)).toHaveLength(80);
  let started = false;
  void pace.turn("a", CONNECTED).then(() => (started = true));
  await vi.advanceTimersByTimeAsync(100);
  expect(started).toBe(true);
});

it("gives no turn to a client that disconnected while its documents were counted", async () => {
  const counted = Promise.withResolvers<number>();
  const pace = openUploadPace(() => counted.promise);
  const client = new AbortController();
  const turn = pace.turn("a", client.signal);
  client.abort(new Error("gone"));
  counted.resolve(0);
  await expect(turn).rejects.toThrow("gone");
});
