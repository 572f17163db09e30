import { codeOf, KbsyncError, messageOf, type FailureFacts } from "../../lib/failure.ts";

/** Seconds after which a client may ask again while the bucket does not answer, and while an operator has to act. */
const RETRY_SECONDS = 5;
const RETRY_OPERATOR_SECONDS = 60;

/** Failures that last until someone changes the configuration or the bucket. */
const FOR_THE_OPERATOR: ReadonlySet<string> = new Set([
  "AccessDenied",
  "AccountProblem",
  "AllAccessDisabled",
  "AuthorizationHeaderMalformed",
  "CredentialsProviderError",
  "ExpiredToken",
  "Forbidden",
  "InvalidAccessKeyId",
  "InvalidBucketName",
  "InvalidToken",
  "MethodNotAllowed",
  "NoSuchBucket",
  "NotImplemented",
  "PermanentRedirect",
  "RequestTimeTooSkewed",
  "SignatureDoesNotMatch",
  "TokenRefreshRequired",
]);
/** Answers of services that are full. */
const FULL: ReadonlySet<string> = new Set([
  "QuotaExceeded",
  "InsufficientStorage",
  "StorageFull",
  "XMinioStorageFull",
  "XMinioAdminBucketQuotaExceeded",
]);

/** Reports whether the service says that the bucket has no such object; a missing bucket is no missing object. */
export function isNoKey(error: unknown): boolean {
  return nameOf(error) === "NoSuchKey";
}

/** Reports whether the object exists, but has no byte in the range that was asked for. */
export function isNoRange(error: unknown): boolean {
  return nameOf(error) === "InvalidRange" || statusOf(error) === 416;
}

export function isNoUpload(error: unknown): boolean {
  return nameOf(error) === "NoSuchUpload";
}

/** The error for a missing object. */
export function gone(key: string, cause?: unknown): KbsyncError {
  return new KbsyncError(`the bucket has no object ${key}`, { code: "ENOENT", subject: key, cause });
}

/** The error for a file whose bytes are not those that were received. */
export function damaged(what: string): KbsyncError {
  return new KbsyncError(`the stored file is not the one that was uploaded: ${what}`, {
    code: "file_damaged",
    hint: "Upload the file again. The operator may restore it from an earlier version of the object.",
  });
}

/** The error for an operation that took too long. */
export function late(ms: number): KbsyncError {
  return unavailable(`there was no complete answer within ${ms / 1000} s`);
}

/** A transfer that broke off midway. */
export class TransferBroken extends KbsyncError {
  constructor(cause: unknown) {
    super(...unavailableFacts("the transfer broke off", RETRY_SECONDS, cause));
  }
}

/** The error for an operation that the end of the service interrupts. */
export function closed(): KbsyncError {
  return unavailable("the service is shutting down");
}

/** The error while more transfers wait than may. */
export function filesBusy(): KbsyncError {
  return unavailable("too many transfers are waiting");
}

/** Converts an error of the client to one of this service, whose message names no bucket. Returns a KbsyncError unchanged. */
export function bucketFailure(error: unknown): unknown {
  if (error instanceof KbsyncError || isLocal(error)) return error;
  const name = nameOf(error);
  if (isNoKey(error)) return gone("of this file", error);
  if (FULL.has(name) || statusOf(error) === 507) {
    const message = "the store of uploaded files has no space left";
    return new KbsyncError(message, { code: "disk_full", retryable: true, cause: error });
  }
  const isForOperator =
    FOR_THE_OPERATOR.has(name) || /^(?:Region|Credential) is missing/.test(messageOf(error));
  return isForOperator
    ? unavailable(`the operator has to act (${name})`, RETRY_OPERATOR_SECONDS, error)
    : unavailable(name === "Error" ? "the connection failed" : name, RETRY_SECONDS, error);
}

function unavailable(why: string, retryAfterSeconds = RETRY_SECONDS, cause?: unknown): KbsyncError {
  return new KbsyncError(...unavailableFacts(why, retryAfterSeconds, cause));
}

function unavailableFacts(
  why: string,
  retryAfterSeconds: number,
  cause: unknown,
): [message: string, facts: FailureFacts] {
  return [
    `the store of uploaded files cannot be used at present: ${why}`,
    {
      code: "files_unavailable",
      retryable: true,
      retryAfterSeconds,
      ...(cause === undefined ? {} : { cause }),
    },
  ];
}

/** System errors that sockets cause. */
const CONNECTION: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
]);

/** Reports whether an error comes from the local disk: the store of files is no cause of a full one. */
export function isLocal(error: unknown): boolean {
  if (!(error instanceof Error) || !("syscall" in error)) return false;
  return !CONNECTION.has(codeOf(error) ?? "");
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  // Errors that the client does not know are named by the service's code.
  return error.name !== "Error" ? error.name : (codeOf(error) ?? "Error");
}

/** The status of the answer, which the client adds to its errors. */
function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("$metadata" in error)) return undefined;
  const { $metadata: metadata } = error;
  if (typeof metadata !== "object" || metadata === null || !("httpStatusCode" in metadata)) return undefined;
  return typeof metadata.httpStatusCode === "number" ? metadata.httpStatusCode : undefined;
}
