import { Writable } from "node:stream";
import Fastify from "fastify";
import type { FastifyReply } from "fastify";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openEventStream, type EventStream } from "../../../../src/kb/http/streams/event-stream.ts";

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

/** The part of an answer that a stream uses. Its client reads only on demand. */
class Answer extends Writable {
  readonly heads: unknown[] = [];
  text = "";
  idleMs = 0;
  #idle: (() => void) | undefined;
  #reads: (() => void)[] = [];
  constructor() {
    super({ highWaterMark: 200 });
  }
  writeHead(status: number, headers: object): void {
    this.heads.push([status, headers]);
  }
  setTimeout(ms: number, idle: () => void): void {
    this.idleMs = ms;
    this.#idle = idle;
  }
  override _write(part: Buffer, _encoding: string, done: () => void): void {
    this.text += part.toString();
    this.#reads.push(done);
  }
  readAll(): void {
    for (let read = this.#reads.shift(); read !== undefined; read = this.#reads.shift()) read();
  }
  fallSilent(): void {
    this.#idle?.();
  }
}

describe("a stream of events", () => {
  const PING = ": still at it\n\n";
  let answer: Answer;
  let hijacked: number;
  let events: EventStream;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
    answer = new Answer();
    hijacked = 0;
    const reply = { raw: answer, request: { id: "id1" }, hijack: () => (hijacked += 1) };
    events = openEventStream(reply as unknown as FastifyReply, 60_000); // all that a stream uses of it
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("sends its head once, with the first event, and the id of an event before it", () => {
    expect([events.hasStarted(), answer.heads]).toEqual([false, []]);
    events.send("state", { a: "b\nc" });
    events.send("change", {}, "7");
    expect([events.hasStarted(), hijacked]).toEqual([true, 1]);
    answer.readAll();
    expect(answer.text).toBe('event: state\ndata: {"a":"b\\nc"}\n\nid: 7\nevent: change\ndata: {}\n\n');
    expect(answer.heads).toEqual([
      [
        200,
        {
          "content-type": "text/event-stream; charset=utf-8",
          "cache-control": "no-store",
          "x-accel-buffering": "no",
          "x-request-id": "id1",
        },
      ],
    ]);
  });

  it("pings after each 15 seconds of silence while the client reads", () => {
    events.send("state", {});
    answer.readAll();
    const sent = answer.text;
    vi.advanceTimersByTime(14_999);
    events.send("state", {});
    answer.readAll();
    vi.advanceTimersByTime(14_999);
    expect(answer.text).toBe(sent + sent);
    vi.advanceTimersByTime(1);
    expect(answer.text).toBe(sent + sent + PING);
    // The client has not read the ping.
    vi.advanceTimersByTime(30_000);
    expect(answer.text).toBe(sent + sent + PING);
    answer.readAll();
    vi.advanceTimersByTime(15_000);
    expect(answer.text).toBe(sent + sent + PING + PING);
  });

  it("sends nothing once it is cancelled, has ended, or its client has left", () => {
    events.cancel();
    vi.advanceTimersByTime(60_000);
    expect([answer.text, answer.heads]).toEqual(["", []]);
    events.send("state", {});
    events.end();
    answer.readAll();
    const sent = answer.text;
    vi.advanceTimersByTime(60_000);
    expect([answer.text, answer.writableEnded]).toEqual([sent, true]);
    answer.destroy();
    events.send("state", {});
    expect(answer.text).toBe(sent);
  });

  it("starts no ping for a client that left before the first", async () => {
    answer.destroy();
    await new Promise(setImmediate);
    vi.advanceTimersByTime(60_000);
    expect(answer.heads).toEqual([]);
  });

  it("disconnects a client that does not read, and none that does", () => {
    events.send("state", {});
    expect(answer.idleMs).toBe(60_000);
    answer.readAll();
    answer.fallSilent();
    expect(answer.destroyed).toBe(false);
    events.send("state", {});
    answer.fallSilent();
    expect(answer.destroyed).toBe(true);
  });

  it("a stream of events is drained when the client has read enough, or has left", async () => {
    events.send("state", {});
    await events.drained();
    let drained = 0;
    const wait = async (): Promise<void> => {
      await events.drained();
      drained += 1;
    };
    events.send("state", { text: "x".repeat(500) });
    const waiting = wait();
    await new Promise(setImmediate);
    expect(drained).toBe(0);
    answer.readAll();
    await waiting;
    events.send("state", { text: "x".repeat(500) });
    const left = wait();
    answer.destroy();
    await left;
    await events.drained();
    expect([drained, answer.listenerCount("drain")]).toEqual([2, 0]);
  });
});
