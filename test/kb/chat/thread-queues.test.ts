import { expect, it } from "vitest";
import { openThreadQueues } from "../../../src/kb/chat/thread-queues.ts";

it("a thread's queue runs in order, is bounded, and frees the slot of a client that leaves", async () => {
  const queues = openThreadQueues(2, () => new Error("full"));
  const held = Promise.withResolvers<void>();
  const started: string[] = [];
  const staying = new AbortController().signal;
  const ask = (name: string, signal = staying, thread = "t") =>
    queues.run(
      thread,
      async () => {
        started.push(name);
        await held.promise;
        return name;
      },
      signal,
    );
  const leaving = new AbortController();
  const first = ask("first");
  const second = ask("second", leaving.signal);
  const third = ask("third");
  await expect(ask("too many")).rejects.toThrow("full");
  // Another thread has a queue of its own.
  const other = ask("other", staying, "u");
  leaving.abort(new Error("left"));
  await expect(second).rejects.toThrow("left");
  await expect(ask("gone before", leaving.signal)).rejects.toThrow("left");
  // Its slot in the queue is free again.
  const fourth = ask("fourth");
  await expect(ask("too many")).rejects.toThrow("full");
  expect(started).toEqual(["first", "other"]);
  held.resolve();
  expect(await Promise.all([first, third, fourth, other])).toEqual(["first", "third", "fourth", "other"]);
  expect(started).toEqual(["first", "other", "third", "fourth"]);
});
