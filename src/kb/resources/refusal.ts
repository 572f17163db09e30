import { KbsyncError } from "../../lib/failure.ts";

/**
 * Why a request is refused: the value of `error.code`. docs/API.md lists all codes with their status. Some are codes of failures
 * that the extractor and the store throw.
 */
export type RefusalCode =
  | "invalid_body"
  | "invalid_field"
  | "invalid_header"
  | "invalid_request"
  | "empty_file"
  | "key_missing"
  | "key_unknown"
  | "key_expired"
  | "key_not_found"
  | "key_limit"
  | "session_ended"
  | "sign_in_link_ended"
  | "cross_site"
  | "host_refused"
  | "scope_missing"
  | "rate_limited"
  | "route_not_found"
  | "resource_not_found"
  | "collection_not_found"
  | "file_not_found"
  | "file_damaged"
  | "files_unavailable"
  | "method_not_allowed"
  | "request_timeout"
  | "idempotency_conflict"
  | "idempotency_in_progress"
  | "precondition_failed"
  | "version_gone"
  | "queue_full"
  | "endpoint_not_found"
  | "too_many_endpoints"
  | "store_full"
  | "agent_not_found"
  | "thread_not_found"
  | "images_too_large"
  | "model_failed"
  | "model_busy"
  | "model_timeout"
  | "body_too_large"
  | "text_too_large"
  | "file_too_large"
  | "unsupported_media_type"
  | "expectation_failed"
  | "range_not_satisfiable"
  | "target_missing"
  | "owner_missing"
  | "link_refused"
  | "link_failed"
  | "encrypted_pdf"
  | "damaged_pdf"
  | "pdf_without_text"
  | "image_without_text"
  | "image_too_large"
  | "damaged_image"
  | "page_without_text"
  | "page_unreadable"
  | "mail_unreadable"
  | "too_many_pages"
  | "too_many_chunks"
  | "extraction_memory"
  | "extraction_timeout"
  | "extraction_crashed"
  | "extraction_failed"
  | "ingest_busy"
  | "extractor_busy"
  | "headers_too_large"
  | "internal"
  | "starting"
  | "draining"
  | "overloaded"
  | "store_busy"
  | "store_damaged"
  | "disk_full";

/** The fields of a refusal besides its message. */
export interface RefusalFacts {
  /** JSON path of the invalid field of the request, for example `settings.chunkSize`. */
  readonly field?: string;
  readonly hint?: string;
  /** Seconds after which the same request may succeed. Makes the refusal retryable. */
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/** An expected failure of an operation, with a message for the caller. `kb/http` maps codes to statuses. */
export class Refusal extends KbsyncError {
  readonly refusal: RefusalCode;
  readonly field: string | undefined;

  constructor(refusal: RefusalCode, message: string, facts: RefusalFacts = {}) {
    super(message, {
      code: refusal,
      retryable: facts.retryAfterSeconds !== undefined,
      retryAfterSeconds: facts.retryAfterSeconds,
      ...(facts.hint === undefined ? {} : { hint: facts.hint }),
      ...(facts.cause === undefined ? {} : { cause: facts.cause }),
    });
    this.refusal = refusal;
    this.field = facts.field;
  }
}

/** The refusal of a field that violates a rule. */
export function invalidField(field: string, rule: string, hint?: string): Refusal {
  return new Refusal("invalid_field", `${field}: ${rule}`, hint === undefined ? { field } : { field, hint });
}

/** The refusal of a resource that this account does not have, whether or not another account has it. */
export function noResource(id: string): Refusal {
  return new Refusal("resource_not_found", `This key has no resource ${shown(id)}.`);
}

/** Quotes and shortens an untrusted value, so that messages do not grow with their input. */
export function shown(value: string): string {
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
}
