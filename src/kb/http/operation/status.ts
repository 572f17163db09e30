import { codeOf, KbsyncError } from "../../../lib/failure.ts";
import { saysFull } from "../../../lib/full-disk.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { Refusal } from "../../resources/refusal.ts";
import type { RefusalCode } from "../../resources/refusal.ts";
import { mayBeCommitted } from "../../store/commit-unknown.ts";
import { DAMAGE_HINT, isDamage } from "../../store/damage.ts";

/** The HTTP status of every refusal code. */
export const STATUS: Readonly<Record<RefusalCode, number>> = {
  invalid_body: 400,
  invalid_field: 400,
  invalid_header: 400,
  invalid_request: 400,
  empty_file: 400,
  key_missing: 401,
  key_unknown: 401,
  key_expired: 401,
  session_ended: 401,
  sign_in_link_ended: 401,
  scope_missing: 403,
  cross_site: 403,
  route_not_found: 404,
  resource_not_found: 404,
  key_not_found: 404,
  collection_not_found: 404,
  file_not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  endpoint_not_found: 404,
  idempotency_conflict: 409,
  key_limit: 409,
  idempotency_in_progress: 409,
  too_many_endpoints: 409,
  agent_not_found: 404,
  thread_not_found: 404,
  images_too_large: 413,
  precondition_failed: 412,
  version_gone: 410,
  body_too_large: 413,
  text_too_large: 413,
  file_too_large: 413,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  expectation_failed: 417,
  host_refused: 421,
  target_missing: 422,
  owner_missing: 422,
  link_refused: 422,
  link_failed: 422,
  encrypted_pdf: 422,
  damaged_pdf: 422,
  pdf_without_text: 422,
  image_without_text: 422,
  image_too_large: 413,
  damaged_image: 422,
  page_without_text: 422,
  page_unreadable: 422,
  mail_unreadable: 422,
  too_many_pages: 422,
  too_many_chunks: 422,
  store_full: 422,
  extraction_memory: 422,
  extraction_timeout: 422,
  extraction_crashed: 422,
  rate_limited: 429,
  ingest_busy: 429,
  queue_full: 429,
  extractor_busy: 429,
  headers_too_large: 431,
  file_damaged: 500,
  internal: 500,
  model_failed: 502,
  model_busy: 503,
  model_timeout: 504,
  starting: 503,
  draining: 503,
  overloaded: 503,
  extraction_failed: 503,
  store_busy: 503,
  store_damaged: 503,
  disk_full: 503,
  files_unavailable: 503,
};

/** Default `Retry-After` in seconds of refusals that do not set their own. */
const RETRY_AFTER_SECONDS: Readonly<Partial<Record<RefusalCode, number>>> = {
  ingest_busy: 2,
  queue_full: 10,
  extractor_busy: 5,
  starting: 1,
  draining: 5,
  overloaded: 1,
  extraction_failed: 10,
  store_busy: 1,
  // A person has to act, so clients need not retry often.
  store_damaged: 60,
  disk_full: 60,
  files_unavailable: 5,
};

/** A refusal as sent to the client. */
export interface RefusalAnswer {
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;
  readonly body: {
    readonly success: false;
    readonly message: string;
    readonly error: { readonly code: string; readonly hint?: string; readonly field?: string };
  };
}

