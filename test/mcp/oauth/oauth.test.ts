import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import {
  Client,
  discoverOAuthServerInfo,
  exchangeAuthorization,
  refreshAuthorization,
  startAuthorization,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { request } from "undici";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { openMcpHttp, type McpHttp } from "../../../src/mcp/http.ts";
import { NO_FILES } from "../../../src/mcp/known-files.ts";
import { openServiceConnections } from "../../../src/mcp/service.ts";
import { createBody, openRunning, type Running } from "../../kb/service/running.ts";

const CLIENT = "https://client.example/mcp.json";
const OTHER = "https://other.example/mcp.json";
const REDIRECT = "https://client.example/callback";
const HOUR_MS = 3_600_000;

let service: Running;
let mcp: McpHttp;
let origin: string;
let resource: string;
let nowMs = Date.now();
const connections = openServiceConnections();
const defects: unknown[] = [];
const documents = new Map<string, unknown>();
let reads = 0;

/** Serves MCP with sign-in; the public URL is the one it listens on. */
async function open(port = 0): Promise<McpHttp> {
  const options = {
    port,
    version: "0.0.0-test",
    nowMs: () => nowMs,
    onDefect: (error: unknown) => defects.push(error),
    callerOf: (key: string) => ({
      reach: () =>
        Promise.resolve({
          service: connections.as({ apiUrl: service.url, dbUrl: service.url, pauthkey: key }),
          ownsLedger: false,
        }),
      files: () => NO_FILES,
    }),
  };
  if (port === 0) {
    const free = await openMcpHttp(options);
    await free.close();
    return open(Number(new URL(free.url).port));
  }
  const signIn = {
    publicUrl: `http://127.0.0.1:${port}`,
    secret: "s".repeat(43),
    readDocument: async (url: URL) => {
      reads += 1;
      if (!documents.has(url.href)) throw new Error("404");
      return JSON.stringify(documents.get(url.href));
    },
  };
  return openMcpHttp({ ...options, signIn });
}

beforeAll(async () => {
  service = await openRunning({ nowMs: () => nowMs });
  await service.send("POST", "/api/rag/resource", { body: createBody({ title: "Tides" }) });
  mcp = await open();
  ({ origin } = new URL(mcp.url));
  resource = mcp.url;
}, 60_000);
beforeEach(() => {
  // Past the cache of documents and the minute of failed attempts.
  nowMs += 10 * 60_000;
  documents.clear();
  documents.set(CLIENT, document(CLIENT));
  documents.set(OTHER, { ...document(OTHER), redirect_uris: ["https://other.example/callback"] });
});
afterAll(async () => {
  await mcp.close();
  await connections.close();
  await service.close();
  assert.deepEqual(defects, []);
});

const document = (id: string) => ({
  client_id: id,
  client_name: "A <b>client</b>",
  redirect_uris: [REDIRECT, "http://127.0.0.1:3000/back", "http://localhost/back"],
  token_endpoint_auth_method: "none",
});

const VERIFIER = "v".repeat(43);
const CHALLENGE = createHash("sha256").update(VERIFIER).digest("base64url");

const asked = (change: Record<string, string | undefined> = {}): Record<string, string> =>
  defined({
    response_type: "code",
    client_id: CLIENT,
    redirect_uri: REDIRECT,
    code_challenge: CHALLENGE,
    code_challenge_method: "S256",
    resource,
    state: "s t&ä",
    ...change,
  });

function defined(values: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly text: string;
}

async function get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
  const { statusCode, headers: sent, body } = await request(origin + path, { headers });
  return { status: statusCode, headers: sent, text: await body.text() };
}
const page = (change?: Record<string, string | undefined>): Promise<Answer> =>
  get(`/oauth/authorize?${new URLSearchParams(asked(change)).toString()}`);

async function post(
  path: string,
  form: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const {
    statusCode,
    headers: sent,
    body,
  } = await request(origin + path, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    body: new URLSearchParams(form).toString(),
  });
  return { status: statusCode, headers: sent, text: await body.text() };
}

const signedIn = (html: string): string => /name="request" value="([^"]+)"/.exec(html)?.[1] ?? "";
const decide = (
  form: Record<string, string>,
  headers: Record<string, string> = { origin },
): Promise<Answer> => post("/oauth/authorize", form, headers);

