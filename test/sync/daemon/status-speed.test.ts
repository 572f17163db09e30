import { beforeEach, expect, it } from "vitest";
import { openSpeed, type Speed } from "../../../src/sync/daemon/status.ts";

let speed: Speed;
beforeEach(() => {
  speed = openSpeed();
});

it("a status has no speed before anything was done", () => {
  expect(speed.perSecond(0)).toBeUndefined();
  speed.sample(5, 0);
  expect(speed.perSecond(0)).toBeUndefined();
  speed.sample(5, 1000);
  expect(speed.perSecond(1000)).toBeUndefined();
});

it("computes the speed per second between two samples", () => {
  speed.sample(10, 1000);
  speed.sample(50, 3000);
  expect(speed.perSecond(3000)).toBe(20);
});

it("computes the speed of the last fifteen seconds, and has none when nothing was done in them", () => {
  speed.sample(0, 0);
  speed.sample(900, 1000);
  speed.sample(910, 11_000);
  expect(speed.perSecond(11_000)).toBeCloseTo(910 / 11);
  expect(speed.perSecond(15_000)).toBe(1);
  speed.sample(920, 16_000);
  expect(speed.perSecond(16_000)).toBe(2);
  expect(speed.perSecond(31_000)).toBeUndefined();
});

it("a status has a speed again after a rest", () => {
  for (let atMs = 0; atMs <= 100_000; atMs += 1000) speed.sample(7, atMs);
  expect(speed.perSecond(100_000)).toBeUndefined();
  speed.sample(8, 101_000);
  expect(speed.perSecond(101_000)).toBeCloseTo(1 / 14);
});
