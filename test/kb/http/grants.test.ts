import { afterAll, beforeAll, expect, it } from "vitest";
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