/** Allows what a page asks for, and returns the address that the browser is sent to. */
async function allow(change?: Record<string, string | undefined>, key = service.key): Promise<URL> {
  const { text } = await page(change);
  const { status, headers } = await decide({ request: signedIn(text), decision: "allow", key });
  expect(status).toBe(303);
  return new URL(String(headers["location"]));
}
const codeIn = (url: URL): string => url.searchParams.get("code") ?? "";

async function token(
  form: Record<string, string>,
): Promise<{ status: number; json: Record<string, unknown> }> {
  const { status, text, headers } = await post("/oauth/token", form);
  expect(headers["cache-control"]).toBe("no-store");
  return { status, json: JSON.parse(text) };
}
const exchange = (code: string, change: Record<string, string | undefined> = {}) =>
  token(
    defined({
      grant_type: "authorization_code",
      code,
      client_id: CLIENT,
      redirect_uri: REDIRECT,
      code_verifier: VERIFIER,
      resource,
      ...change,
    }),
  );
const refresh = (refreshToken: unknown, change: Record<string, string | undefined> = {}) =>
  token(
    defined({
      grant_type: "refresh_token",
      refresh_token: String(refreshToken),
      client_id: CLIENT,
      resource,
      ...change,
    }),
  );
/** Status of an MCP request with a token. */
async function statusWith(bearer: unknown, url = mcp.url): Promise<number> {
  // Past the time for which an accepted key is cached.
  nowMs += 6000;
  const { statusCode, body } = await request(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: `Bearer ${String(bearer)}`,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
  });
  await body.dump();
  return statusCode;
}

describe("a client of the SDK", () => {
  it("finds the way from the refusal to a token, searches with it, and refreshes it", async () => {
    const refused = await request(mcp.url, { method: "POST" });
    await refused.body.dump();
    expect(refused.statusCode).toBe(401);
    const challenge = String(refused.headers["www-authenticate"]);
    expect(challenge).toContain(`resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`);
    expect(challenge).toContain('scope="read"');

    const found = await discoverOAuthServerInfo(mcp.url);
    expect(found.resourceMetadata).toMatchObject({
      resource,
      authorization_servers: [origin],
      scopes_supported: ["read"],
    });
    const metadata = found.authorizationServerMetadata;
    expect(metadata).toMatchObject({
      issuer: origin,
      code_challenge_methods_supported: ["S256"],
      client_id_metadata_document_supported: true,
      authorization_response_iss_parameter_supported: true,
    });
    expect(metadata).not.toHaveProperty("registration_endpoint");
    const clientInformation = { client_id: CLIENT };
    const common = {
      ...(metadata !== undefined && { metadata }),
      clientInformation,
      resource: new URL(resource),
    };
    const { authorizationUrl, codeVerifier } = await startAuthorization(origin, {
      ...common,
      redirectUrl: REDIRECT,
      state: "mine",
      scope: "read",
    });
    const shown = await get(authorizationUrl.pathname + authorizationUrl.search);
    expect(shown.status).toBe(200);
    const { headers } = await decide({ request: signedIn(shown.text), decision: "allow", key: service.key });
    const back = new URL(String(headers["location"]));
    expect([
      back.origin + back.pathname,
      back.searchParams.get("state"),
      back.searchParams.get("iss"),
    ]).toEqual([REDIRECT, "mine", origin]);
    const tokens = await exchangeAuthorization(origin, {
      ...common,
      authorizationCode: codeIn(back),
      codeVerifier,
      redirectUri: REDIRECT,
      iss: back.searchParams.get("iss") ?? "",
    });
    expect(tokens.expires_in).toBe(3600);
    const client = new Client({ name: "test", version: "1" });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(mcp.url), {
        requestInit: { headers: { authorization: `Bearer ${tokens.access_token}` } },
      }),
    );
    const { structuredContent } = await client.callTool({ name: "search", arguments: { query: "moon" } });
    expect(structuredContent).toMatchObject({ results: [{ title: "Tides" }] });
    await client.close();
    nowMs += HOUR_MS;
    expect(await statusWith(tokens.access_token)).toBe(401);
    const next = await refreshAuthorization(origin, { ...common, refreshToken: tokens.refresh_token ?? "" });
    expect(await statusWith(next.access_token)).toBe(200);
  });

  it("finds the metadata at the root as well, from any web page", async () => {
    for (const path of ["/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"]) {
      const { status: found, text } = await get(path);
      expect([found, JSON.parse(text)]).toEqual([
        200,
        expect.objectContaining({ scopes_supported: ["read"] }),
      ]);
    }
  });

  it("a client of the SDK may bring a key of the service instead", async () => {
    expect(await statusWith(service.key)).toBe(200);
  });
});

