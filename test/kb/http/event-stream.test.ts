import Fastify from "fastify";
import { expect, it, vi } from "vitest";
import { openEventStream } from "../../../src/kb/http/event-stream.ts";

it("starts a stream with a ping after a silence that proxies might not tolerate", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  const server = Fastify();
  const silent = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  server.get("/", async (_request, reply) => {
    const events = openEventStream(reply, 60_000);
    asked.resolve();
    await silent.promise;
    expect(events.hasStarted()).toBe(true);
    events.send("completed", { done: true });
    events.end();
    return reply;
  });
  try {
    const answered = server.inject("/");
    await asked.promise;
    await vi.advanceTimersByTimeAsync(15_000);
    silent.resolve();
    const { statusCode, headers, body } = await answered;
    expect({ statusCode, type: headers["content-type"] }).toEqual({
      statusCode: 200,
      type: "text/event-stream; charset=utf-8",
    });
    expect(body).toBe(': still at it\n\nevent: completed\ndata: {"done":true}\n\n');
  } finally {
    vi.useRealTimers();
    await server.close();
  }
});
