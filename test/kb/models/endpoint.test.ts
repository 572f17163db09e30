import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { readModelStream } from "../../../src/kb/models/endpoint.ts";

/** Reads chunks of a stream; returns its events, and whether it ended with its mark. */
async function read(chunks: readonly string[]): Promise<{ events: unknown[]; isDone: boolean }> {
  const stream = readModelStream(Readable.from(chunks.map((chunk) => Buffer.from(chunk, "latin1"))));
  const events: unknown[] = [];
  for (;;) {
    const next = await stream.next();
    if (next.done) return { events, isDone: next.value };
    events.push(next.value);
  }
}

const utf8 = (text: string): string => Buffer.from(text).toString("latin1");

it.each<[string, string, unknown[], boolean]>([
  ["a stream with the mark at its end", 'data: {"a":"é"}\n\ndata: [DONE]\n\n', [{ a: "é" }], true],
  ["the mark without a space", "data: 1\n\ndata:[DONE]\n\n", [1], true],
  ["carriage returns alone", "data: 1\r\rdata: [DONE]\r\r", [1], true],
  [
    "both characters at the end of a line",
    "data: 1\r\n\r\ndata: 2\r\n\r\ndata: [DONE]\r\n\r\n",
    [1, 2],
    true,
  ],
  ["the mark without a line end", "data: 1\n\ndata: [DONE]", [1], true],
  ["the mark alone", "data: [DONE]\n\n", [], true],
  ["more data after the mark", `data: [DONE]\n\n: ${"x".repeat(100)}\n\n`, [], true],
  ["a stream that broke off", 'data: {"a":1}\n\n', [{ a: 1 }], false],
  ["half of the mark", "data: 1\n\ndata: [DON", [1], false],
  ["the mark inside a value", 'data: {"text":"data: [DONE]"}\n\n', [{ text: "data: [DONE]" }], false],
  ["comments and other fields", ": wait\n\nid: 4\nretry: 1\ndata: 1\n\n", [1], false],
  ["a value of two lines", 'data: {"a":\ndata: 1}\n\n', [{ a: 1 }], false],
  ["an error event", 'event: error\ndata: {"message":"gone"}\n\n', [{ error: { message: "gone" } }], false],
  ["an error in an error event", 'event: error\ndata: {"error":"gone"}\n\n', [{ error: "gone" }], false],
  ["nothing", "", [], false],
])("reads a stream and its end mark wherever its chunks end: %s", async (_name, text, events, isDone) => {
  const bytes = utf8(text);
  expect(await read([bytes])).toEqual({ events, isDone });
  for (let cut = 1; cut < bytes.length; cut++) {
    expect(await read([bytes.slice(0, cut), bytes.slice(cut)])).toEqual({ events, isDone });
  }
  expect(await read(Array.from(bytes))).toEqual({ events, isDone });
});

it("refuses data that is not JSON", async () => {
  await expect(read(["data: {broken\n\n"])).rejects.toThrow(SyntaxError);
});