describe("the consent page", () => {
  it("shows name, host and redirect address, escaped, and can be neither framed nor scripted", async () => {
    const { status: shown, text, headers } = await page();
    expect(shown).toBe(200);
    expect(text).toContain("A &#60;b&#62;client&#60;/b&#62;");
    expect(text).toContain("<dd>client.example</dd>");
    expect(text).toContain(`<dd>${REDIRECT}</dd>`);
    expect(text).not.toMatch(/<script|<b>client/);
    expect(headers).toMatchObject({
      "x-frame-options": "DENY",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    });
    const policy = String(headers["content-security-policy"]);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
  });

  it("lets its form lead to the client's address, and from there on", async () => {
    documents.set(CLIENT, { ...document(CLIENT), redirect_uris: [REDIRECT, "http://[::1]/back"] });
    const policyOf = async (uri: string) =>
      String((await page({ redirect_uri: uri })).headers["content-security-policy"]);
    // A policy cannot name an IPv6 address, and browsers apply it to the redirects of the client as well.
    expect(await policyOf("http://[::1]:5/back")).toContain("form-action 'self' https: http:;");
    expect(await policyOf(REDIRECT)).toContain("form-action 'self' https:;");
  });

  it("warns of a redirect to the person's own machine", async () => {
    expect((await page()).text).not.toContain("own machine");
    expect((await page({ redirect_uri: "http://127.0.0.1:4000/back" })).text).toContain("own machine");
  });

  it("the consent page is decided by its own form alone", async () => {
    const form = { request: signedIn((await page()).text), decision: "allow", key: service.key };
    for (const headers of [
      {},
      { origin: "https://evil.example" },
      { origin: "null" },
      { origin: "http://127.0.0.1:1" },
    ]) {
      expect((await decide(form, headers)).headers["location"]).toBeUndefined();
    }
    const forged = Buffer.from(form.request.split(".")[0] ?? "", "base64url")
      .toString()
      .replace(REDIRECT, "https://evil.example/x");
    const changed = `${Buffer.from(forged).toString("base64url")}.${form.request.split(".")[1]}`;
    for (const one of [changed, "", "a.b", form.request.slice(1)]) {
      expect(await decide({ ...form, request: one })).toMatchObject({ status: 400 });
    }
    nowMs += 10 * 60_000;
    expect(await decide(form)).toMatchObject({ status: 400 });
  });

  it("sends a denial to the client, without a key", async () => {
    const { headers } = await decide({ request: signedIn((await page()).text), decision: "deny", key: "" });
    const back = new URL(String(headers["location"]));
    expect(Object.fromEntries(back.searchParams)).toEqual({
      error: "access_denied",
      iss: origin,
      state: "s t&ä",
    });
  });

  it.each([
    ["an unknown key", () => Promise.resolve("kb_made_up"), /does not know this key/],
    ["an expired key", () => service.issueKey("local", ["read"], "2020-01-01T00:00:00Z"), /has expired/],
    ["a key that may not read", () => service.issueKey("local", ["write"]), /may not read/],
    ["no key", () => Promise.resolve(" "), /Enter a key/],
  ])("refuses %s, and stays", async (_name, keyOf, message) => {
    const form = { request: signedIn((await page()).text), decision: "allow", key: await keyOf() };
    const { headers, text } = await decide(form);
    expect(headers["location"]).toBeUndefined();
    expect(text).toMatch(message);
    expect(text).not.toContain("kb_made_up");
    expect((await decide({ ...form, request: signedIn(text), key: service.key })).status).toBe(303);
  });

  it("the consent page does not let keys be tried out", async () => {
    const form = { request: signedIn((await page()).text), decision: "allow", key: "kb_guess" };
    const answers = [];
    for (let tries = 0; tries < 25; tries++) answers.push((await decide(form)).status);
    expect(answers).toEqual([...Array<number>(20).fill(403), ...Array<number>(5).fill(429)]);
    const right = await decide({ ...form, key: service.key });
    expect([right.status, right.headers["retry-after"]]).toEqual([429, "60"]);
    nowMs += 60_000;
    expect((await decide({ ...form, key: service.key })).status).toBe(303);
  });
});

