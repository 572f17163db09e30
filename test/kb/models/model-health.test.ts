import { describe, expect, it } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { type FailureKind, ModelFailure } from "../../../src/kb/models/model-failure.ts";
import { openModelHealth } from "../../../src/kb/models/model-health.ts";

const failure = (kind: FailureKind, status?: number): ModelFailure =>
  new ModelFailure("it failed", { code: "model_failed", subject: "m", kind, status });
const outage = new KbsyncError("it is gone", { code: "model_failed" });

/** A health that records every change: `-m` when a model starts to fail, `+m` when it recovers. */
function openRecorded() {
  const changes: string[] = [];
  const health = openModelHealth((model, problem) =>
    changes.push(`${problem === undefined ? "+" : "-"}${model}`),
  );
  return { ...health, changes };
}

describe("the health of a model", () => {
  it.each<[string, FailureKind, number | undefined, number]>([
    ["an answer of no use", "unusable", undefined, 3],
    ["a malformed request", "refused", 400, 3],
    ["a request that is too large", "refused", 413, 3],
    ["a media type that it does not accept", "refused", 415, 3],
    ["a request that it does not understand", "refused", 422, 3],
    ["a wrong key", "refused", 401, 1],
    ["a model that does not exist", "refused", 404, 1],
    ["a refusal without a status", "refused", undefined, 1],
    ["an endpoint that does not answer", "unreachable", undefined, 1],
    ["an endpoint that is busy", "unreachable", 400, 1],
  ])(
    "a model fails after as many questions as may be their own fault: %s",
    (_name, kind, status, questions) => {
      const health = openRecorded();
      for (let asked = 1; asked <= questions; asked++) {
        expect(health.isFailing("m")).toBe(false);
        health.reportFailure("m", failure(kind, status));
      }
      expect([health.isFailing("m"), health.isFailing("other"), health.changes]).toEqual([
        true,
        false,
        ["-m"],
      ]);
      health.reportFailure("m", failure(kind, status));
      expect([health.isFailing("m"), health.changes]).toEqual([true, ["-m"]]);
    },
  );

  it("a model fails at once with an outage, and recovers with an answer; each is reported once", () => {
    const health = openRecorded();
    health.reportOutage("m", outage);
    health.reportOutage("m", outage);
    expect([health.isFailing("m"), health.changes]).toEqual([true, ["-m"]]);
    health.reportSuccess("m");
    health.reportSuccess("m");
    expect([health.isFailing("m"), health.changes]).toEqual([false, ["-m", "+m"]]);
  });

  it("starts over with every answer", () => {
    const health = openRecorded();
    for (let round = 0; round < 5; round++) {
      health.reportFailure("m", failure("unusable"));
      health.reportFailure("m", failure("unusable"));
      health.reportSuccess("m");
    }
    expect(health.changes).toEqual([]);
  });

  it("health is tracked for a thousand models, the latest", () => {
    const health = openRecorded();
    for (let at = 0; at < 1000; at++) health.reportOutage(`m${at}`, outage);
    expect(health.isFailing("m0")).toBe(true);
    health.reportOutage("m1000", outage);
    expect([health.isFailing("m0"), health.isFailing("m1"), health.isFailing("m1000")]).toEqual([
      false,
      true,
      true,
    ]);
  });
});
