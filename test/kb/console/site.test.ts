import { describe, expect, it } from "vitest";
import {
  consoleOrigins,
  hasSessionCookie,
  readSessionCookie,
  refuseForeign,
  sessionCookie,
} from "../../../src/kb/console/site.ts";

const PUBLIC = "https://kb.example.com";
const codeOf = (work: () => unknown): unknown => {
  try {
    work();
    return "admitted";
  } catch (error) {
    return (error as { readonly code?: unknown }).code;
  }
};

describe("the Host of a request", () => {
  it.each([
    ["127.0.0.1:7700", undefined, ["http://127.0.0.1:7700"]],
    ["localhost:8080", undefined, ["http://localhost:8080"]],
    ["[::1]:7700", undefined, ["http://[::1]:7700"]],
    ["kb.example.com", PUBLIC, [PUBLIC]],
    ["KB.example.com:443", PUBLIC, [PUBLIC]],
    ["127.0.0.1:7700", PUBLIC, ["http://127.0.0.1:7700", PUBLIC]],
  ])("%s with the public address %s is the console at %j", (host, publicUrl, origins) => {
    expect(consoleOrigins({ host }, publicUrl)).toEqual(origins);
  });

  it.each([
    ["evil.example", undefined],
    ["evil.example:7700", PUBLIC],
    ["kb.example.com", undefined],
    ["kb.example.com:8443", PUBLIC],
    ["kb.example.com.evil.example", PUBLIC],
    ["127.0.0.1.evil.example:7700", undefined],
    ["localhost@evil.example", undefined],
    ["localhost/evil", undefined],
    ["192.168.1.5:7700", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("%s with the public address %s is refused", (host, publicUrl) => {
    expect(codeOf(() => consoleOrigins({ ...(host !== undefined && { host }) }, publicUrl))).toBe(
      "host_refused",
    );
  });
});

describe("a request with the console's cookie", () => {
  const own = {
    host: "127.0.0.1:7700",
    origin: "http://127.0.0.1:7700",
    "sec-fetch-site": "same-origin",
    "x-kbsync-console": "1",
  } as const;

  it.each([
    ["a write of the console", "POST", {}, "admitted"],
    ["a read of the console", "GET", { origin: undefined, "x-kbsync-console": undefined }, "admitted"],
    ["a form on another page", "POST", { "sec-fetch-site": "cross-site" }, "cross_site"],
    ["another port of this machine", "POST", { "sec-fetch-site": "same-site" }, "cross_site"],
    ["a link in a mail", "GET", { "sec-fetch-site": "none", origin: undefined }, "cross_site"],
    ["a browser that does not say where it comes from", "GET", { "sec-fetch-site": undefined }, "cross_site"],
    ["a write without an origin", "POST", { origin: undefined }, "cross_site"],
    ["a write of another origin", "POST", { origin: "http://127.0.0.1:9999" }, "cross_site"],
    ["a read of another origin", "GET", { origin: "https://evil.example" }, "cross_site"],
    ["an opaque origin", "POST", { origin: "null" }, "cross_site"],
    ["a write without the console's header", "DELETE", { "x-kbsync-console": undefined }, "cross_site"],
    ["a name that was made to lead here", "GET", { host: "evil.example:7700" }, "host_refused"],
  ])("accepts or refuses by its headers %s", (_name, method, change, outcome) => {
    const headers = Object.fromEntries(
      Object.entries({ ...own, ...change }).filter(([, value]) => value !== undefined),
    );
    expect(codeOf(() => refuseForeign({ method, headers }, undefined))).toBe(outcome);
  });
});

describe("the cookie", () => {
  it("the cookie is bound to the host by its name and secure where the console is reached by HTTPS", () => {
    expect(sessionCookie(PUBLIC, "t")).toBe("__Host-kbsync=t; Path=/; HttpOnly; SameSite=Strict; Secure");
    expect(sessionCookie("http://127.0.0.1:7700", "t")).toBe(
      "kbsync-7700=t; Path=/; HttpOnly; SameSite=Strict",
    );
    expect(sessionCookie("http://127.0.0.1:7700", "")).toContain("Max-Age=0");
  });

  it.each([
    ["kbsync-7700=a", ["http://127.0.0.1:7700"], "a"],
    ["other=1; kbsync-7700=a", ["http://127.0.0.1:7700"], "a"],
    ["kbsync-7701=a", ["http://127.0.0.1:7700"], undefined],
    ["__Host-kbsync=b; kbsync-443=a", [PUBLIC], "b"],
    ["kbsync-443=a", [PUBLIC], undefined],
    ["__Host-kbsync=b", ["http://127.0.0.1:7700", PUBLIC], "b"],
  ])("%s at %j is the session %s", (cookie, origins, token) => {
    expect(readSessionCookie({ cookie }, origins)).toBe(token);
    expect(hasSessionCookie({ cookie })).toBe(true);
  });

  it.each([undefined, "", "session=1", "xkbsync-7700=a", "kbsync-7700="])(
    "a cookie header holds no session: %s",
    (cookie) => {
      expect(hasSessionCookie({ ...(cookie !== undefined && { cookie }) })).toBe(false);
    },
  );
});
