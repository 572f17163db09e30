import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openRunning } from "../service/running.ts";
import type { Answered, Running, Sent } from "../service/running.ts";

const START = Date.parse("2026-11-21T12:00:00.000Z");
const HOUR_MS = 3_600_000;
const PAGE = "<!doctype html><title>kbsync</title>";

let nowMs = START;
let running: Running;
let key: string;
beforeAll(async () => {
  const bytes = (text: string) => ({
    identity: Buffer.from(text),
    gzip: Buffer.from(`gzip ${text}`),
    br: Buffer.from(`br ${text}`),
  });
  running = await openRunning({
    nowMs: () => nowMs,
    consoleFiles: [
      { path: "/", contentType: "text/html; charset=utf-8", etag: '"p"', codings: bytes(PAGE) },
      { path: "/assets/index-1.js", contentType: "text/javascript", etag: '"s"', codings: bytes("1") },
    ],
  });
  key = await running.issueKey("local", ["admin"]);
});
beforeEach(() => {
  nowMs = START;
});
afterAll(() => running.close());

/** Headers that a browser sends from the console. */
const browser = (): Record<string, string> => ({
  origin: running.url,
  "sec-fetch-site": "same-origin",
  "x-kbsync-console": "1",
});
const signIn = (body: object, headers: Record<string, string> = {}): Promise<Answered> =>
  running.send("POST", "/console/session", { key: null, body, headers: { ...browser(), ...headers } });
/** Signs in with a key and returns the cookie. */
const cookieFor = async (body: object): Promise<string> => {
  const answer = await signIn(body);
  expect(answer.status).toBe(200);
  return String(answer.headers["set-cookie"]).split(";")[0] ?? "";
};
const ask = (cookie: string, path = "/v1/me", sent: Sent & { method?: string } = {}): Promise<Answered> =>
  running.send(sent.method ?? "GET", path, {
    key: null,
    ...sent,
    headers: { ...browser(), cookie, ...sent.headers },
  });
const linkOf = async (body: object = {}): Promise<string> =>
  (await running.send("POST", "/console/links", { key, body })).json.data.token;

describe("signing in", () => {
  it("exchanges a key for a cookie that scripts cannot read, and stores neither", async () => {
    const answer = await signIn({ key });
    const port = new URL(running.url).port;
    expect(answer.headers["set-cookie"]).toMatch(
      new RegExp(`^kbsync-${port}=[A-Za-z0-9_-]{43}; Path=/; HttpOnly; SameSite=Strict$`),
    );
    expect(answer.headers["cache-control"]).toBe("no-store");
    expect(answer.json.data).toMatchObject({ key: { scopes: ["admin"], expiresAt: null }, daemon: false });
    const cookie = String(answer.headers["set-cookie"]).split(";")[0] ?? "";
    const me = await ask(cookie);
    expect(me).toMatchObject({ status: 200, json: { data: answer.json.data } });
    const [, token = ""] = cookie.split("=");
    for (const secret of [key, token]) {
      expect(me.text).not.toContain(secret);
      expect(running.log()).not.toContain(secret);
    }
  });

  it.each([
    ["an unknown key", { key: "kb_unknown" }, 401, "key_unknown"],
    ["an unknown link", { link: "unknown" }, 401, "sign_in_link_ended"],
    ["neither key nor link", {}, 400, "invalid_field"],
    ["both a key and a link", { key: "a", link: "b" }, 400, "invalid_field"],
  ])("signing in refuses %s", async (_name, body, status, code) => {
    const answer = await signIn(body);
    expect({ status: answer.status, code: answer.json.error.code }).toEqual({ status, code });
    expect(answer.headers["set-cookie"]).toBeUndefined();
  });

  it.each([
    ["of another site", { "sec-fetch-site": "cross-site" }, 403, "cross_site"],
    ["of another port", { origin: "http://127.0.0.1:1" }, 403, "cross_site"],
    ["without the console's header", { "x-kbsync-console": "" }, 403, "cross_site"],
    ["of a name that was made to lead here", { host: "evil.example" }, 421, "host_refused"],
  ])("refuses a page %s", async (_name, headers, status, code) => {
    const answer = await signIn({ key }, headers);
    expect({ status: answer.status, code: answer.json.error.code }).toEqual({ status, code });
    expect(answer.headers["set-cookie"]).toBeUndefined();
  });
});

