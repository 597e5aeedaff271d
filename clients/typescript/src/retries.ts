// Which calls are made again, and when.

const REPEATABLE = new Set(["GET", "PATCH", "DELETE"]);
const FIRST_WAIT = 0.5;
const LONGEST_WAIT = 8;
/** A longer Retry-After is left to the caller. */
export const LONGEST_RETRY_AFTER = 60;

/** Whether the second call has the effect of the first. */
export function isRepeatable(method: string, keyed: boolean): boolean {
  return keyed || REPEATABLE.has(method);
}

/**
 * Whether an answer may be another one soon, and asking again does no harm. A call that was refused
 * for its rate has had no effect, whatever it is.
 */
export function isTemporary(status: number, code: string, repeatable: boolean): boolean {
  if (status === 429) return true;
  if (status === 409) return repeatable && code === "IDEMPOTENCY_IN_PROGRESS";
  if (status === 502) return repeatable && code !== "PROVIDER_ERROR";
  return repeatable && (status === 503 || status === 504);
}

/** The seconds of Retry-After: a number, or a date (RFC 9110 §10.2.3). */
export function retryAfter(headers: Headers): number | undefined {
  const text = headers.get("Retry-After")?.trim();
  if (!text) return undefined;
  if (/^[0-9]+$/.test(text)) return Number(text);
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? undefined : Math.max(0, (moment - Date.now()) / 1000);
}

/**
 * How long to wait before a retry, the first being 0, with full jitter. What the service asked for
 * is waited in full, and up to a tenth more, so that many clients do not come back at once.
 */
export function wait(retry: number, asked: number | undefined): number {
  if (asked !== undefined) return asked * (1 + Math.random() / 10);
  return Math.random() * Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** retry);
}
