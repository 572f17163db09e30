import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Store } from "../../../src/kb/store/store.ts";
import { createBody, openRunning, type Running } from "../service/running.ts";
import { withMethods } from "../store/with-methods.ts";

const PATH = "/api/rag/resources/bulk";

// Tests check lines field by field; a missing field is undefined.
// oxlint-disable-next-line typescript/no-explicit-any
type Outcome = any;

describe("the timeouts of a bulk create", () => {
  const REQUEST_MS = 200;
  /** Pause of a client or a store: several times the request timeout. */
  const LONG_MS = REQUEST_MS * 4;
  let hasty: Running;
  let createMs = 0;
  beforeAll(async () => {
    const wrapStore = (store: Store): Store =>
      withMethods(store, {
        records: {
          createResource: async (...given) => {
            await delay(createMs);
            return store.records.createResource(...given);
          },
        },
      });
    hasty = await openRunning({ wrapStore, limits: { requestMs: REQUEST_MS } });
  });
  afterAll(() => hasty.close());

  const line = (title: string, content = "Waves."): string =>
    `${JSON.stringify(createBody({ title, content }))}\n`;
  const send = async (body: AsyncGenerator<string>): Promise<Outcome[]> => {
    const headers = { pauthkey: hasty.key, "content-type": "application/x-ndjson" };
    const sent = httpRequest(hasty.url + PATH, { method: "POST", headers });
    // The service may answer and end the request before all is sent.
    pipeline(Readable.from(body), sent).catch(() => undefined);
    const [response] = await once(sent, "response");
    return (await textOf(response))
      .trim()
      .split("\n")
      .map((each) => JSON.parse(each));
  };

  it("accepts a bulk create of any duration while lines arrive", async () => {
    const lines = await send(
      (async function* () {
        for (let at = 0; at < 12; at += 1) {
          yield line(`T${at}`);
          await delay(LONG_MS / 12);
        }
      })(),
    );
    expect(lines.at(-1)).toEqual({ summary: { lines: 12, created: 12, repeated: 0, failed: 0 } });
  });

  it("the timeouts of a bulk create exclude the time in which the service does not read", async () => {
    createMs = LONG_MS;
    // Later creates are fast: one pause suffices.
    const pause = delay(LONG_MS).then(() => (createMs = 0));
    const lines = await send(
      (async function* () {
        // More than the buffers on the way hold, so that part of it waits for the service.
        for (let at = 0; at < 70; at += 1) yield line(`T${at}`, "wave ".repeat(25_000));
      })(),
    );
    await pause;
    expect(lines.at(-1)).toEqual({ summary: { lines: 70, created: 70, repeated: 0, failed: 0 } });
  });

  it("ends a bulk create without new bytes with a summary that says so, after answering every line", async () => {
    const never = Promise.withResolvers<void>();
    createMs = LONG_MS;
    const lines = await send(
      (async function* () {
        yield line("made") + line("made as well");
        await never.promise;
      })(),
    ).finally(() => (createMs = 0));
    never.resolve();
    expect(lines.slice(0, -1).map(({ status }) => status)).toEqual([201, 201]);
    const message = expect.stringContaining("no more of it arrived");
    expect(lines.at(-1)).toEqual({ summary: { lines: 2, created: 2, repeated: 0, failed: 0, message } });
  });

  it("ends a bulk create whose bytes never pause at its maximum time, even within an endless line", async () => {
    const brief = await openRunning({ limits: { requestMs: LONG_MS, bulkMs: LONG_MS } });
    try {
      const headers = { pauthkey: brief.key, "content-type": "application/x-ndjson" };
      const sent = httpRequest(brief.url + PATH, { method: "POST", headers });
      const dribble = setInterval(() => sent.write("x"), LONG_MS / 20);
      sent.write(`${line("made")}{`);
      const [response] = await once(sent, "response");
      const lines: Outcome[] = (await textOf(response).finally(() => clearInterval(dribble)))
        .trim()
        .split("\n")
        .map((each) => JSON.parse(each));
      sent.destroy();
      const message = expect.stringContaining(`took longer than ${LONG_MS / 3_600_000} hours.`);
      expect(lines).toEqual([
        expect.objectContaining({ status: 201 }),
        { summary: { lines: 1, created: 1, repeated: 0, failed: 0, message } },
      ]);
    } finally {
      await brief.close();
    }
  });

  it("applies the request timeout to other bodies", async () => {
    const socket = connect(Number(new URL(hasty.url).port), "127.0.0.1");
    socket.write(
      `POST /api/rag/resource HTTP/1.1\r\nhost: a\r\npauthkey: ${hasty.key}\r\ncontent-type: application/json\r\n` +
        "content-length: 100\r\n\r\n{",
    );
    expect(await textOf(socket)).toContain("request_timeout");
  });
});
