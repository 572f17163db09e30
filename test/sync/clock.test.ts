import { describe, expect, it } from "vitest";
import { steadyClock } from "../../src/sync/clock.ts";
import { openPacer } from "../../src/sync/remote/pacer.ts";

describe("the clock for waits", () => {
  it("follows the system's clock forward and is never set back", () => {
    let wallMs = 1_000_000;
    let elapsedMs = 0;
    const now = steadyClock(
      () => wallMs,
      () => elapsedMs,
    );
    const pass = (ms: number): void => {
      wallMs += ms;
      elapsedMs += ms;
    };
    expect(now()).toBe(1_000_000);
    pass(500);
    expect(now()).toBe(1_000_500);
    wallMs += 3_600_000; // a suspend, which the other clock does not count
    expect(now()).toBe(4_600_500);
    wallMs -= 7_200_000;
    pass(250);
    expect(now()).toBe(4_600_750);
  });

  it("lets the gate open in its time when the system's clock is set back", async () => {
    let setBackMs = 0;
    const pacer = openPacer({
      widthMax: 1,
      patienceMs: () => Infinity,
      now: steadyClock(() => Date.now() - setBackMs),
      random: () => 0,
      onWidth: () => undefined,
      onTrouble: () => undefined,
    });
    const { signal } = new AbortController();
    const ticket = await pacer.enter(signal);
    pacer.failed(ticket, { kind: "later", acted: "no", blame: "service", reason: "busy" });
    setBackMs = 3_600_000;
    pacer.succeeded(await pacer.enter(signal));
    expect(pacer.state()).toEqual({ kind: "open" });
  });
});
