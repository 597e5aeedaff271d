/** Base of all errors of this package. */
export class RmeError extends Error {}

/** No answer arrived, after all retries; `cause` is fetch's error. */
export class ConnectionFailed extends RmeError {}

export interface ErrorBody {
  code?: string;
  message?: string;
  messageId?: string | null;
  requestId?: string;
  details?: { field: string; message: string }[];
}

/** An error that the service answered with. `code` is stable; `details` names the wrong fields. */
export class ApiError extends RmeError {
  readonly code: string;
  readonly details: { field: string; message: string }[];
  readonly requestId: string | undefined;
  readonly messageId: string | null;

  constructor(
    readonly status: number,
    body: ErrorBody,
    /** Seconds, if the service asked for a wait. */
    readonly retryAfter: number | undefined,
  ) {
    super(`${status} ${body.code ?? "UNKNOWN"}: ${body.message ?? ""}`);
    this.code = body.code ?? "UNKNOWN";
    this.details = body.details ?? [];
    this.requestId = body.requestId;
    this.messageId = body.messageId ?? null;
  }
}

/** Too many calls (429). */
export class RateLimited extends ApiError {}
