import { describe, expect, it } from "vitest";
import { createLanes } from "../../../src/kb/embed/lanes.ts";
import type { Lanes } from "../../../src/kb/embed/lanes.ts";

/** A model that runs a batch only when told to: `vector` of a text is its length. */
function steppedModel(textsMax: number) {
  const ran: (readonly string[])[] = [];
  const waiting: (() => void)[] = [];
  const run = async (texts: readonly string[]): Promise<Float32Array[]> => {
    ran.push(texts);
    await new Promise<void>((resolve) => waiting.push(resolve));
    if (texts.includes("broken")) throw new Error("the model says no");
    return texts.map((text) => Float32Array.of(text.length));
  };
  const lanes = createLanes(run, { tokens: 10_000, texts: textsMax, tokensMax: 256 });
  const step = async (): Promise<void> => {
    waiting.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { lanes, ran, step };
}

/** The calls in the order of their answers. */
function inOrder(lanes: Lanes) {
  const answered: string[] = [];
  const call = (name: string, lane: "urgent" | "patient", texts: string[], signal?: AbortSignal) => {
    const vectors = lanes.embed(lane, texts, signal);
    vectors.then(
      () => answered.push(name),
      (error: Error) => answered.push(`${name}: ${error.message}`),
    );
    return vectors;
  };
  return { answered, call };
}

describe("lanes", () => {
  it("run one batch at a time, in order, and give the vectors in the order of the texts", async () => {
    const { lanes, ran, step } = steppedModel(2);
    const short = "a";
    const longest = "c".repeat(30);
    const long = "b".repeat(20);
    const vectors = lanes.embed("patient", [short, longest, long], undefined);
    expect(ran).toEqual([[longest, long]]);
    await step();
    expect(ran).toEqual([[longest, long], [short]]);
    await step();
    expect((await vectors).map(([length]) => length)).toEqual([1, 30, 20]);
  });

  it("let an urgent call wait for the batch under way alone", async () => {
    const { lanes, ran, step } = steppedModel(1);
    const { answered, call } = inOrder(lanes);
    void call("ingest", "patient", ["1", "2", "3"]);
    void call("more ingest", "patient", ["4"]);
    void call("query", "urgent", ["q"]);
    for (let i = 0; i < 5; i++) await step();
    // A call behind another one does not wait for all of it.
    expect(ran.flat()).toEqual(["1", "q", "2", "4", "3"]);
    expect(answered).toEqual(["query", "more ingest", "ingest"]);
  });

  it("drop what is left of an aborted call", async () => {
    const { lanes, ran, step } = steppedModel(1);
    const { answered, call } = inOrder(lanes);
    const stop = new AbortController();
    const aborted = call("first", "patient", ["1", "2", "3"], stop.signal);
    void call("second", "patient", ["4"]);
    stop.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    await step();
    await step();
    expect(ran.flat()).toEqual(["1", "4"]);
    expect(answered).toEqual(["first: enough", "second"]);
  });

  it("fail only the call whose batch failed", async () => {
    const { lanes, ran, step } = steppedModel(1);
    const { answered, call } = inOrder(lanes);
    const failed = call("first", "patient", ["broken", "2"]);
    const second = call("second", "patient", ["3"]);
    await step();
    await step();
    await expect(failed).rejects.toThrow("the model says no");
    expect(await second).toHaveLength(1);
    expect(ran.flat()).toEqual(["broken", "3"]);
    expect(answered).toEqual(["first: the model says no", "second"]);
  });

  it("take a call again after everything was done", async () => {
    const { lanes, step } = steppedModel(1);
    for (const text of ["one", "three"]) {
      const vectors = lanes.embed("patient", [text], undefined);
      await step();
      expect(await vectors).toEqual([Float32Array.of(text.length)]);
    }
  });

  it("fail everything at the end, and everything after it", async () => {
    const { lanes, step } = steppedModel(1);
    const reason = new Error("over");
    const underWay = lanes.embed("patient", ["1", "2"], undefined);
    const waiting = lanes.embed("urgent", ["q"], undefined);
    lanes.close(reason);
    await expect(underWay).rejects.toBe(reason);
    await expect(waiting).rejects.toBe(reason);
    await step();
    await expect(lanes.embed("patient", ["x"], undefined)).rejects.toBe(reason);
  });
});
