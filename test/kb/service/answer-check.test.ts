import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CheckedAnswer } from "./answer-check.ts";
import { createBody, openRunning } from "./running.ts";
import type { Running } from "./running.ts";

let running: Running;
let made: Record<string, unknown>;
beforeAll(async () => {
  running = await openRunning();
  made = (await running.send("POST", "/api/rag/resource", { body: createBody() })).json.data;
});
afterAll(() => running.close());

const check = (change: Partial<CheckedAnswer>, body: unknown): void =>
  running.check({
    method: "POST",
    path: "/api/rag/resource",
    status: 201,
    contentType: "application/json",
    text: JSON.stringify(body),
    ...change,
  });
const created = (data: object) => ({ success: true, message: "", data });

describe("an answer of the service", () => {
  it("passes as the API document declares it", () => {
    expect(() => check({}, created(made))).not.toThrow();
  });

  it("passes with free keys only in the user's own data", () => {
    const metadata = { status: "chunked", warning: "Page 2 was not read.", own: { of: ["the", "user"] } };
    expect(() => check({}, created({ ...made, metadata }))).not.toThrow();
    expect(() => check({}, created({ ...made, metadata: { own: 1 } }))).toThrow(/status/);
  });

  it.each([
    { name: "a field that no schema names", change: { surprise: 1 }, says: /additional properties/ },
    { name: "a field less than promised", change: { ownerId: undefined }, says: /ownerId/ },
    { name: "a field of another type", change: { refreshedAt: 5 }, says: /refreshedAt/ },
    { name: "an id of another form", change: { _id: "x" }, says: /_id must match pattern/ },
  ])("an answer of the service fails with $name", ({ change, says }) => {
    expect(() => check({}, created({ ...made, ...change }))).toThrow(says);
  });

  it.each<{ name: string; change: Partial<CheckedAnswer>; body: unknown; says: RegExp }>([
    { name: "an undeclared status", change: { status: 204 }, body: {}, says: /204 is not declared/ },
    { name: "an undeclared type", change: { contentType: "text/html" }, body: {}, says: /text\/html/ },
    { name: "no refusal where nothing is", change: { path: "/nothing" }, body: {}, says: /nothing at this/ },
    {
      name: "a refusal without a code",
      change: { status: 404, path: "/nothing" },
      body: { success: false, message: "", error: {} },
      says: /code/,
    },
    {
      name: "an undeclared event",
      change: {
        path: "/api/v2/model/chat/completion",
        status: 200,
        contentType: "text/event-stream",
        text: "event: other\ndata: {}\n\n",
      },
      body: {},
      says: /the event other is not declared/,
    },
  ])("an answer of the service fails with $name", ({ change, body, says }) => {
    expect(() => check(change, body)).toThrow(says);
  });
});
