import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { FormData, getGlobalDispatcher, MockAgent, setGlobalDispatcher } from "undici";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { askService, callService, type ServiceCall } from "../../../src/cli/compose/service-call.ts";

let respond: (request: IncomingMessage, response: ServerResponse) => void;
let service: { apiUrl: string; pauthkey: string };
let stop: () => void;
beforeEach(async () => {
  const server = createServer((request, response) => respond(request, response));
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  service = {
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pauthkey: "kb_key",
  };
  stop = () => {
    server.closeAllConnections();
    server.close();
  };
});
afterEach(() => stop());

const CALL: ServiceCall = { method: "GET", path: "/things?limit=1", what: "a request for things" };
const Answer = z.object({ things: z.number() });
const ask = (call: Partial<ServiceCall> = {}): Promise<unknown> =>
  askService(service, { ...CALL, ...call }, Answer);
const answers = (status: number, body: string | Buffer): void => {
  respond = (_request, response) => void response.writeHead(status).end(body);
};

it("sends the key and a body of JSON, and returns the answer", async () => {
  const received = Promise.withResolvers<unknown[]>();
  respond = (request, response) => {
    response.writeHead(201).end('{"things":3}');
    const { method, url, headers } = request;
    void text(request).then((body) =>
      received.resolve([method, url, headers["pauthkey"], headers["content-type"], body]),
    );
  };
  expect(await ask({ method: "POST", body: { a: 1 } })).toEqual({ things: 3 });
  expect(await received.promise).toEqual([
    "POST",
    "/things?limit=1",
    "kb_key",
    "application/json",
    '{"a":1}',
  ]);
});

it("sends a form as it is, whatever the global dispatcher is", async () => {
  const received = Promise.withResolvers<unknown[]>();
  respond = (request, response) =>
    void text(request)
      .then((body) => received.resolve([request.headers["content-type"], body]))
      .finally(() => response.end('{"things":1}'));
  const body = new FormData();
  body.append("agent_id", "default");
  const global = getGlobalDispatcher();
  onTestFinished(() => setGlobalDispatcher(global));
  // Refuses every request. That of the undici inside Node.js would never end it.
  const refusing = new MockAgent();
  refusing.disableNetConnect();
  setGlobalDispatcher(refusing);
  expect(await ask({ method: "POST", body })).toEqual({ things: 1 });
  expect(await received.promise).toEqual([
    expect.stringMatching(/^multipart\/form-data; boundary=/),
    expect.stringMatching(/name="agent_id"\r\n\r\ndefault\r\n/),
  ]);
});

it.each([
  [
    "a refusal, in the service's words with its hint",
    409,
    '{"success":false,"message":"No.","error":{"code":"endpoint_disabled","hint":"Enable it."}}',
    { message: "No.", hint: "Enable it." },
  ],
  ["a proxy's page", 502, "<html>", { message: "answered HTTP 502 to a request for things" }],
  ["success in another form", 200, '{"other":1}', { message: "in an unknown form" }],
  ["success without JSON", 200, "<html>", { message: "in an unknown form" }],
])("a call of the service reports %s", async (_name, status, body, { message, ...rest }) => {
  answers(status, body);
  await expect(ask()).rejects.toMatchObject({
    code: "service_refused",
    subject: service.apiUrl,
    message: expect.stringContaining(message),
    ...rest,
  });
});

it("reports a service that does not answer", async () => {
  respond = () => undefined;
  await expect(ask({ silenceMs: 1 })).rejects.toMatchObject({ code: "service_unreachable", retryable: true });
  stop();
  await expect(ask()).rejects.toMatchObject({ code: "service_unreachable", subject: service.apiUrl });
});

it("ends with the reason of the signal", async () => {
  const stopped = new AbortController();
  respond = () => stopped.abort(new Error("interrupted"));
  await expect(callService(service, { ...CALL, signal: stopped.signal })).rejects.toThrow("interrupted");
});