describe("a request for access", () => {
  it.each([
    ["to an address of another site", { redirect_uri: "https://evil.example/callback" }],
    ["to an address that only begins like the client's", { redirect_uri: `${REDIRECT}/../evil` }],
    ["to the client's address with a query", { redirect_uri: `${REDIRECT}?next=https://evil.example` }],
    ["to the client's address in upper case", { redirect_uri: REDIRECT.toUpperCase() }],
    ["to the client's host on another port", { redirect_uri: "https://client.example:8443/callback" }],
    ["to a user of the client's host", { redirect_uri: "https://client.example@evil.example/callback" }],
    ["to a script", { redirect_uri: "javascript:alert(1)" }],
    ["to another path of this machine", { redirect_uri: "http://127.0.0.1:3000/other" }],
    ["to a host that begins like this machine", { redirect_uri: "http://127.0.0.1:3000@evil.example/back" }],
    ["to no address", { redirect_uri: undefined }],
    ["without PKCE", { code_challenge: undefined, code_challenge_method: undefined }],
    ["with plain PKCE", { code_challenge_method: "plain" }],
    ["with PKCE of no method, which means plain", { code_challenge_method: undefined }],
    ["with a short challenge", { code_challenge: "abc" }],
    ["for a token in the address", { response_type: "token" }],
    ["for another resource", { resource: "https://bank.example/mcp" }],
    ["for a resource that begins like this one", { resource: "http://127.0.0.1/mcp" }],
    ["for no resource", { resource: undefined }],
    ["of a client without a document", { client_id: "https://nobody.example/mcp.json" }],
    ["of a client without HTTPS", { client_id: "http://client.example/mcp.json" }],
    ["of a client that is a host", { client_id: "https://client.example/" }],
    ["of a client with a password", { client_id: "https://a:b@client.example/mcp.json" }],
    ["of a client in another spelling", { client_id: "https://client.example/x/../mcp.json" }],
    ["of a client that is no address", { client_id: "client" }],
  ])("%s is refused without a redirect", async (_name, change) => {
    const { status: refused, headers, text } = await page(change);
    expect([refused, headers["location"]]).toEqual([400, undefined]);
    expect(text).not.toContain("evil");
    expect(headers["content-security-policy"]).toContain("form-action 'none'");
  });

  it("a request for access with a parameter that is sent twice is refused", async () => {
    const query = new URLSearchParams(asked());
    query.append("redirect_uri", "https://evil.example/callback");
    expect((await get(`/oauth/authorize?${query.toString()}`)).status).toBe(400);
  });

  it.each([
    ["of another client", { client_id: OTHER }],
    ["without a name", { client_name: "\u202e \u0000" }],
    ["without addresses", { redirect_uris: [] }],
    ["with a secret", { token_endpoint_auth_method: "client_secret_post" }],
    ["that is a list", []],
  ])("a request for access is refused for a document %s", async (_name, change) => {
    documents.set(CLIENT, Array.isArray(change) ? change : { ...document(CLIENT), ...change });
    expect((await page()).status).toBe(400);
  });

  it("a request for access may go to any port of the person's machine, and reads a document once", async () => {
    reads = 0;
    for (const uri of ["http://127.0.0.1:61000/back", "http://127.0.0.1/back", "http://localhost:5/back"]) {
      expect((await page({ redirect_uri: uri })).status).toBe(200);
    }
    expect((await page({ redirect_uri: "http://[::1]:5/back" })).status).toBe(400);
    expect(reads).toBe(1);
  });
});

