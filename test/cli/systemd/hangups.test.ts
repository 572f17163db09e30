import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { openHangups } from "../../../src/cli/systemd/hangups.ts";

it("delivers a hang-up that came before the listener, once", () => {
  const source = new EventEmitter();
  const hangups = openHangups(source);
  expect(source.listenerCount("SIGHUP")).toBe(0);
  hangups.hold();
  hangups.hold();
  expect(source.listenerCount("SIGHUP")).toBe(1);
  source.emit("SIGHUP");
  source.emit("SIGHUP");
  let received = 0;
  const stop = hangups.listen(() => (received += 1));
  expect(received).toBe(1);
  source.emit("SIGHUP");
  expect(received).toBe(2);
  stop();
  // One that comes while the program ends must not break that off.
  expect(source.listenerCount("SIGHUP")).toBe(1);
  source.emit("SIGHUP");
  expect(received).toBe(2);
});
