import { afterAll, beforeAll, expect, it } from "vitest";
import { hashKey } from "../../../src/kb/keys/keys.ts";
import { openRunning, type Running } from "../service/running.ts";

let running: Running;
let nowMs = Date.parse("2030-01-01T00:00:00Z");
const HOUR_MS = 3_600_000;

beforeAll(async () => {
  running = await openRunning({ nowMs: () => nowMs });
}, 60_000);
afterAll(() => running.close());

interface Grant {
  readonly _id: string;
  readonly key: string;
  readonly refreshToken: string;
  readonly keyExpiresAt: string;
  readonly expiresAt: string;
}

async function grant(key: string): Promise<Grant> {
  const { status, json } = await running.send("POST", "/v1/grants", { key, body: { name: "a client" } });
  expect(status).toBe(201);
  return json.data;
}
async function refresh(refreshToken: string): Promise<{ status: number; data: Grant }> {
  const { status, json } = await running.send("POST", "/v1/grants/refresh", {
    key: null,
    body: { refreshToken },
  });
  return { status, data: json.data };
}
/** Status of a read with a key. */
async function reads(key: string): Promise<number> {
  return (await running.send("GET", "/api/rag/owners", { key })).status;
}
async function person(expiresAt: string | null = null): Promise<{ _id: string; key: string }> {
  const admin = await running.issueKey("local", ["admin"]);
  const body = { name: "a person", scopes: ["read", "write"], expiresAt };
  return (await running.send("POST", "/v1/keys", { key: admin, body })).json.data;
}
async function revoke(id: string): Promise<void> {
  const admin = await running.issueKey("local", ["admin"]);
  expect((await running.send("DELETE", `/v1/keys/${id}`, { key: admin })).status).toBe(200);
}

it("a derived key reads for an hour, and nothing else", async () => {
  const { key, keyExpiresAt } = await grant((await person()).key);
  expect(Date.parse(keyExpiresAt)).toBe(nowMs + HOUR_MS);
  expect(await reads(key)).toBe(200);
  for (const [method, url, body] of [
    ["POST", "/api/rag/resource", {}],
    ["GET", "/v1/keys", undefined],
    ["POST", "/v1/grants", { name: "another" }],
  ] as const) {
    const { status, json } = await running.send(method, url, { key, ...(body !== undefined && { body }) });
    expect([status, json.error.code]).toEqual([403, "scope_missing"]);
  }
  nowMs += HOUR_MS;
  expect(await reads(key)).toBe(401);
});

it("a refresh replaces both secrets; a second use of the same refresh token ends the grant", async () => {
  const first = await grant((await person()).key);
  nowMs += 2 * HOUR_MS;
  const { status, data: second } = await refresh(first.refreshToken);
  expect([status, second._id]).toEqual([200, first._id]);
  expect([await reads(first.key), await reads(second.key)]).toEqual([401, 200]);
  expect((await refresh(first.refreshToken)).status).toBe(401);
  expect(await reads(second.key)).toBe(401);
  expect((await refresh(second.refreshToken)).status).toBe(401);
});

it("a grant that is not refreshed for 30 days ends", async () => {
  const made = await grant((await person()).key);
  nowMs += 30 * 24 * HOUR_MS;
  expect((await refresh(made.refreshToken)).status).toBe(401);
});

it("revoking the person's key ends its grants, and so does its expiry", async () => {
  const one = await person();
  const made = await grant(one.key);
  await revoke(one._id);
  expect(await reads(made.key)).toBe(401);
  expect((await refresh(made.refreshToken)).status).toBe(401);
  const brief = await person(new Date(nowMs + 60_000).toISOString());
  const ending = await grant(brief.key);
  expect(ending.expiresAt).toBe(new Date(nowMs + 60_000).toISOString());
  expect(ending.keyExpiresAt).toBe(ending.expiresAt);
  nowMs += 60_000;
  expect(await reads(ending.key)).toBe(401);
  expect((await refresh(ending.refreshToken)).status).toBe(401);
});

it("a grant is listed among the keys, and is revoked as one, or by itself", async () => {
  const { key } = await person();
  const [made, own] = [await grant(key), await grant(key)];
  const admin = await running.issueKey("local", ["admin"]);
  const listed = (await running.send("GET", "/v1/keys", { key: admin })).json.data.keys;
  expect(listed).toContainEqual(expect.objectContaining({ _id: made._id, name: "a client", state: "valid" }));
  expect((await running.send("POST", `/v1/keys/${made._id}/rotate`, { key: admin, body: {} })).status).toBe(
    404,
  );
  await revoke(made._id);
  expect((await running.send("DELETE", "/v1/grants", { key: own.key })).status).toBe(200);
  for (const { key: ended, refreshToken } of [made, own]) {
    expect(await reads(ended)).toBe(401);
    expect((await refresh(refreshToken)).status).toBe(401);
  }
  expect((await running.send("DELETE", "/v1/grants", { key })).status).toBe(404);
});

