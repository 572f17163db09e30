import { expect, it } from "vitest";
import { openThreadLines } from "../../../src/kb/chat/chat.ts";

it("a thread's line is in order, bounded, and left at once by whoever goes away", async () => {
  const lines = openThreadLines(2, () => new Error("full"));
  const held = Promise.withResolvers<void>();
  const begun: string[] = [];
  const staying = new AbortController().signal;
  const ask = (name: string, signal = staying, thread = "t") =>
    lines.run(
      thread,
      async () => {
        begun.push(name);
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
  // Another thread has a line of its own.
  const other = ask("other", staying, "u");
  leaving.abort(new Error("left"));
  await expect(second).rejects.toThrow("left");
  await expect(ask("gone before", leaving.signal)).rejects.toThrow("left");
  // Its place in the line is free again.
  const fourth = ask("fourth");
  await expect(ask("too many")).rejects.toThrow("full");
  expect(begun).toEqual(["first", "other"]);
  held.resolve();
  expect(await Promise.all([first, third, fourth, other])).toEqual(["first", "third", "fourth", "other"]);
  expect(begun).toEqual(["first", "other", "third", "fourth"]);
});
