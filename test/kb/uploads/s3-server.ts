import { createHash, createHmac, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The only key of the server. */
export const ACCESS_KEY = { id: "AKIAKBSYNC", secret: "a secret of the tests" };
export const BUCKET = "bucket";
/** What Amazon S3 demands of every part but the last. */
const PART_BYTES_MIN = 5 * 1024 * 1024;

/** A request as faults see it. */
export interface S3Request {
  readonly method: string;
  /** Empty for requests to the bucket itself. */
  readonly key: string;
  readonly query: URLSearchParams;
}

/** What goes wrong instead of the answer. `cut`: the connection ends in the middle of the body. */
export type Fault =
  | { readonly kind: "status"; readonly status: number; readonly code: string }
  | { readonly kind: "drop" | "cut" | "hang" };

type Listed = readonly [key: string, modifiedMs: number, sizeBytes?: number];

interface StoredObject {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly modifiedMs: number;
}

/** A server of one bucket that speaks the part of S3's protocol that the store of files uses, and checks what it is sent. */
export interface S3Server {
  readonly endpoint: string;
  readonly objects: Map<string, StoredObject>;
  /** Uploads in parts that were neither completed nor aborted, by their id. */
  readonly uploads: Map<string, { readonly key: string; readonly parts: Map<number, Buffer> }>;
  readonly requests: S3Request[];
  /** Decides about each request what goes wrong. */
  fault: ((request: S3Request) => Fault | undefined) | undefined;
  /** The objects that lists name; undefined: those that exist. */
  listed: readonly Listed[] | undefined;
  setObject(key: string, bytes: Buffer | string): void;
  close(): Promise<void>;
}

class S3Error extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string) {
    super(code);
    this.status = status;
    this.code = code;
  }
}

interface Received extends S3Request {
  readonly body: Buffer;
  readonly range: string | undefined;
}

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}

export async function openS3Server(): Promise<S3Server> {
  const objects: S3Server["objects"] = new Map();
  const uploads: S3Server["uploads"] = new Map();
  const requests: S3Request[] = [];
  const setObject = (key: string, given: Buffer | string): StoredObject => {
    const bytes = Buffer.from(given);
    const object = { bytes, etag: etagOf(bytes), modifiedMs: Date.now() };
    objects.set(key, object);
    return object;
  };

  const bucketAnswer = ({ query }: Received): Answer => {
    if (query.has("uploads")) return uploadsAnswer(uploads, query.get("prefix") ?? "");
    if (query.get("list-type") !== "2") throw new S3Error(501, "NotImplemented");
    const all =
      server.listed ??
      [...objects].map(([key, { modifiedMs, bytes }]): Listed => [key, modifiedMs, bytes.length]);
    return listAnswer(all, query);
  };
  const partsAnswer = (request: Received): Answer => {
    const { method, key, query, body } = request;
    if (method === "POST" && query.has("uploads")) {
      const id = randomUUID();
      uploads.set(id, { key, parts: new Map() });
      return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
    }
    const id = query.get("uploadId") ?? "";
    const upload = uploads.get(id);
    if (upload?.key !== key) throw new S3Error(404, "NoSuchUpload");
    if (method === "PUT") {
      upload.parts.set(Number(query.get("partNumber")), body);
      return { status: 200, headers: { etag: etagOf(body) } };
    }
    uploads.delete(id);
    if (method === "DELETE") return { status: 204 };
    const { etag } = setObject(key, completed(upload.parts, body.toString()));
    return xml(
      `<CompleteMultipartUploadResult><ETag>${escaped(etag)}</ETag></CompleteMultipartUploadResult>`,
    );
  };
  const objectAnswer = (request: Received): Answer => {
    const { method, key, query, body, range } = request;
    if (query.has("uploads") || query.has("uploadId")) return partsAnswer(request);
    if (method === "PUT") return { status: 200, headers: { etag: setObject(key, body).etag } };
    if (method === "DELETE") {
      objects.delete(key);
      return { status: 204 };
    }
    const object = objects.get(key);
    if (object === undefined) throw new S3Error(404, "NoSuchKey");
    const last = /^bytes=0-(\d+)$/.exec(range ?? "")?.[1];
    const headers = { etag: object.etag, "last-modified": new Date(object.modifiedMs).toUTCString() };
    if (last === undefined) return { status: 200, headers, body: object.bytes };
    if (object.bytes.length === 0) throw new S3Error(416, "InvalidRange");
    return { status: 206, headers, body: object.bytes.subarray(0, Number(last) + 1) };
  };

  const http = createServer((request, response) => {
    void (async () => {
      const received = await receive(request);
      if (received === undefined) return;
      requests.push(received);
      const fault = server.fault?.(received);
      if (fault?.kind === "hang") return;
      if (fault?.kind === "drop") return void request.socket.destroy();
      try {
        checkSignature(request, received.body);
        if (fault?.kind === "status") throw new S3Error(fault.status, fault.code);
        const answer = received.key === "" ? bucketAnswer(received) : objectAnswer(received);
        send(response, answer, fault?.kind === "cut");
      } catch (error) {
        if (!(error instanceof S3Error)) throw error;
        send(response, { ...xml(`<Error><Code>${error.code}</Code></Error>`), status: error.status }, false);
      }
    })();
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const server: S3Server = {
    endpoint: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, // it listens on a port
    objects,
    uploads,
    requests,
    fault: undefined,
    listed: undefined,
    setObject,
    close: async () => {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
  return server;
}

/** Reads a request to its end; undefined if the client left. */
async function receive(request: IncomingMessage): Promise<Received | undefined> {
  const parts: Buffer[] = [];
  try {
    for await (const part of request) parts.push(part as Buffer); // no encoding is set
  } catch {
    return undefined;
  }
  const url = new URL(request.url ?? "", "http://localhost");
  const [, bucket, ...rest] = decodeURIComponent(url.pathname).split("/");
  const key = rest.join("/");
  const { method = "", headers } = request;
  const received = { method, key, query: url.searchParams, body: Buffer.concat(parts), range: headers.range };
  return bucket === BUCKET ? received : { ...received, key: "", query: new URLSearchParams("no-bucket") };
}

/** https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html */
function checkSignature({ method = "", url: path = "", headers }: IncomingMessage, body: Buffer): void {
  const found =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d+)\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? "",
    );
  const [, id, day = "", region = "", signed = "", signature] = found ?? [];
  if (id === undefined) throw new S3Error(403, "AccessDenied");
  if (id !== ACCESS_KEY.id) throw new S3Error(403, "InvalidAccessKeyId");
  const sha256 = createHash("sha256").update(body).digest("hex");
  if (headers["x-amz-content-sha256"] !== sha256) throw new S3Error(400, "XAmzContentSHA256Mismatch");
  const url = new URL(path, "http://localhost");
  const query = [...url.searchParams]
    .map(([name, value]) => `${strict(name)}=${strict(value)}`)
    .toSorted()
    .join("&");
  const lines = signed.split(";").map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const request = [method, url.pathname, query, lines.join(""), signed, sha256].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const digest = createHash("sha256").update(request).digest("hex");
  const text = ["AWS4-HMAC-SHA256", String(headers["x-amz-date"]), scope, digest].join("\n");
  const hmac = (key: Buffer | string, word: string): Buffer =>
    createHmac("sha256", key).update(word).digest();
  const key = [day, region, "s3", "aws4_request"].reduce<Buffer | string>(hmac, `AWS4${ACCESS_KEY.secret}`);
  if (hmac(key, text).toString("hex") !== signature) throw new S3Error(403, "SignatureDoesNotMatch");
}

const strict = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

/** Joins the parts that the client names, if they are those that it sent. */
function completed(parts: ReadonlyMap<number, Buffer>, body: string): Buffer {
  const named = [...body.matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part = ""]) => ({
    number: Number(/<PartNumber>(\d+)</.exec(part)?.[1]),
    etag: (/<ETag>(.*?)</.exec(part)?.[1] ?? "").replaceAll("&quot;", '"'),
  }));
  const bytes = named.map(({ number, etag }, at) => {
    const part = parts.get(number);
    if (part === undefined || etagOf(part) !== etag) throw new S3Error(400, "InvalidPart");
    if (at < named.length - 1 && part.length < PART_BYTES_MIN) throw new S3Error(400, "EntityTooSmall");
    return part;
  });
  if (bytes.length === 0) throw new S3Error(400, "MalformedXML");
  return Buffer.concat(bytes);
}

