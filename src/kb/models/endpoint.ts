import { fetch, type Response } from "undici";
import { z } from "zod";
import { openAgent } from "../../lib/proxy.ts";

/** An endpoint answered with an error. */
export class EndpointRefusal extends Error {
  override readonly name = "EndpointRefusal";
  readonly status: number;
  readonly headers: Response["headers"] | undefined;

  constructor(status: number, reason: string, headers?: Response["headers"]) {
    super(reason);
    this.status = status;
    this.headers = headers;
  }
}

/** An endpoint gave no answer. The cause is the system's error, if there is one. */
export class EndpointUnreachable extends Error {
  override readonly name = "EndpointUnreachable";
}

/** Largest stream: each token comes in an envelope of some hundred bytes. */
const STREAM_BYTES_MAX = 128 * 1024 * 1024;

/** Options of an endpoint. */
export interface EndpointOptions {
  readonly url: string;
  /** Returns the key for a request, sent as a bearer token; undefined: none. */
  readonly apiKey: (() => string) | undefined;
  /** Largest non-streamed response or error. */
  readonly answerBytesMax: number;
  /** Concurrent requests; more wait. Default: unlimited. */
  readonly connections?: number;
}

/** The endpoint of a model. */
export interface Endpoint {
  /**
   * Posts a question once, and returns the response before its body is read. Throws an EndpointRefusal, an EndpointUnreachable, or
   * the reason of `signal`.
   */
  send(body: object & { readonly stream?: boolean }, signal: AbortSignal): Promise<Response>;
  close(): Promise<void>;
}

/** Opens an endpoint, with connections of their own for whole answers and for streams. */
export function openEndpoint({ url, apiKey, answerBytesMax, ...pool }: EndpointOptions): Endpoint {
  // Own agents without timeouts: undici's defaults would cut off slow answers.
  const noTimeouts = { ...pool, headersTimeout: 0, bodyTimeout: 0 };
  const wholes = openAgent({ ...noTimeouts, maxResponseSize: answerBytesMax });
  const streams = openAgent({ ...noTimeouts, maxResponseSize: STREAM_BYTES_MAX });

  return {
    send: async (body, signal) => {
      const key = apiKey?.();
      const headers = {
        accept: "application/json",
        "content-type": "application/json",
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
      };
      const dispatcher = body.stream === true ? streams : wholes;
      // Follows no redirects: documents, images and the key go to this address alone.
      const options = { method: "POST", headers, dispatcher, redirect: "manual", signal } as const;
      const response = await fetch(url, { ...options, body: JSON.stringify(body) }).catch(
        (error: unknown) => {
          signal.throwIfAborted();
          throw new EndpointUnreachable("the endpoint cannot be reached", { cause: error });
        },
      );
      if (response.ok) return response;
      const reason = reasonIn(await response.text());
      throw new EndpointRefusal(
        response.status,
        // Some endpoints quote a key that they refuse.
        key === undefined ? reason : reason.replaceAll(key, "(the key)"),
        response.headers,
      );
    },
    close: async () => {
      await Promise.all([wholes.destroy(), streams.destroy()]);
    },
  };
}

/**
 * Reads server-sent events whose data is JSON, with any of the three line ends. Returns true at the mark `[DONE]`, false if the
 * stream ends without it. Throws a SyntaxError for other data.
 */
export async function* readModelStream(body: AsyncIterable<Uint8Array>): AsyncGenerator<unknown, boolean> {
  const decoder = new TextDecoder();
  let text = "";
  let event = "";
  let data: string[] = [];
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true });
    // A carriage return at the end may be half of a line end.
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    text = lines.pop() ?? "";
    for (const line of lines) {
      const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
      if (name === "event") event = value;
      if (name === "data") data.push(value);
      if (data[0] === "[DONE]") return true;
      if (line !== "") continue;
      if (data.length > 0) yield eventOf(event, data.join("\n"));
      [event, data] = ["", []];
    }
  }
  return /^data: ?\[DONE\]\r?$/.test(text);
}

function eventOf(event: string, data: string): unknown {
  const json: unknown = JSON.parse(data);
  return event === "error" && !ErrorBody.safeParse(json).success ? { error: json } : json;
}

const ErrorBody = z.object({ error: z.unknown().refine((error) => error !== undefined && error !== null) });
const WithMessage = z.object({ message: z.string() });

/** Returns the reason of a refusal: its message, or else all that was sent. */
function reasonIn(text: string): string {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return text === "" ? "status code (no body)" : text;
  }
  const error = ErrorBody.safeParse(json);
  if (!error.success) return text;
  const described = WithMessage.safeParse(error.data.error);
  return described.success ? described.data.message : JSON.stringify(error.data.error);
}
