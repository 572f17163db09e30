import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { hashKey, KEY_RECORDS_MAX, KEYS_MAX } from "../../../src/kb/keys/keys.ts";
import type { KeyRecord } from "../../../src/kb/store/accounts.ts";
import { openRunning } from "../service/running.ts";
import type { Answered, Running } from "../service/running.ts";

const START = Date.parse("2026-11-21T12:00:00.000Z");
const HOUR_MS = 3_600_000;

let nowMs = START;
let running: Running;
let admin: string;
beforeAll(async () => {
  running = await openRunning({ nowMs: () => nowMs });
  admin = await running.issueKey("local", ["admin"]);
});
beforeEach(() => {
  nowMs = START;
});
afterAll(() => running.close());

const ask = (method: string, path: string, body?: object): Promise<Answered> =>
  running.send(method, `/v1/keys${path}`, { key: admin, ...(body === undefined ? {} : { body }) });
const make = async (change: object = {}): Promise<{ _id: string; key: string }> =>
  (await ask("POST", "", { name: "reader", scopes: ["read"], ...change })).json.data;
const statusOf = async (key: string): Promise<number> =>
  (await running.send("GET", "/api/rag/collections", { key })).status;

describe("a key created by the API", () => {
  it("shows a new key once, applies its scopes, and does not store it", async () => {
    const answer = await ask("POST", "", { name: "reader", scopes: ["read", "read"] });
    expect(answer.status).toBe(201);
    const { key, _id, hint } = answer.json.data;
    expect(key).toMatch(/^kb_[A-Za-z0-9_-]{43}$/);
    expect(answer.json.data).toMatchObject({ scopes: ["read"], expiresAt: null, state: "valid" });
    expect(await statusOf(key)).toBe(200);
    expect((await running.send("POST", "/api/rag/resource", { key, body: {} })).status).toBe(403);
    const list = await ask("GET", "");
    expect(list.json.data.keys).toContainEqual(expect.objectContaining({ _id, hint, name: "reader" }));
    expect(key.startsWith(hint)).toBe(true);
    expect(list.text).not.toContain(key);
    expect(running.log()).not.toContain(key);
  });

  it.each([
    ["no name", { name: undefined }, "name"],
    ["a blank name", { name: "  " }, "name"],
    ["no scopes", { scopes: [] }, "scopes"],
    ["an unknown scope", { scopes: ["root"] }, "scopes[0]"],
    ["a time in the past", { expiresAt: "2020-01-01T00:00:00Z" }, "expiresAt"],
    ["a time without zone", { expiresAt: "2030-01-01T00:00:00" }, "expiresAt"],
    ["a day without time", { expiresAt: "2030-01-01" }, "expiresAt"],
  ])("refuses to create a key with %s", async (_name, change, field) => {
    const answer = await ask("POST", "", { name: "x", scopes: ["read"], ...change });
    expect({ status: answer.status, error: answer.json.error }).toMatchObject({
      status: 400,
      error: { code: "invalid_field", field },
    });
  });

  it("refuses a key after its expiry", async () => {
    const { _id, key } = await make({ expiresAt: "2026-11-21T15:00:00+02:00" });
    expect(await statusOf(key)).toBe(200);
    nowMs = START + HOUR_MS;
    const answer = await running.send("GET", "/api/rag/collections", { key });
    expect(answer.json.error.code).toBe("key_expired");
    const expired = { _id, state: "expired", expiresAt: "2026-11-21T13:00:00.000Z" };
    expect((await ask("GET", "")).json.data.keys).toContainEqual(expect.objectContaining(expired));
  });
});

describe("a revoked key", () => {
  it("refuses a revoked key from the next request on, like an unknown one", async () => {
    const { _id, key } = await make();
    expect(await statusOf(key)).toBe(200);
    const revoked = await ask("DELETE", `/${_id}`);
    expect(revoked.json.data).toMatchObject({
      _id,
      state: "revoked",
      revokedAt: new Date(START).toISOString(),
    });
    const answer = await running.send("GET", "/api/rag/collections", { key });
    expect({ status: answer.status, code: answer.json.error.code }).toEqual({
      status: 401,
      code: "key_unknown",
    });
  });

  it("lets a key revoke itself, for a program whose key has leaked", async () => {
    const { _id, key } = await make({ scopes: ["admin"] });
    const revoked = await running.send("DELETE", `/v1/keys/${_id}`, { key });
    expect(revoked).toMatchObject({ status: 200, json: { data: { _id, state: "revoked" } } });
    expect((await running.send("DELETE", `/v1/keys/${_id}`, { key })).json.error.code).toBe("key_unknown");
  });

  it("refuses a key that another process revoked within seconds, even if the clock is set back", async () => {
    const { _id, key } = await make();
    const account = (await running.store.records.accounts()).find(({ name }) => name === "local")?.id ?? "";
    expect(await statusOf(key)).toBe(200);
    nowMs += HOUR_MS;
    expect(await statusOf(key)).toBe(200);
    const revokedAt = new Date(nowMs).toISOString();
    await running.store.records.changeKey({ accountId: account, id: _id, revokedAt });
    nowMs -= HOUR_MS;
    expect(await statusOf(key)).toBe(401);
  });

  it("does not rotate, revoke or register a revoked key again", async () => {
    const { _id, key } = await make();
    await ask("DELETE", `/${_id}`);
    expect((await ask("POST", `/${_id}/rotate`)).status).toBe(404);
    expect((await ask("DELETE", `/${_id}`)).status).toBe(404);
    await running.service.acceptKey(key, {
      account: "local",
      name: "again",
      scopes: ["read"],
      createdAt: new Date(START).toISOString(),
      expiresAt: null,
    });
    expect(await statusOf(key)).toBe(401);
  });
});