describe("a code", () => {
  it("a code is exchanged once; its second use ends what the first one gave", async () => {
    const code = codeIn(await allow());
    const { status: first, json } = await exchange(code);
    expect([first, await statusWith(json["access_token"])]).toEqual([200, 200]);
    expect(await exchange(code)).toMatchObject({ status: 400, json: { error: "invalid_grant" } });
    expect(await statusWith(json["access_token"])).toBe(401);
    expect((await refresh(json["refresh_token"])).json).toMatchObject({ error: "invalid_grant" });
  });

  it("the second use of a code ends what the first one gave also if that was refreshed since", async () => {
    const code = codeIn(await allow());
    const { json: stolen } = await exchange(code);
    const { json: refreshed } = await refresh(stolen["refresh_token"]);
    expect((await exchange(code)).status).toBe(400);
    expect(await statusWith(refreshed["access_token"])).toBe(401);
    expect((await refresh(refreshed["refresh_token"])).status).toBe(400);
  });

  it("a code may be exchanged without the redirect address, as in OAuth 2.1", async () => {
    expect((await exchange(codeIn(await allow()), { redirect_uri: undefined })).status).toBe(200);
  });

  it.each([
    ["grant_type", exchange],
    ["code", exchange],
    ["client_id", exchange],
    ["code_verifier", exchange],
    ["refresh_token", (_token: string, change: object) => refresh("x", { ...change })],
    ["client_id", (_token: string, change: object) => refresh("x", { ...change })],
  ])("a code is not looked up without %s", async (name, send) => {
    const code = codeIn(await allow());
    expect((await send(code, { [name]: undefined })).json).toMatchObject({ error: "invalid_request" });
    expect((await exchange(code)).status).toBe(200);
  });

  it.each([
    ["another client", { client_id: OTHER }],
    ["another redirect address", { redirect_uri: "http://127.0.0.1:3000/back" }],
    ["another verifier", { code_verifier: "w".repeat(43) }],
    ["the challenge as verifier", { code_verifier: CHALLENGE }],
  ])("a code is worth nothing to %s, nor to its client then", async (_name, change) => {
    const code = codeIn(await allow());
    expect(await exchange(code, change)).toMatchObject({ status: 400, json: { error: "invalid_grant" } });
    expect(await exchange(code)).toMatchObject({ status: 400, json: { error: "invalid_grant" } });
  });

  it("a code is refused for another resource, after a minute, and if it is made up", async () => {
    const code = codeIn(await allow());
    expect((await exchange(code, { resource: "https://bank.example/mcp" })).json).toMatchObject({
      error: "invalid_target",
    });
    nowMs += 60_000;
    expect((await exchange(code)).json).toMatchObject({ error: "invalid_grant" });
    expect((await exchange("made-up")).json).toMatchObject({ error: "invalid_grant" });
    expect((await exchange(code, { grant_type: "password" })).json).toMatchObject({
      error: "unsupported_grant_type",
    });
  });
});

