import { expect, it } from "vitest";
import { ago, bytes, counted, duration } from "../../../src/console/view/format.ts";
import { addressOf, readRoute } from "../../../src/console/view/address.ts";

it.each([
  ["#/", [], {}],
  ["", [], {}],
  ["#/documents/a%2Fb", ["documents", "a/b"], {}],
  ["#/search?q=a+%26+b&min=0.5", ["search"], { q: "a & b", min: "0.5" }],
  ["#/bad%", ["bad%"], {}],
])("an address is read: %s", (hash, path, query) => {
  const place = readRoute(hash);
  expect([place.path, Object.fromEntries(place.query)]).toEqual([path, query]);
});

it("writes an address that it reads again, without what is empty", () => {
  const address = addressOf(["folders"], { path: "/home/ann/a & b", tab: "", state: undefined });
  expect(address).toBe("#/folders?path=%2Fhome%2Fann%2Fa+%26+b");
  expect(readRoute(address).query.get("path")).toBe("/home/ann/a & b");
});

it.each([
  [bytes(999), "999 B"],
  [bytes(1536), "1.5 kB"],
  [bytes(32_000_000), "32.0 MB"],
  [counted(1, "file"), "1 file"],
  [counted(12_431, "file"), "12,431 files"],
  [duration(8.2), "8 s"],
  [duration(12_000), "3 h 20 min"],
  [ago(0, 20_000), "just now"],
  [ago(0, 300_000), "5 min ago"],
])("formats %s as %s", (text, expected) => {
  expect(text).toBe(expected);
});