function listAnswer(all: readonly Listed[], query: URLSearchParams): Answer {
  const prefix = query.get("prefix") ?? "";
  const after = query.get("continuation-token") ?? "";
  const max = Number(query.get("max-keys") ?? 1000);
  const found = all
    .filter(([key]) => key.startsWith(prefix) && key > after)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  const page = found.slice(0, max);
  const contents = page.map(
    ([key, ms, size = 0]) =>
      `<Contents><Key>${escaped(key)}</Key><LastModified>${new Date(ms).toISOString()}</LastModified><Size>${size}</Size></Contents>`,
  );
  const next =
    found.length > page.length
      ? `<NextContinuationToken>${escaped(page.at(-1)?.[0] ?? "")}</NextContinuationToken>`
      : "";
  return xml(`<ListBucketResult>${contents.join("")}${next}</ListBucketResult>`);
}

function uploadsAnswer(uploads: S3Server["uploads"], prefix: string): Answer {
  const found = [...uploads].filter(([, { key }]) => key.startsWith(prefix));
  const items = found.map(
    ([id, { key }]) => `<Upload><Key>${escaped(key)}</Key><UploadId>${id}</UploadId></Upload>`,
  );
  return xml(`<ListMultipartUploadsResult>${items.join("")}</ListMultipartUploadsResult>`);
}

function send(response: ServerResponse, { status, headers, body = "" }: Answer, isCut: boolean): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, { ...headers, ...(status !== 204 && { "content-length": bytes.length }) });
  if (!isCut) return void response.end(bytes);
  response.write(bytes.subarray(0, Math.ceil(bytes.length / 2)), () => response.socket?.destroy());
}

const xml = (body: string): Answer => ({
  status: 200,
  headers: { "content-type": "application/xml" },
  body: `<?xml version="1.0" encoding="UTF-8"?>${body}`,
});
const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
const etagOf = (bytes: Buffer): string => `"${createHash("md5").update(bytes).digest("hex")}"`;