/** Converts any thrown value to an answer. An unexpected failure is `internal` and reveals no details. */
export function refusalAnswer(error: unknown): RefusalAnswer {
  const refusal = refusalOf(error);
  return {
    status: STATUS[refusal.refusal],
    retryAfterSeconds: refusal.retryAfterSeconds ?? RETRY_AFTER_SECONDS[refusal.refusal],
    body: {
      success: false,
      message: refusal.message,
      error: {
        code: refusal.refusal,
        ...(refusal.hint === undefined ? {} : { hint: refusal.hint }),
        ...(refusal.field === undefined ? {} : { field: refusal.field }),
      },
    },
  };
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const code = codeOf(error);
  if (saysFull(error)) {
    // The message of the store contains a path on this machine, which belongs in the log only.
    return new Refusal("disk_full", "The disk has no space left to store this.", { cause: error });
  }
  if (isDamage(error)) return storeDamaged(error);
  if (code === "index_damaged") {
    return new Refusal("store_busy", "A part of the search index is damaged, and is being rebuilt.", {
      hint: "Repeat the request later. Nothing is lost: the index is made from the stored texts.",
      cause: error,
    });
  }
  if (code === "store_busy") {
    // The message of the store names its database, so it belongs in the log only.
    const hint = error instanceof KbsyncError && mayBeCommitted(error) ? error.hint : undefined;
    return new Refusal("store_busy", "The store is busy, or does not answer.", {
      ...(hint !== undefined && { hint }),
      cause: error,
    });
  }
  // What throws an error with a code of the API means its message for the caller. Worker threads call all other errors `internal`.
  if (error instanceof KbsyncError && Object.hasOwn(STATUS, error.code) && error.code !== "internal") {
    const hint = error.hint === undefined ? {} : { hint: sentence(error.hint) };
    const { retryAfterSeconds: seconds } = error;
    const later = seconds === undefined ? {} : { retryAfterSeconds: seconds };
    // A key of STATUS is a refusal code.
    return new Refusal(code as RefusalCode, sentence(error.message), { ...hint, ...later, cause: error });
  }
  return fastifyRefusal(error, code) ?? internal(error);
}

/** The answer if the store is damaged. The original message contains a path on this machine, which belongs in the log only. */
export function storeDamaged(cause: unknown): Refusal {
  return new Refusal("store_damaged", "The store of the knowledge base is damaged.", {
    hint: cause instanceof KbsyncError && cause.hint !== undefined ? cause.hint : DAMAGE_HINT,
    cause,
  });
}

function fastifyRefusal(error: unknown, code: string | undefined): Refusal | undefined {
  switch (code ?? "") {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new Refusal("body_too_large", "The body is larger than this operation allows.", {
        hint: "Send text as UTF-8 without \\u escapes, or split it into several resources.",
        cause: error,
      });
    case "FST_PARTS_LIMIT":
    case "FST_FILES_LIMIT":
    case "FST_FIELDS_LIMIT":
      return new Refusal(
        "body_too_large",
        "The form has more parts than an upload allows: one file, few fields.",
        {
          hint: "Send each file in a separate request.",
          cause: error,
        },
      );
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new Refusal(
        "unsupported_media_type",
        "The content-type of the body is not supported by this operation.",
        {
          hint: "Send application/json; an upload is multipart/form-data.",
          cause: error,
        },
      );
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return new Refusal("invalid_body", "The length of the body differs from its content-length.", {
        cause: error,
      });
    case "FST_PROTO_VIOLATION":
      return new Refusal("invalid_body", "The form has a field with a forbidden name.", {
        hint: "Leave out fields named like a property of every object, such as `__proto__` or `constructor`.",
        cause: error,
      });
    case "FST_INVALID_JSON_FIELD_ERROR":
      return new Refusal("invalid_body", "A field of the form declares application/json and is not JSON.", {
        hint: "Send the fields of a form as plain text.",
        cause: error,
      });
    case "FST_ERR_BAD_URL":
    case "FST_ERR_MAX_PARAM_LENGTH":
      return new Refusal("invalid_request", "The address of the request is malformed or too long.", {
        cause: error,
      });
    default:
      return clientFault(error);
  }
}

/** Converts Fastify's other refusals, which have a 4xx status. Their messages are about its internals, for the log only. */
function clientFault(error: unknown): Refusal | undefined {
  if (!(error instanceof Error) || !("statusCode" in error)) return undefined;
  const { statusCode } = error;
  if (typeof statusCode !== "number" || statusCode < 400 || statusCode >= 500) return undefined;
  return new Refusal("invalid_request", "The request is malformed.", {
    hint: `GET ${ROUTES.openApi} describes the input of each operation.`,
    cause: error,
  });
}

function internal(cause: unknown): Refusal {
  return new Refusal("internal", "The service failed on this request; its log has the cause.", { cause });
}

function sentence(words: string): string {
  const text = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
