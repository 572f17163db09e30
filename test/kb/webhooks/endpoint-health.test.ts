import { describe, expect, it } from "vitest";
import { openEndpointHealth } from "../../../src/kb/webhooks/endpoint-health.ts";

describe("how endpoints fare", () => {
  it.each([
    ["all well", ["delivered", "delivered"], []],
    ["fails and comes back", ["retry", "retry", "delivered", "delivered"], ["failing", "back"]],
    [
      "fails until messages are given up",
      ["retry", "dead", "dead", "delivered"],
      ["failing", "given up", "back"],
    ],
    ["is gone at once", ["dead", "dead"], ["given up"]],
    ["goes on failing after messages were given up", ["dead", "retry", "retry"], ["given up"]],
    ["fails a second time", ["retry", "delivered", "retry"], ["failing", "back", "failing"]],
  ] as const)("%s", (_name, outcomes, turns) => {
    const health = openEndpointHealth();
    const told = outcomes.map((outcome) => health.note("one", outcome)).filter((turn) => turn !== undefined);
    expect(told).toEqual(turns);
    expect(health.note("another", "delivered")).toBeUndefined();
  });

  it("forgets the oldest of very many", () => {
    const health = openEndpointHealth();
    for (let at = 0; at <= 1000; at += 1) health.note(`e${at}`, "retry");
    expect(health.note("e0", "retry")).toBe("failing");
    expect(health.note("e1000", "retry")).toBeUndefined();
  });
});
