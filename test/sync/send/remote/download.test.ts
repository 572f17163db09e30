import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";
import { afterEach, describe, expect, it } from "vitest";
import type { Reply } from "../../../../src/sync/send/remote/answer.ts";
import { download, type Sink } from "../../../../src/sync/send/remote/download.ts";

const date = (ms: number): string => new Date(ms).toUTCString();

let server: Server | undefined;
let pool: Pool | undefined;
afterEach(async () => {
  await pool?.destroy();
  server?.closeAllConnections();
  server?.close();
});

/** Downloads the answer of a file host, of which at most this many bytes are wanted. */
async function fetched(
  respond: RequestListener,
  bytesMax = 4,
  sink: Sink = async () => {},
): Promise<Reply<undefined>> {
  const opened = createServer(respond);
  server = opened;
  await new Promise<void>((resolve) => {
    opened.listen(0, "127.0.0.1", resolve);
  });
  pool = new Pool(`http://127.0.0.1:${(opened.address() as AddressInfo).port}`);
  const request = { path: "/f", headers: {}, signal: new AbortController().signal };
  return await download(pool, request, bytesMax, sink, 0);
}

it.each([
  { status: 429, headers: { "retry-after": "30" }, retryAfterMs: 30_000 },
  { status: 408, headers: {}, retryAfterMs: undefined },
  { status: 503, headers: { "retry-after": date(60_000), date: date(0) }, retryAfterMs: 60_000 },
  { status: 500, headers: {}, retryAfterMs: undefined },
])("reports the delay that a file host asks for: $status", async ({ status, headers, retryAfterMs }) => {
  const reply = await fetched((_, answer) => {
    answer.writeHead(status, headers as Record<string, string>);
    answer.end("busy");
  });
  expect(reply).toMatchObject({ kind: "later", acted: "no", retryAfterMs });
});

it.each([404, 403, 204])("refuses a file that a host answers with %i", async (status) => {
  const reply = await fetched((_, answer) => {
    answer.writeHead(status);
    answer.end();
  });
  expect(reply).toMatchObject({ kind: "refused", code: `http_${status}` });
});

describe("the bytes of a file", () => {
  it("passes a file's bytes to the sink and is done when all have arrived", async () => {
    const pieces: Buffer[] = [];
    const reply = await fetched(
      (_, answer) => {
        answer.write("ab");
        setImmediate(() => answer.end("cd"));
      },
      4,
      async (piece) => void pieces.push(piece),
    );
    expect(reply).toEqual({ kind: "done", value: undefined });
    expect(Buffer.concat(pieces).toString()).toBe("abcd");
  });

  it("refuses a file with more bytes than allowed and ends an endless answer", async () => {
    let taken = 0;
    const reply = await fetched(
      (_, answer) => {
        const write = (): void => {
          if (answer.destroyed) return;
          answer.write("abc");
          setImmediate(write);
        };
        write();
      },
      4,
      async (piece) => void (taken += piece.length),
    );
    expect(reply).toMatchObject({ kind: "refused", code: "too_large" });
    expect(taken).toBeLessThanOrEqual(4);
  });

  it("ends with the error of a failing sink", async () => {
    const error = new Error("no space left");
    const failing = fetched(
      (_, answer) => answer.end("abcd"),
      4,
      async () => {
        throw error;
      },
    );
    await expect(failing).rejects.toBe(error);
  });
});
