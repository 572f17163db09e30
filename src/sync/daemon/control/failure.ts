import { KbsyncError, messageOf } from "../../../lib/failure.ts";
import type { DaemonFailure } from "../../../wire/daemon.ts";

/** HTTP status of each failure that is neither a defect nor temporary. */
const STATUS: Readonly<Record<string, number>> = {
  config_invalid: 400,
  invalid_body: 400,
  invalid_field: 400,
  not_kept: 404,
  outside_sources: 404,
  route_not_found: 404,
  source_unknown: 404,
  approval_changed: 409,
  config_changed: 409,
  config_unreadable: 409,
  folders_fixed: 409,
  source_known: 409,
  source_missing: 409,
  source_overlap: 409,
  source_id_shared: 409,
  source_unusable: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
};

/** Codes of the framework's own refusals, by status. */
const FRAMEWORK_CODES: Readonly<Record<number, string>> = {
  400: "invalid_body",
  413: "body_too_large",
  415: "unsupported_media_type",
};

/** Returns a failure in the same shape as the service's. An unexpected one has only its message. */
export function failureOf(error: unknown): { readonly status: number; readonly body: DaemonFailure } {
  const known = error instanceof KbsyncError ? error : undefined;
  const code = known?.code ?? FRAMEWORK_CODES[statusCodeOf(error) ?? 0] ?? "internal";
  const { hint, subject } = known ?? {};
  return {
    status: STATUS[code] ?? (known?.retryable === true ? 503 : 500),
    body: {
      success: false,
      message: messageOf(error),
      error: {
        code,
        retryable: known?.retryable ?? false,
        ...(hint !== undefined && { hint }),
        ...(subject !== undefined && { [code === "invalid_field" ? "field" : "subject"]: subject }),
      },
    },
  };
}

function statusCodeOf(error: unknown): number | undefined {
  const status = error instanceof Error && "statusCode" in error ? error.statusCode : undefined;
  return typeof status === "number" ? status : undefined;
}

/** Converts the failure in an answer to an error. */
export function errorOf({ message, error }: DaemonFailure): KbsyncError {
  const { code, retryable, subject, hint } = error;
  return new KbsyncError(message, {
    code,
    retryable,
    ...(subject !== undefined && { subject }),
    ...(hint !== undefined && { hint }),
  });
}
