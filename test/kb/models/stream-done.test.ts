import { expect, it } from "vitest";
import { watchStream } from "../../../src/kb/models/stream-done.ts";

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

/** Passes chunks through and returns what came out, and whether the end mark was seen. */
async function pass(chunks: readonly string[]): Promise<{ readonly text: string; readonly isDone: boolean }> {
  const body = new ReadableStream({
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(bytesOf(chunk));
      controller.close();
    },
  });
  const watched = watchStream(new Response(body));
  return { text: await watched.response.text(), isDone: watched.isDone() };
}

it.each<[string, string, boolean]>([
  ["a stream with the mark at its end", 'data: {"a":"é"}\n\ndata: [DONE]\n\n', true],
  ["the mark without a space", "data: 1\n\ndata:[DONE]\n\n", true],
  ["the mark after a carriage return", "data: 1\r\rdata: [DONE]\r\r", true],
  ["the mark alone", "data: [DONE]\n\n", true],
  ["more data after the mark", `data: [DONE]\n\n: ${"x".repeat(100)}\n\n`, true],
  ["a stream that broke off", 'data: {"a":1}\n\n', false],
  ["half of the mark", "data: 1\n\ndata: [DON", false],
  ["the mark inside a value", 'data: {"text":"data: [DONE]"}\n\n', false],
  ["nothing", "", false],
])("detects the end mark wherever chunks end and passes the bytes on: %s", async (_name, text, isDone) => {
  expect(await pass([text])).toEqual({ text, isDone });
  for (let cut = 1; cut < text.length; cut++) {
    expect(await pass([text.slice(0, cut), text.slice(cut)])).toEqual({ text, isDone });
  }
  expect(await pass(Array.from(text))).toEqual({ text, isDone });
});

it("keeps status and headers, and needs no body", async () => {
  const watched = watchStream(new Response(null, { status: 204, headers: { "x-a": "1" } }));
  const { response } = watched;
  expect([response.status, response.headers.get("x-a"), await response.text(), watched.isDone()]).toEqual([
    204,
    "1",
    "",
    false,
  ]);
});
