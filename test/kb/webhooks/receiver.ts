import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A received message. */
export interface Received {
  readonly id: string;
  readonly body: string;
  // Tests read single fields; a missing one is undefined.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly json: any;
  readonly headers: Readonly<Record<string, string>>;
  readonly path: string;
  readonly method: string;
}

interface ReceiverAnswer {
  readonly status: number;
  readonly headers?: Record<string, string>;
}

/** A receiver of webhooks on a free port of this machine. */
export interface Receiver {
  readonly url: string;
  readonly messages: readonly Received[];
  /** Counts the requests for a path that have no response yet and whose sender still waits for one. */
  open(path: string): number;
  /** Answers the next messages; default 204. Headers by name. */
  answer: (message: Received) => ReceiverAnswer | Promise<ReceiverAnswer>;
  close(): Promise<void>;
}

export async function openReceiver(): Promise<Receiver> {
  const messages: Received[] = [];
  const open = new Map<string, number>();
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts).toString("utf8");
      const headers = Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
      );
      const message: Received = {
        id: headers["webhook-id"] ?? "",
        body,
        json: JSON.parse(body),
        headers,
        path: request.url ?? "",
        method: request.method ?? "",
      };
      messages.push(message);
      open.set(message.path, (open.get(message.path) ?? 0) + 1);
      response.once("close", () => open.set(message.path, (open.get(message.path) ?? 0) - 1));
      void (async () => {
        const { status, headers: answered } = await receiver.answer(message);
        response.writeHead(status, answered).end();
      })();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo; // it listens on a port
  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}`,
    messages,
    open: (path) => open.get(path) ?? 0,
    answer: () => ({ status: 204 }),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return receiver;
}

/** Returns the secrets that signed a message, computed from the standard's text and not by our code. */
export function signedBy(message: Received, secrets: readonly string[]): string[] {
  const signatures = (message.headers["webhook-signature"] ?? "").split(" ");
  return secrets.filter((secret) => {
    const key = Buffer.from(secret.replace("whsec_", ""), "base64");
    const signed = `${message.id}.${message.headers["webhook-timestamp"]}.${message.body}`;
    return signatures.includes(`v1,${createHmac("sha256", key).update(signed).digest("base64")}`);
  });
}
