import { describe, expect, it } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { withCooldown } from "../../../src/kb/embed/cooldown.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";

/** An embedder with a cooldown of a second, whose calls throw what is set, and a clock that is set. */
function openCooled() {
  const state = { failure: undefined as Error | undefined, nowMs: 5000, calls: 0 };
  const base = hashedEmbedder();
  const embedder = withCooldown(
    {
      ...base,
      embed: async (texts, signal) => {
        state.calls += 1;
        if (state.failure !== undefined) throw state.failure;
        return base.embed(texts, signal);
      },
    },
    { cooldownMs: 1000, nowMs: () => state.nowMs },
  );
  const embed = (signal?: AbortSignal): Promise<unknown> =>
    embedder.embed(["a"], signal).then(
      (vectors) => vectors.length,
      (error: unknown) => error,
    );
  return { state, embed, embedder, base };
}
const outage = new KbsyncError("it is gone", { code: "embedding_unreachable" });

describe("an embedder with a cooldown", () => {
  it("an embedder with a cooldown is the same embedder while nothing fails", async () => {
    const { embed, embedder, base } = openCooled();
    expect([await embed(), await embed()]).toEqual([1, 1]);
    expect([embedder.dimensions, embedder.fingerprint]).toEqual([base.dimensions, base.fingerprint]);
  });

  it("an embedder with a cooldown is not called for a while after a failure, and callers are refused at once", async () => {
    const { state, embed } = openCooled();
    state.failure = outage;
    expect(await embed()).toBe(outage);
    state.failure = undefined;
    state.nowMs += 999;
    expect(await embed()).toMatchObject({ code: "embedding_resting", retryable: true });
    expect(state.calls).toBe(1);
    state.nowMs += 1;
    expect(await embed()).toBe(1);
    expect(state.calls).toBe(2);
  });

  it("rests again after each failure", async () => {
    const { state, embed } = openCooled();
    state.failure = outage;
    for (let round = 1; round <= 3; round++) {
      expect(await embed()).toBe(outage);
      expect(await embed()).toMatchObject({ code: "embedding_resting" });
      expect(state.calls).toBe(round);
      state.nowMs += 1000;
    }
  });

  it.each([
    ["a text is refused", new KbsyncError("no", { code: "embedding_refused" }), undefined],
    ["the caller leaves", outage, AbortSignal.abort()],
  ])("an embedder with a cooldown does not rest when %s", async (_name, failure, signal) => {
    const { state, embed } = openCooled();
    state.failure = failure;
    expect(await embed(signal)).toBe(failure);
    state.failure = undefined;
    expect(await embed()).toBe(1);
  });
});
