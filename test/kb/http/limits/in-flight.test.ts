import { Duplex } from "node:stream";
import type { Socket } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import { answerClientError } from "../../../../src/kb/http/client-error.ts";
import { trackRequest, type InFlight } from "../../../../src/kb/http/limits/in-flight.ts";

let left: number;
let inFlight: InFlight;
beforeEach(() => {
  left = 0;
  inFlight = trackRequest("r1", {
    hold: () => undefined,
    release: () => undefined,
    leave: () => void (left += 1),
  });
});

describe("an admitted request", () => {
  it("leaves when its connection has finished with it and no work runs for it", async () => {
    const works = [Promise.withResolvers<string>(), Promise.withResolvers<string>()] as const;
    const [first, second] = works.map(({ promise }) => inFlight.during(() => promise));
    works[0].resolve("one");
    expect(await first).toBe("one");
    expect(left).toBe(0);
    inFlight.close();
    expect(left).toBe(0);
    works[1].resolve("two");
    expect(await second).toBe("two");
    expect(left).toBe(1);
  });

  it("an admitted request does no work after it has left", async () => {
    inFlight.close();
    const work = inFlight.during(() => expect.unreachable());
    await expect(work).rejects.toMatchObject({ code: "client_gone", subject: "r1" });
    expect(left).toBe(1);
  });

  it("leaves also when its work fails, at once or later", async () => {
    const failure = new Error("no");
    const fail = (): never => {
      throw failure;
    };
    await expect(inFlight.during(fail)).rejects.toBe(failure);
    await expect(inFlight.during(() => Promise.reject(failure))).rejects.toBe(failure);
    inFlight.close();
    expect(left).toBe(1);
  });
});

describe("input that is no HTTP request", () => {
  /** Both ends of a connection: what is written to it is its text. */
  const open = () => {
    const written: string[] = [];
    const duplex = new Duplex({
      read: () => undefined,
      write: (part: Buffer, _encoding, done) => {
        written.push(part.toString());
        done();
      },
    });
    // The answer uses the stream alone, and no address.
    return { socket: duplex as unknown as Socket, duplex, text: () => written.join("") };
  };
  const failure = (code: string) => Object.assign(new Error("parse error"), { code });

  it.each([
    ["HPE_INVALID_METHOD", "400 Bad Request", "invalid_request"],
    ["HPE_HEADER_OVERFLOW", "431 Request Header Fields Too Large", "headers_too_large"],
    ["ERR_HTTP_REQUEST_TIMEOUT", "408 Request Timeout", "request_timeout"],
  ])(
    "input that is no HTTP request is answered in the format of all refusals, and the connection closed: %s",
    (code, status, refusal) => {
      const { socket, duplex, text } = open();
      expect(answerClientError(failure(code), socket, false, "id1")).toBe(refusal);
      const [head = "", body = ""] = text().split("\r\n\r\n");
      expect(head.split("\r\n")).toEqual([
        `HTTP/1.1 ${status}`,
        "connection: close",
        "content-type: application/json; charset=utf-8",
        "x-request-id: id1",
        `content-length: ${Buffer.byteLength(body)}`,
      ]);
      expect(JSON.parse(body)).toMatchObject({ success: false, error: { code: refusal } });
      expect(duplex.writableEnded).toBe(true);
    },
  );

  it.each([
    ["of a client that has left", failure("ECONNRESET"), false],
    ["within another answer", failure("HPE_INVALID_METHOD"), true],
  ])("input that is no HTTP request is not answered %s", (_name, error, isAnswering) => {
    const { socket, duplex, text } = open();
    expect(answerClientError(error, socket, isAnswering, "id1")).toBeUndefined();
    expect([text(), duplex.destroyed]).toEqual(["", true]);
  });

  it("input that is no HTTP request is not answered on a connection that is closed for writing", () => {
    const { socket, duplex, text } = open();
    duplex.end();
    expect(answerClientError(failure("HPE_INVALID_METHOD"), socket, false, "id1")).toBeUndefined();
    expect([text(), duplex.destroyed]).toEqual(["", true]);
  });
});
