import { createReadStream } from "node:fs";
import type { S3Client } from "@aws-sdk/client-s3";
import { within } from "../../lib/deadline.ts";
import { openGate } from "../../lib/gate.ts";
import { KbsyncError } from "../../lib/failure.ts";
import {
  bucketFailure,
  closed,
  filesBusy,
  gone,
  isLocal,
  isNoKey,
  isNoRange,
  isNoUpload,
  late,
  TransferBroken,
} from "./bucket-failure.ts";

/** The bucket, and how it is reached. What is left out comes from the environment and the files that AWS tools read. */
export interface BucketOptions {
  readonly bucket: string;
  /** Begins the key of every object; empty or ends with a slash. */
  readonly prefix: string;
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  readonly timeouts?: Partial<BucketTimeouts> | undefined;
}

/** Time for a whole operation, its repetitions included. */
export interface BucketTimeouts {
  /** For an operation without content. Default 15 s. */
  readonly answerMs: number;
  /** For an operation with the content of a file. Default 60 s. */
  readonly transferMs: number;
}

/** An object by its key below the prefix. */
export interface ListedObject {
  readonly key: string;
  /** The time by the clock of the bucket. */
  readonly modifiedMs: number;
  readonly sizeBytes: number;
}

/**
 * Objects in a bucket, under keys below the prefix. Failures are `files_unavailable`, or `disk_full`; a missing object is ENOENT, and
 * nothing else is taken for one.
 */
export interface Bucket {
  /** Uploads a file, in parts if it is large. */
  putFile(key: string, path: string, sizeBytes: number): Promise<void>;
  put(key: string, text: string): Promise<void>;
  /** Reads an object. `read` must consume the body. */
  get<T>(key: string, sizeBytes: number, read: (body: AsyncIterable<Uint8Array>) => Promise<T>): Promise<T>;
  has(key: string): Promise<boolean>;
  /** Does nothing if there is no object. */
  delete(key: string): Promise<void>;
  /** Removes the parts of uploads that were not completed. */
  deleteParts(key: string): Promise<void>;
  /** Lists objects, at most `max`. */
  list(below: string, max: number): Promise<readonly ListedObject[]>;
  /** Ends all operations. */
  close(this: void): void;
}

/** Bytes of a part. Smaller files are one request; Amazon S3 takes no smaller parts than 5 MiB. */
const PART_BYTES = 8 * 1024 * 1024;
/** Bytes of files in flight at once. A part of each is in memory. */
const FLIGHT_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes that a small file counts, so that at most 256 are in flight. */
const FLIGHT_BYTES_MIN = 256 * 1024;
/** Transfers that wait. More are refused. */
const LINE_MAX = 1024;
const CONNECT_MS = 5000;
/** Attempts of each request; a throttled one waits longer before each. */
const ATTEMPTS_MAX = 4;
const PAGE_MAX = 1000;
const TIMEOUTS: BucketTimeouts = { answerMs: 15_000, transferMs: 60_000 };

/** Opens a bucket. Reaches it only when it is used. */
export async function openBucket(options: BucketOptions): Promise<Bucket> {
  // Loaded here: reading the client takes a tenth of a second, which services with a folder save.
  const [s3, { Upload }] = await Promise.all([import("@aws-sdk/client-s3"), import("@aws-sdk/lib-storage")]);
  const client = openClient(s3.S3Client, options);
  const { bucket, prefix, timeouts } = options;
  const closing = new AbortController();
  const timed = timedUntil(closing.signal);
  const reached = { s3, client, bucket, prefix, timed, ...TIMEOUTS, ...timeouts };
  return {
    ...transfers(reached, Upload),
    ...smallOperations(reached),
    close: () => {
      closing.abort();
      client.destroy();
    },
  };
}

/** The client, and what its requests have in common. */
interface Reached extends BucketTimeouts {
  readonly s3: typeof import("@aws-sdk/client-s3");
  readonly client: S3Client;
  readonly bucket: string;
  readonly prefix: string;
  readonly timed: Timed;
}

/** Runs an operation within a time. */
type Timed = <T>(ms: number, work: (abortSignal: AbortSignal) => Promise<T>) => Promise<T>;

/** Ends operations at their time or with the signal. Not all that the client waits for honours a signal. */
function timedUntil(closing: AbortSignal): Timed {
  return async (ms, work) => {
    if (closing.aborted) throw closed();
    const stop = new AbortController();
    const ended = Promise.withResolvers<never>();
    const end = (): void => ended.reject(closed());
    closing.addEventListener("abort", end);
    try {
      return await within(Promise.race([work(stop.signal), ended.promise]), ms, () => late(ms));
    } catch (error) {
      throw bucketFailure(error);
    } finally {
      closing.removeEventListener("abort", end);
      stop.abort();
    }
  };
}

