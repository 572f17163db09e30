import { expect, it } from "vitest";
import { isLoopback, reachedAt } from "../../src/lib/loopback.ts";

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
])("%s is this machine's alone: %s; it reaches it at %s", (host, alone, reached) => {
  expect([isLoopback(host), reachedAt(host)]).toEqual([alone, reached]);
});
