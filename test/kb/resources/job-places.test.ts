import { expect, it } from "vitest";
import { ASIDE_MAX, openJobPlaces } from "../../../src/kb/resources/job-places.ts";

const MILLION = 1024 * 1024;

it.each<[string, readonly number[], number]>([
  ["none is there", [], 0],
  ["a few are", [0, 1000, 0], 3],
  ["there are more than may be", Array.from({ length: ASIDE_MAX + 5 }, () => 0), ASIDE_MAX],
  ["some hold much text", [...Array.from({ length: 40 }, () => MILLION), 0], 33],
  ["one holds more than all may", [33 * MILLION, 1000], 1],
])("documents in the recogniser take no place where %s", async (_name, held, lent) => {
  let heard = 0;
  const places = openJobPlaces(() => (heard += 1));
  const { promise, resolve } = Promise.withResolvers<string>();
  const works = held.map((chars) => places.whileWaiting(() => promise, chars));
  expect([places.lent(), heard]).toEqual([lent, held.length]);
  resolve("read");
  expect(await Promise.all(works)).toEqual(held.map(() => "read"));
  expect(places.lent()).toBe(0);
});

it("a document that the recogniser fails at takes its place again", async () => {
  const places = openJobPlaces(() => undefined);
  await expect(places.whileWaiting(() => Promise.reject(new Error("no")), 0)).rejects.toThrow("no");
  expect(places.lent()).toBe(0);
});
