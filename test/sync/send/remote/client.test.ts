import { afterEach, beforeEach, expect, it } from "vitest";
import { answered, openClient } from "../../../../src/sync/send/remote/client.ts";
import type { Remote } from "../../../../src/sync/send/remote/remote.ts";
import { type FakeService, openFakeService } from "../../../fakes/knowledge-service.ts";

const { signal } = new AbortController();
let service: FakeService;
let remote: Remote;
beforeEach(async () => {
  service = await openFakeService({ collections: true });
  const address = { apiUrl: service.url, dbUrl: service.url, pauthkey: service.key };
  remote = openClient({ address, connections: 1, timeoutMs: 2000, patienceMs: 0 });
});
afterEach(async () => {
  await remote.close();
  await service.close();
});

const search = () =>
  answered("search", () =>
    remote.search({ query: "q", topK: 1, where: { collectionId: "c", ownerId: "o" } }, signal),
  );
const failure = (status: number, code: string) => {
  const body = JSON.stringify({ success: false, message: "its words", error: { code } });
  service.fault = ({ operation }) => (operation === "search" ? { kind: "answer", status, body } : undefined);
};

it.each([
  ["a refusal ends it, in the service's words", 400, "odd", { code: "service_refused", subject: "odd" }],
  ["a key that may not search ends it", 403, "scope", { code: "service_refused", subject: "forbidden" }],
  ["a refused key ends it", 401, "key", { code: "key_refused" }],
  ["a failure ends it after some time", 500, "broken", { code: "service_unreachable" }],
])("a command repeats its request until it is answered: %s", async (_what, status, code, expected) => {
  failure(status, code);
  await expect(search()).rejects.toMatchObject(expected);
});

it("gives nothing where what a command asks for does not exist", async () => {
  failure(404, "not_found");
  expect(await search()).toBeUndefined();
});
