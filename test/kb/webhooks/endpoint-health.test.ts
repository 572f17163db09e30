import { describe, expect, it } from "vitest";
import { openEndpointHealth } from "../../../src/kb/webhooks/delivery-runner.ts";

describe("endpoint health", () => {
  it.each([
    ["reports nothing while all messages arrive", ["delivered", "delivered"], []],
    [
      "reports the start and the end of failures",
      ["retry", "retry", "delivered", "delivered"],
      ["failing", "recovered"],
    ],
    [
      "reports when messages are given up",
      ["retry", "failed", "failed", "delivered"],
      ["failing", "given up", "recovered"],
    ],
    ["reports an endpoint once whose messages are given up at once", ["failed", "failed"], ["given up"]],
    [
      "reports nothing new while failures continue after messages were given up",
      ["failed", "retry", "retry"],
      ["given up"],
    ],
    [
      "reports a second series of failures",
      ["retry", "delivered", "retry"],
      ["failing", "recovered", "failing"],
    ],
  ] as const)("%s", (_name, outcomes, transitions) => {
    const health = openEndpointHealth();
    const reported = outcomes
      .map((outcome) => health.note("one", outcome))
      .filter((transition) => transition !== undefined);
    expect(reported).toEqual(transitions);
    expect(health.note("another", "delivered")).toBeUndefined();
  });

  it("evicts the oldest of more than a thousand endpoints", () => {
    const health = openEndpointHealth();
    for (let at = 0; at <= 1000; at += 1) health.note(`e${at}`, "retry");
    expect(health.note("e0", "retry")).toBe("failing");
    expect(health.note("e1000", "retry")).toBeUndefined();
  });
});