it("the store holds no secret of a grant in the clear", async () => {
  const made = await grant((await person()).key);
  const stored = JSON.stringify(
    await running.store.records.keys((await running.store.records.accounts())[0]?.id ?? ""),
  );
  expect(stored).toContain(made._id);
  expect(stored).not.toContain(made.key.slice(12));
  expect(stored).not.toContain(made.refreshToken.slice(30));
});

it("a refresh token that was never issued ends nothing, even with the id of a grant", async () => {
  const made = await grant((await person()).key);
  const [last] = made.refreshToken.slice(-1);
  const forged = [
    `kbr_${made._id}_${"x".repeat(43)}`,
    `kbr_${made._id}_${"x".repeat(43)}_${"x".repeat(43)}`,
    made.refreshToken.slice(0, -1),
    `kbr_${"f".repeat(24)}${made.refreshToken.slice(28)}`,
    `${made.refreshToken}${last}`,
  ];
  for (const token of forged) expect((await refresh(token)).status).toBe(401);
  expect(await reads(made.key)).toBe(200);
  expect((await refresh(made.refreshToken)).status).toBe(200);
});

it("a key has at most 100 grants; one more ends the one that was refreshed longest ago", async () => {
  const { key } = await person();
  const first = await grant(key);
  const second = await grant(key);
  nowMs += 1000;
  const { data: refreshed } = await refresh(first.refreshToken);
  for (let made = 2; made < 100; made++) await grant(key);
  expect([await reads(refreshed.key), await reads(second.key)]).toEqual([200, 200]);
  await grant(key);
  expect([await reads(refreshed.key), await reads(second.key)]).toEqual([200, 401]);
});

it("ended grants leave no records, and grants take no places of keys", async () => {
  const { key, _id } = await person();
  const accountId = (await running.store.records.keyByHash(hashKey(key)))?.accountId ?? "";
  const grants = async () =>
    (await running.store.records.keys(accountId)).filter((record) => record.grant !== undefined).length;
  await grant(key);
  nowMs += 40 * 24 * HOUR_MS;
  await running.send("DELETE", "/v1/grants", { key: (await grant(key)).key });
  await revoke(_id);
  await grant((await person()).key);
  expect(await grants()).toBe(1);
});

it("the scopes and the expiry of a grant cannot be changed", async () => {
  const made = await grant((await person()).key);
  const admin = await running.issueKey("local", ["admin"]);
  const change = (body: object) => running.send("PUT", `/v1/keys/${made._id}`, { key: admin, body });
  for (const body of [{ scopes: ["admin"] }, { expiresAt: null }]) {
    expect((await change(body)).status).toBe(400);
  }
  expect((await change({ name: "renamed" })).json.data).toMatchObject({ name: "renamed", scopes: ["read"] });
});

it("a console session of a grant ends with its key, and does not hinder the refresh", async () => {
  const made = await grant((await person()).key);
  const headers = { "sec-fetch-site": "same-origin", origin: running.url, "x-kbsync-console": "1" };
  const body = { key: made.key };
  expect((await running.send("POST", "/console/session", { key: null, body, headers })).status).toBe(200);
  expect((await refresh(made.refreshToken)).status).toBe(200);
  const other = await grant((await person()).key);
  await running.send("POST", "/console/session", { key: null, body: { key: other.key }, headers });
  nowMs += 40 * 24 * HOUR_MS;
  await grant((await person()).key);
});

it("the grants of a key share one rate", async () => {
  const limited = await openRunning({ rate: { perMinute: 1, burst: 3 } });
  const made = () => limited.send("POST", "/v1/grants", { body: { name: "a client" } });
  const [one, other] = [(await made()).json.data.key, (await made()).json.data.key];
  const read = async (key: string) => (await limited.send("GET", "/api/rag/owners", { key })).status;
  const statuses = [await read(one), await read(other), await read(one), await read(other), await read(one)];
  expect([...statuses, await read(limited.key)]).toEqual([200, 200, 200, 429, 429, 200]);
  await limited.close();
});
