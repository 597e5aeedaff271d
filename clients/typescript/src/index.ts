/** A client of rme: messages, consent, suppressions, devices and webhooks. */

export { Client, type ClientOptions } from "./client.js";
export { ApiError, ConnectionFailed, RateLimited, RmeError } from "./errors.js";
export type * from "./types.js";
export { InvalidSignature, verify, type WebhookEvent } from "./webhooks.js";
