import { afterAll, beforeAll, expect, it } from "vitest";
import type { DaemonHandlers } from "../../../../src/kb/http/routes/daemon-routes.ts";
import { DAEMON_API } from "../../../../src/wire/daemon.ts";
import { openRunning } from "../../service/running.ts";
import type { Running } from "../../service/running.ts";

let running: Running;
let asked: string[];
beforeAll(async () => {
  asked = [];
  const handlers = Object.keys(DAEMON_API).map((name) => [
    name,
    async () => {
      asked.push(name);
      return { sources: [] };
    },
  ]);
  running = await openRunning({ daemon: Object.fromEntries(handlers) as DaemonHandlers });
});
afterAll(() => running.close());

const pause = async (key: string): Promise<unknown> => {
  const { status, json } = await running.send("POST", "/v1/daemon/pause", { key, body: {} });
  return [status, json.error?.code];
};

it("reach the daemon with an admin key of its own account", async () => {
  expect(await pause(await running.issueKey("local", ["admin"]))).toEqual([200, undefined]);
  expect(asked).toEqual(["pause"]);
});

it("the operations of the daemon are refused to other keys of the account, and unknown to other accounts", async () => {
  asked = [];
  expect(await pause(await running.issueKey("local", ["read", "write", "chat"]))).toEqual([
    403,
    "scope_missing",
  ]);
  expect(await pause(await running.issueKey("elsewhere", ["admin"]))).toEqual([404, "route_not_found"]);
  expect(asked).toEqual([]);
});

it("the operations of the daemon are declared in /v1/me to those who may use them", async () => {
  const may = async (account: string, scope: "read" | "admin"): Promise<boolean> => {
    const key = await running.issueKey(account, [scope]);
    return (await running.send("GET", "/v1/me", { key })).json.data.daemon;
  };
  expect([await may("local", "admin"), await may("local", "read"), await may("other", "admin")]).toEqual([
    true,
    false,
    false,
  ]);
});

it("do not exist without a daemon", async () => {
  const alone = await openRunning();
  const answer = await alone.send("GET", "/v1/daemon/status");
  await alone.close();
  expect(answer.status).toBe(404);
});

it("describe every operation in the API document", async () => {
  const { json } = await running.send("GET", "/openapi.json", { key: null });
  const paths = Object.keys(json.paths).filter((path) => path.startsWith("/v1/daemon/"));
  expect(paths.toSorted()).toEqual(
    Object.keys(DAEMON_API)
      .map((name) => `/v1/daemon/${name}`)
      .toSorted(),
  );
});
