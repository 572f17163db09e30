import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { openHangups } from "../../../src/cli/systemd/hangups.ts";

it("a hang-up that comes before somebody listens is heard once by whoever does", () => {
  const source = new EventEmitter();
  const hangups = openHangups(source);
  expect(source.listenerCount("SIGHUP")).toBe(0);
  hangups.hold();
  hangups.hold();
  expect(source.listenerCount("SIGHUP")).toBe(1);
  source.emit("SIGHUP");
  source.emit("SIGHUP");
  let heard = 0;
  const stop = hangups.listen(() => (heard += 1));
  expect(heard).toBe(1);
  source.emit("SIGHUP");
  expect(heard).toBe(2);
  stop();
  // One that comes while the program ends must not break that off.
  expect(source.listenerCount("SIGHUP")).toBe(1);
  source.emit("SIGHUP");
  expect(heard).toBe(2);
});
