import { expect, it } from "vitest";
import { isExposed, isLoopback, reachedAt } from "../../src/lib/loopback.ts";

it.each([
  ["127.0.0.1", true, "127.0.0.1"],
  ["127.8.9.10", true, "127.8.9.10"],
  ["localhost", true, "localhost"],
  ["::1", true, "[::1]"],
  ["[::1]", true, "[::1]"],
  ["0.0.0.0", false, "127.0.0.1"],
  ["::", false, "[::1]"],
  ["10.0.0.1", false, "10.0.0.1"],
  ["fd00::1", false, "[fd00::1]"],
  ["127.0.0.1.example", false, "127.0.0.1.example"],
])(
  "a server on %s is reachable from this machine only: %s; this machine reaches it at %s",
  (host, alone, reached) => {
    expect([isLoopback(host), reachedAt(host)]).toEqual([alone, reached]);
  },
);

it.each([
  [{ host: "127.0.0.1" }, false],
  [{ host: "::1", publicUrl: "http://[::1]:80" }, false],
  [{ host: "127.0.0.1", publicUrl: "http://localhost:7411" }, false],
  [{ host: "127.0.0.1", publicUrl: "no address" }, false],
  [{ host: "127.0.0.1", publicUrl: "https://kb.example" }, true],
  [{ host: "0.0.0.0", publicUrl: "http://127.0.0.1:7411" }, true],
])("other machines reach a server that listens at %j: %s", (service, expected) => {
  expect(isExposed(service)).toBe(expected);
});