describe("a link", () => {
  it("signs in once", async () => {
    const link = await linkOf();
    const cookie = await cookieFor({ link });
    expect((await ask(cookie)).status).toBe(200);
    expect((await signIn({ link })).json.error.code).toBe("sign_in_link_ended");
  });

  it("signs in one of two that use it at a time", async () => {
    const link = await linkOf();
    const answers = await Promise.all([signIn({ link }), signIn({ link })]);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  it("a link ends after a minute, or when it says", async () => {
    const [short, long] = [await linkOf(), await linkOf({ lifeSeconds: 600 })];
    nowMs = START + 60_000;
    expect((await signIn({ link: short })).json.error.code).toBe("sign_in_link_ended");
    expect((await signIn({ link: long })).status).toBe(200);
  });

  it("a link is no session, and a session no link", async () => {
    const link = await linkOf();
    const name = (await cookieFor({ key })).split("=")[0] ?? "";
    expect((await ask(`${name}=${link}`)).json.error.code).toBe("session_ended");
    const cookie = await cookieFor({ key });
    expect((await signIn({ link: cookie.split("=")[1] ?? "" })).status).toBe(401);
    expect((await ask(cookie)).status).toBe(200);
  });
});

describe("a session", () => {
  it("a session may do what its key may, and no more", async () => {
    const reader = await running.issueKey("local", ["read"]);
    const cookie = await cookieFor({ key: reader });
    expect((await ask(cookie, "/api/rag/collections")).status).toBe(200);
    const refused = await ask(cookie, "/v1/keys");
    expect({ status: refused.status, code: refused.json.error.code }).toEqual({
      status: 403,
      code: "scope_missing",
    });
  });

  it("creates and deletes like a key", async () => {
    const cookie = await cookieFor({ key });
    const body = { title: "Tides", description: "", content: "The moon.", collection_details: "fastest" };
    const made = await ask(cookie, "/api/rag/resource", { method: "POST", body });
    expect(made.status).toBe(201);
    const gone = await ask(cookie, `/api/rag/resource/${made.json.data._id}`, { method: "DELETE" });
    expect(gone.status).toBe(200);
  });

  it.each([
    ["a read of another site", "GET", { "sec-fetch-site": "cross-site" }, "cross_site"],
    ["a read of another port", "GET", { "sec-fetch-site": "same-site" }, "cross_site"],
    ["a write without the console's header", "POST", { "x-kbsync-console": "" }, "cross_site"],
    ["a write without an origin", "POST", { origin: "" }, "cross_site"],
    ["a name that was made to lead here", "GET", { host: "evil.example" }, "host_refused"],
  ])("a session refuses %s", async (_name, method, headers, code) => {
    const cookie = await cookieFor({ key });
    const answer = await ask(cookie, "/v1/keys", { method, headers, body: { name: "x", scopes: ["read"] } });
    expect(answer.json.error.code).toBe(code);
  });

  it("leaves requests with a key as they are, whatever the browser says", async () => {
    const headers = { host: "evil.example", "sec-fetch-site": "cross-site", cookie: "kbsync-1=x" };
    expect((await running.send("GET", "/v1/me", { key, headers })).status).toBe(200);
  });

  it("a session ends when its key is revoked", async () => {
    const made = await running.send("POST", "/v1/keys", { key, body: { name: "x", scopes: ["read"] } });
    const cookie = await cookieFor({ key: made.json.data.key });
    await running.send("DELETE", `/v1/keys/${made.json.data._id}`, { key });
    expect((await ask(cookie)).json.error.code).toBe("session_ended");
  });

  it("a session ends when its key expires", async () => {
    const short = await running.issueKey("local", ["read"], new Date(START + HOUR_MS).toISOString());
    const cookie = await cookieFor({ key: short });
    nowMs += HOUR_MS;
    expect((await ask(cookie)).json.error.code).toBe("session_ended");
  });

  it("a session ends when its bearer signs out, which removes the cookie", async () => {
    const cookie = await cookieFor({ key });
    const answer = await ask(cookie, "/console/session", { method: "DELETE" });
    expect(answer.headers["set-cookie"]).toContain("Max-Age=0");
    expect((await ask(cookie)).json.error.code).toBe("session_ended");
  });
});

describe("the console's files", () => {
  const get = (path: string, headers: Record<string, string> = {}) =>
    running.send("GET", path, { key: null, headers });

  it("the console's files are served to this machine with headers that let them load nothing from elsewhere", async () => {
    const page = await get("/");
    expect(page).toMatchObject({ status: 200, text: PAGE });
    expect(page.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-cache",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "x-frame-options": "DENY",
    });
    const policy = String(page.headers["content-security-policy"]);
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
    ])
      expect(policy.split("; ")).toContain(rule);
  });

  it("the console's files are cached for ever by a browser, except the page", async () => {
    const script = await get("/assets/index-1.js");
    expect(script.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    expect((await get("/", { "if-none-match": '"p"' })).status).toBe(304);
  });

  it.each([
    ["gzip, deflate, br", "br"],
    ["gzip", "gzip"],
    ["br;q=0, gzip", "gzip"],
    ["identity", undefined],
  ])("the console's files are compressed as Accept-Encoding %s allows", async (accepted, coding) => {
    const page = await get("/", { "accept-encoding": accepted });
    expect(page.headers["content-encoding"]).toBe(coding);
    expect(page.text).toBe(coding === undefined ? PAGE : `${coding} ${PAGE}`);
  });

  it("the console's files are refused at a name that was made to lead here", async () => {
    const answer = await get("/", { host: "evil.example" });
    expect({ status: answer.status, code: answer.json.error.code }).toEqual({
      status: 421,
      code: "host_refused",
    });
  });
});