/** The operations with the content of files. */
function transfers(
  { s3, client, bucket: Bucket, prefix, timed, transferMs }: Reached,
  Upload: typeof import("@aws-sdk/lib-storage").Upload,
): Pick<Bucket, "putFile" | "get"> {
  const gate = openGate({ width: FLIGHT_BYTES_MAX, lineMax: LINE_MAX, full: filesBusy });
  const transfer = <T>(sizeBytes: number, work: (abortSignal: AbortSignal) => Promise<T>): Promise<T> =>
    gate.run(() => timed(transferMs, work), { weight: Math.max(sizeBytes, FLIGHT_BYTES_MIN) });

  return {
    putFile: (key, path, sizeBytes) =>
      transfer(sizeBytes, async (abortSignal) => {
        const body = createReadStream(path);
        const params = {
          Bucket,
          Key: `${prefix}${key}`,
          Body: body,
          ContentType: "application/octet-stream",
        };
        const upload = new Upload({ client, params, partSize: PART_BYTES, queueSize: 1 });
        abortSignal.addEventListener("abort", () => void upload.abort());
        try {
          await upload.done();
        } finally {
          body.destroy();
        }
      }),
    get: (key, sizeBytes, read) =>
      transfer(sizeBytes, async (abortSignal) => {
        const command = new s3.GetObjectCommand({ Bucket, Key: `${prefix}${key}` });
        const { Body } = await client.send(command, { abortSignal });
        // In Node.js the body is a stream, which the type leaves open.
        const body = Body as (AsyncIterable<Uint8Array> & { destroy(error?: Error): void }) | undefined;
        if (body === undefined) throw gone(key);
        abortSignal.addEventListener("abort", () => body.destroy(late(transferMs)));
        try {
          return await read(body);
        } catch (error) {
          throw error instanceof KbsyncError || isLocal(error) ? error : new TransferBroken(error);
        }
      }),
  };
}

/** The operations that take a moment each. */
function smallOperations(reached: Reached): Omit<Bucket, "putFile" | "get" | "close"> {
  const { s3, client, bucket: Bucket, prefix, timed, answerMs } = reached;
  const at = (key: string) => ({ Bucket, Key: `${prefix}${key}` });
  return {
    put: (key, text) =>
      timed(answerMs, async (abortSignal) => {
        const body = { Body: text, ContentLength: Buffer.byteLength(text) };
        await client.send(new s3.PutObjectCommand({ ...at(key), ...body }), { abortSignal });
      }),
    has: (key) =>
      timed(answerMs, async (abortSignal) => {
        try {
          // Not a HEAD, whose answer does not say whether the object or the bucket is missing.
          const range = new s3.GetObjectCommand({ ...at(key), Range: "bytes=0-0" });
          const { Body } = await client.send(range, { abortSignal });
          await Body?.transformToByteArray();
          return true;
        } catch (error) {
          if (isNoKey(error)) return false;
          // No range fits an empty object.
          if (isNoRange(error)) return true;
          throw error;
        }
      }),
    delete: (key) =>
      timed(answerMs, async (abortSignal) => {
        await client.send(new s3.DeleteObjectCommand(at(key)), { abortSignal });
      }),
    deleteParts: (key) => timed(answerMs, (abortSignal) => deleteParts(reached, key, abortSignal)),
    list: (below, max) => listObjects(reached, below, max),
  };
}

async function deleteParts(
  { s3, client, bucket: Bucket, prefix }: Reached,
  key: string,
  abortSignal: AbortSignal,
): Promise<void> {
  const Key = `${prefix}${key}`;
  const list = new s3.ListMultipartUploadsCommand({ Bucket, Prefix: Key });
  const { Uploads = [] } = await client.send(list, { abortSignal });
  for (const { Key: found, UploadId } of Uploads) {
    // A prefix finds longer keys, too.
    if (found !== Key) continue;
    try {
      await client.send(new s3.AbortMultipartUploadCommand({ Bucket, Key, UploadId }), { abortSignal });
    } catch (error) {
      if (!isNoUpload(error)) throw error;
    }
  }
}

async function listObjects(
  { s3, client, bucket: Bucket, prefix, timed, answerMs }: Reached,
  below: string,
  max: number,
): Promise<readonly ListedObject[]> {
  const found: ListedObject[] = [];
  let ContinuationToken: string | undefined;
  do {
    const MaxKeys = Math.min(PAGE_MAX, max - found.length);
    const next = new s3.ListObjectsV2Command({
      Bucket,
      Prefix: `${prefix}${below}`,
      MaxKeys,
      ContinuationToken,
    });
    const page = await timed(answerMs, (abortSignal) => client.send(next, { abortSignal }));
    for (const { Key, LastModified, Size = 0 } of page.Contents ?? []) {
      if (Key === undefined || LastModified === undefined || !Key.startsWith(prefix)) continue;
      found.push({ key: Key.slice(prefix.length), modifiedMs: LastModified.getTime(), sizeBytes: Size });
    }
    // A service that repeats itself, or returns nothing and promises more, is not asked for ever.
    const after = page.NextContinuationToken;
    ContinuationToken = after === ContinuationToken || page.Contents === undefined ? undefined : after;
  } while (ContinuationToken !== undefined && found.length < max);
  return found;
}

function openClient(
  Client: typeof S3Client,
  { endpoint, region }: BucketOptions,
  env: NodeJS.ProcessEnv = process.env,
): S3Client {
  const isElsewhere = (endpoint ?? env["AWS_ENDPOINT_URL_S3"] ?? env["AWS_ENDPOINT_URL"]) !== undefined;
  // Services besides Amazon's mostly have a single region, but a signature needs a name.
  const name = region ?? env["AWS_REGION"] ?? (isElsewhere ? "us-east-1" : undefined);
  return new Client({
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(name === undefined ? {} : { region: name }),
    // Most services besides Amazon's expect the bucket in the path.
    forcePathStyle: isElsewhere,
    followRegionRedirects: true,
    maxAttempts: ATTEMPTS_MAX,
    userAgentAppId: "kbsync",
    // Signatures cover the SHA-256 of what is sent, and readers compare it; older services know no other checksums.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: { connectionTimeout: CONNECT_MS },
  });
}
