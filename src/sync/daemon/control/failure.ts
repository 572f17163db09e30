import { KbsyncError, messageOf } from "../../../lib/failure.ts";
import type { DaemonFailure } from "../../../wire/daemon.ts";

/** HTTP status of failures that concern the request. Whatever else is no defect conflicts with the daemon's state: 409. */
const STATUS: Readonly<Record<string, number>> = {
  invalid_body: 400,
  invalid_field: 400,
  route_not_found: 404,
  body_too_large: 413,
  unsupported_media_type: 415,
  internal: 500,
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
    status: STATUS[code] ?? (known?.retryable === true ? 503 : 409),
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