describe("a rotation", () => {
  it("creates a key like the old one, which stays valid only during the overlap", async () => {
    const old = await make();
    const answer = await ask("POST", `/${old._id}/rotate`, { overlapSeconds: 60 });
    expect(answer.status).toBe(201);
    const { key, _id, previous } = answer.json.data;
    expect(answer.json.data).toMatchObject({ name: "reader", scopes: ["read"], expiresAt: null });
    expect(_id).not.toBe(old._id);
    expect(previous).toMatchObject({ _id: old._id, expiresAt: new Date(START + 60_000).toISOString() });
    expect([await statusOf(old.key), await statusOf(key)]).toEqual([200, 200]);
    nowMs = START + 60_000;
    expect([await statusOf(old.key), await statusOf(key)]).toEqual([401, 200]);
  });

  it("overlaps for a day by default; an overlap of 0 ends the old key at once", async () => {
    const one = await make();
    const { previous } = (await ask("POST", `/${one._id}/rotate`)).json.data;
    expect(previous.expiresAt).toBe(new Date(START + 24 * HOUR_MS).toISOString());
    const two = await make();
    await ask("POST", `/${two._id}/rotate`, { overlapSeconds: 0 });
    expect(await statusOf(two.key)).toBe(401);
  });

  it("a rotation never extends the old key, and gives the new one the same lifetime", async () => {
    const old = await make({ expiresAt: new Date(START + HOUR_MS).toISOString() });
    nowMs = START + HOUR_MS / 2;
    const { data } = (await ask("POST", `/${old._id}/rotate`)).json;
    expect(data.previous.expiresAt).toBe(new Date(START + HOUR_MS).toISOString());
    expect(data.expiresAt).toBe(new Date(START + 1.5 * HOUR_MS).toISOString());
  });
});

it("bounds the keys made by rotations, with a hint", async () => {
  const tenant = await running.issueKey("turner", ["admin"]);
  const first = (await running.store.records.keyByHash(hashKey(tenant))) as KeyRecord; // issued just now
  const over = new Date(START - HOUR_MS).toISOString();
  const others = Array.from({ length: KEY_RECORDS_MAX - 2 }, (_, at) => {
    const id = at.toString(16).padStart(23, "0") + "t";
    return running.store.records.putKey({
      ...first,
      id,
      sha256: `t${id.padStart(63, "0")}`,
      expiresAt: over,
    });
  });
  await Promise.all(others);
  const rotate = (id: string) => running.send("POST", `/v1/keys/${id}/rotate`, { key: tenant });
  const last = (await rotate(first.id)).json.data;
  const refused = await rotate(last._id);
  expect(refused).toMatchObject({ status: 409, json: { error: { code: "key_limit" } } });
  expect(refused.json.message).toContain("10000 keys");
  expect(refused.json.error.hint).toContain("account");
});

it("bounds the keys of an account", async () => {
  const tenant = await running.issueKey("tenant", ["admin"]);
  const create = () =>
    running.send("POST", "/v1/keys", { key: tenant, body: { name: "one of many", scopes: ["read"] } });
  const first = (await running.store.records.keyByHash(hashKey(tenant))) as KeyRecord; // issued just now
  const others = Array.from({ length: KEYS_MAX - 2 }, (_, at) => {
    const id = at.toString(16).padStart(24, "0");
    return running.store.records.putKey({ ...first, id, sha256: id.padStart(64, "0") });
  });
  await Promise.all(others);
  const last = (await create()).json.data;
  const refused = await create();
  expect({ status: refused.status, code: refused.json.error.code }).toEqual({
    status: 409,
    code: "key_limit",
  });
  const rotate = (overlapSeconds: number) =>
    running.send("POST", `/v1/keys/${last._id}/rotate`, { key: tenant, body: { overlapSeconds } });
  // A rotation with overlap would add a key; replacing a leaked key is always possible.
  const both = await rotate(60);
  expect({ status: both.status, code: both.json.error?.code }).toEqual({ status: 409, code: "key_limit" });
  expect(both.json.error.hint).toContain("overlapSeconds 0");
  const { data } = (await rotate(0)).json;
  expect((await create()).status).toBe(409);
  await running.send("DELETE", `/v1/keys/${data._id}`, { key: tenant });
  expect((await create()).status).toBe(201);
});
