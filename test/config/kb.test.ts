import { describe, expect, it } from "vitest";
import { parseConfig } from "../../src/config/load.ts";

const parse = (kb: object) => parseConfig(JSON.stringify({ kb }), "kbsync.config.json").kb;

describe("kb in the configuration", () => {
  it("closes the network, limits no key and serves files to whoever knows their address, unless it says otherwise", () => {
    expect(parse({})).toMatchObject({
      fetch: { allow: [] },
      limits: { ingests: 512 },
      resources: { requireKey: false },
    });
  });

  it.each(["wiki.example", "*.corp.example", "intranet", "10.0.0.0/8", "192.168.1.7", "fd00::/8", "::1"])(
    "opens %s",
    (entry) => {
      expect(parse({ fetch: { allow: [entry] } }).fetch.allow).toEqual([entry]);
    },
  );

  it.each([
    [
      "an address with a path",
      { fetch: { allow: ["http://wiki.example/"] } },
      "kb.fetch.allow[0]: expected a host name",
    ],
    [
      "a range that is none",
      { fetch: { allow: ["10.0.0.0/64"] } },
      "kb.fetch.allow[0]: expected a host name",
    ],
    ["no requests at all", { limits: { requestsPerMinute: 0 } }, "kb.limits.requestsPerMinute"],
    [
      "an unknown key",
      { limits: { perSecond: 1 } },
      "kb.limits.perSecond: unknown key, expected one of requestsPerMinute",
    ],
  ])("refuses %s", (_name, kb, words) => {
    expect(() => parse(kb)).toThrow(words);
  });
});
