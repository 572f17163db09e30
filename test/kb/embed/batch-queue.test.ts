import { describe, expect, it } from "vitest";
import { createBatchQueue } from "../../../src/kb/embed/batch-queue.ts";
import type { BatchQueue } from "../../../src/kb/embed/batch-queue.ts";

/** A model that finishes one batch per `step`. The vector of a text is its length. */
function steppedModel(textsMax: number) {
  const ran: (readonly string[])[] = [];
  const waiting: (() => void)[] = [];
  const run = async (texts: readonly string[]): Promise<Float32Array[]> => {
    ran.push(texts);
    await new Promise<void>((resolve) => waiting.push(resolve));
    if (texts.includes("broken")) throw new Error("the model says no");
    return texts.map((text) => Float32Array.of(text.length));
  };
  const queue = createBatchQueue(run, { tokens: 10_000, texts: textsMax, tokensMax: 256 });
  const step = async (): Promise<void> => {
    waiting.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { queue, ran, step };
}

/** Records calls in the order of their answers. */
function inOrder(queue: BatchQueue) {
  const answered: string[] = [];
  const call = (name: string, priority: "urgent" | "background", texts: string[], signal?: AbortSignal) => {
    const vectors = queue.embed(priority, texts, signal);
    vectors.then(
      () => answered.push(name),
      (error: Error) => answered.push(`${name}: ${error.message}`),
    );
    return vectors;
  };
  return { answered, call };
}

describe("createBatchQueue", () => {
  it("the queue runs one batch at a time and returns vectors in the order of the texts", async () => {
    const { queue, ran, step } = steppedModel(2);
    const short = "a";
    const longest = "c".repeat(30);
    const long = "b".repeat(20);
    const vectors = queue.embed("background", [short, longest, long], undefined);
    expect(ran).toEqual([[longest, long]]);
    await step();
    expect(ran).toEqual([[longest, long], [short]]);
    await step();
    expect((await vectors).map(([length]) => length)).toEqual([1, 30, 20]);
  });

  it("an urgent call waits only for the batch in flight", async () => {
    const { queue, ran, step } = steppedModel(1);
    const { answered, call } = inOrder(queue);
    void call("ingest", "background", ["1", "2", "3"]);
    void call("more ingest", "background", ["4"]);
    void call("query", "urgent", ["q"]);
    for (let i = 0; i < 5; i++) await step();
    // A queued call does not wait for all batches of the call before it.
    expect(ran.flat()).toEqual(["1", "q", "2", "4", "3"]);
    expect(answered).toEqual(["query", "more ingest", "ingest"]);
  });

  it("the queue drops the remaining batches of an aborted call", async () => {
    const { queue, ran, step } = steppedModel(1);
    const { answered, call } = inOrder(queue);
    const stop = new AbortController();
    const aborted = call("first", "background", ["1", "2", "3"], stop.signal);
    void call("second", "background", ["4"]);
    stop.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    await step();
    await step();
    expect(ran.flat()).toEqual(["1", "4"]);
    expect(answered).toEqual(["first: enough", "second"]);
  });

  it("a failed batch fails only its own call", async () => {
    const { queue, ran, step } = steppedModel(1);
    const { answered, call } = inOrder(queue);
    const failed = call("first", "background", ["broken", "2"]);
    const second = call("second", "background", ["3"]);
    await step();
    await step();
    await expect(failed).rejects.toThrow("the model says no");
    expect(await second).toHaveLength(1);
    expect(ran.flat()).toEqual(["broken", "3"]);
    expect(answered).toEqual(["first: the model says no", "second"]);
  });

  it("an idle queue accepts calls again", async () => {
    const { queue, step } = steppedModel(1);
    for (const text of ["one", "three"]) {
      const vectors = queue.embed("background", [text], undefined);
      await step();
      expect(await vectors).toEqual([Float32Array.of(text.length)]);
    }
  });

  it("a closed queue rejects all pending and later calls", async () => {
    const { queue, step } = steppedModel(1);
    const reason = new Error("closed");
    const inFlight = queue.embed("background", ["1", "2"], undefined);
    const waiting = queue.embed("urgent", ["q"], undefined);
    queue.close(reason);
    await expect(inFlight).rejects.toBe(reason);
    await expect(waiting).rejects.toBe(reason);
    await step();
    await expect(queue.embed("background", ["x"], undefined)).rejects.toBe(reason);
  });
});