describe("a token", () => {
  const grant = async (key?: string): Promise<Record<string, unknown>> =>
    (await exchange(codeIn(await allow({}, key)))).json;

  it("a token is refused by another server on the same service", async () => {
    const other = await open();
    const { access_token: access } = await grant();
    expect([await statusWith(access), await statusWith(access, other.url)]).toEqual([200, 401]);
    await other.close();
  });

  it("a token is no key of the service, and contains none", async () => {
    const { access_token: access, refresh_token: refreshToken } = await grant();
    for (const given of [String(access), String(refreshToken)]) {
      const parts = [given, ...given.split("."), Buffer.from(given.slice(4), "base64url").toString("latin1")];
      for (const part of parts) {
        expect(part).not.toMatch(/kbr?_/);
        if (!/^[\x21-\x7e]+$/.test(part)) continue;
        expect((await service.send("GET", "/api/rag/owners", { key: part })).status).toBe(401);
        expect((await refresh(part, { client_id: OTHER })).status).toBe(400);
      }
    }
  });

  it("a token is refused if a single character differs", async () => {
    const given = String((await grant())["access_token"]);
    for (let at = 0; at < given.length; at += 9) {
      const changed = given.slice(0, at) + (given[at] === "A" ? "B" : "A") + given.slice(at + 1);
      expect(await statusWith(changed)).toBe(401);
    }
    expect(await statusWith(given)).toBe(200);
  });

  it("a token is refreshed by its own client, once, and not after 30 days", async () => {
    const first = await grant();
    expect((await refresh(first["refresh_token"], { client_id: OTHER })).json).toMatchObject({
      error: "invalid_grant",
    });
    expect((await refresh(first["access_token"])).json).toMatchObject({ error: "invalid_grant" });
    const { json: second } = await refresh(first["refresh_token"]);
    expect([await statusWith(first["access_token"]), await statusWith(second["access_token"])]).toEqual([
      401, 200,
    ]);
    expect((await refresh(first["refresh_token"])).json).toMatchObject({ error: "invalid_grant" });
    expect(await statusWith(second["access_token"])).toBe(401);
    const old = await grant();
    nowMs += 30 * 24 * HOUR_MS;
    expect((await refresh(old["refresh_token"])).json).toMatchObject({ error: "invalid_grant" });
  });

  it("a token ends with the person's key", async () => {
    const admin = await service.issueKey("local", ["admin"]);
    const body = { name: "a person", scopes: ["read"] };
    const person = (await service.send("POST", "/v1/keys", { key: admin, body })).json.data;
    const made = await grant(person.key);
    expect(await statusWith(made["access_token"])).toBe(200);
    await service.send("DELETE", `/v1/keys/${person._id}`, { key: admin });
    expect(await statusWith(made["access_token"])).toBe(401);
    expect((await refresh(made["refresh_token"])).json).toMatchObject({ error: "invalid_grant" });
  });
});

it("serves holders of keys while strangers send slow forms", async () => {
  const { port } = new URL(origin);
  const strangers = Array.from({ length: 70 }, () => {
    const socket = connect(Number(port), "127.0.0.1");
    const type = "content-type: application/x-www-form-urlencoded";
    socket.write(`POST /oauth/token HTTP/1.1\r\nhost: 127.0.0.1\r\n${type}\r\ncontent-length: 9\r\n\r\n`);
    return socket;
  });
  // One too many is refused, so that all slots are taken.
  const refused = await Promise.any(strangers.map((socket) => once(socket, "data")));
  expect(String(refused[0])).toContain("503");
  expect(await statusWith(service.key)).toBe(200);
  for (const socket of strangers) socket.destroy();
});

it("reveals nothing of the service behind it to strangers", async () => {
  const gone = await openMcpHttp({
    port: 0,
    version: "0.0.0-test",
    nowMs: () => nowMs,
    onDefect: (error: unknown) => defects.push(error),
    callerOf: () => ({
      reach: () => Promise.reject(unreachable()),
      files: () => NO_FILES,
    }),
    signIn: {
      publicUrl: "http://127.0.0.1",
      secret: "s".repeat(43),
      readDocument: () => Promise.resolve(JSON.stringify(document(CLIENT))),
    },
  });
  const at = new URL(gone.url).origin;
  const refused = await request(gone.url, { method: "POST", headers: { authorization: "Bearer kb_x" } });
  const query = new URLSearchParams(asked({ resource: "http://127.0.0.1/mcp" })).toString();
  const shown = await request(`${at}/oauth/authorize?${query}`);
  const form = { request: signedIn(await shown.body.text()), decision: "allow", key: "kb_x" };
  const decided = await request(`${at}/oauth/authorize`, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", origin: "http://127.0.0.1" },
    body: new URLSearchParams(form).toString(),
  });
  for (const { statusCode, body } of [refused, decided]) {
    const text = await body.text();
    expect([statusCode, text]).toEqual([503, expect.stringContaining("cannot be reached")]);
    expect(text).not.toContain("/home/ann");
  }
  await gone.close();
});

const unreachable = (): KbsyncError =>
  new KbsyncError("no service runs on the state folder /home/ann/.kbsync", {
    code: "service_unreachable",
    retryable: true,
    hint: "Start it in /home/ann.",
  });

it("serves no other host name than its own", async () => {
  expect((await get("/.well-known/oauth-authorization-server", { host: "rebound.example" })).status).toBe(
    403,
  );
});
