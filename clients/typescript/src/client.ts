import { ApiError, ConnectionFailed, RateLimited, type ErrorBody } from "./errors.js";
import { Operations, type Call } from "./operations.js";
import { isRepeatable, isTemporary, LONGEST_RETRY_AFTER, retryAfter, wait } from "./retries.js";

export const VERSION = "0.1.0";
const PREFIX = "/rme/v1";
const TOKEN_PATH = "/services/oauth2/token";
/** A token that expires within these seconds is replaced. */
const TOKEN_MARGIN = 30;

export interface ClientOptions {
  /** The address of the service. */
  baseUrl: string;
  /** Without a token, one is requested by these two, and renewed. */
  clientId?: string;
  clientSecret?: string;
  token?: string;
  maxRetries?: number;
  /** Milliseconds for one request. */
  timeout?: number;
  fetch?: typeof fetch;
}

interface Outgoing {
  method: string;
  url: string;
  headers: Record<string, string>;
  body?: string;
  repeatable: boolean;
  authorized: boolean;
}

/** Calls the API. */
export class Client extends Operations {
  readonly #origin: string;
  readonly #url: string;
  readonly #options: ClientOptions;
  readonly #maxRetries: number;
  #token: string;
  #tokenUntil: number;

  constructor(options: ClientOptions) {
    super();
    if (Boolean(options.token) === Boolean(options.clientId && options.clientSecret)) {
      throw new TypeError("Give a token, or clientId and clientSecret.");
    }
    const url = new URL(options.baseUrl);
    const path = url.pathname.replace(/\/+$/, "");
    this.#origin = url.origin;
    this.#url = url.origin + (path || PREFIX);
    this.#options = options;
    this.#maxRetries = options.maxRetries ?? 3;
    this.#token = options.token ?? "";
    this.#tokenUntil = options.token ? Infinity : 0;
  }

  protected async call<T>(call: Call): Promise<T> {
    const headers = given(call.headers ?? {});
    // The same for all retries.
    if (call.keyed) headers["Idempotency-Key"] ??= crypto.randomUUID();
    if (call.body !== undefined) headers["Content-Type"] = "application/json";
    const query = new URLSearchParams(given(call.query ?? {})).toString();
    const request: Outgoing = {
      method: call.method,
      url: `${this.#url}${call.path}${query && `?${query}`}`,
      headers,
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
      repeatable: isRepeatable(call.method, call.keyed ?? false),
      authorized: true,
    };
    for (let renewed = false; ; renewed = true) {
      await this.#getToken();
      const response = await this.#send(request);
      if (response.status === 401 && !renewed && !this.#options.token) {
        this.#tokenUntil = 0; // it was revoked before its time
        await response.body?.cancel();
        continue;
      }
      const text = await response.text();
      if (!response.ok) throw errorOf(response, text);
      return (text ? JSON.parse(text) : undefined) as T;
    }
  }

  async #getToken(): Promise<void> {
    if (now() < this.#tokenUntil - TOKEN_MARGIN) return;
    const form = new URLSearchParams({
      grant_type: "client_credentials",
      client_id: this.#options.clientId ?? "",
      client_secret: this.#options.clientSecret ?? "",
    });
    const response = await this.#send({
      method: "POST",
      url: this.#origin + TOKEN_PATH,
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
      body: form.toString(),
      repeatable: true,
      authorized: false,
    });
    const text = await response.text();
    if (!response.ok) throw errorOf(response, text);
    const answer = JSON.parse(text) as { access_token: string; expires_in?: number };
    this.#token = answer.access_token;
    this.#tokenUntil = now() + (answer.expires_in ?? 3600);
  }

  /** Send, and send again while that may help. Returns the last response. */
  async #send(request: Outgoing): Promise<Response> {
    const authorization = request.authorized ? { Authorization: `Bearer ${this.#token}` } : {};
    const init: RequestInit = {
      method: request.method,
      headers: { ...request.headers, ...authorization },
      redirect: "manual",
      ...(request.body === undefined ? {} : { body: request.body }),
    };
    for (let retry = 0; ; retry++) {
      const isLast = retry === this.#maxRetries;
      let asked: number | undefined;
      try {
        const signal = AbortSignal.timeout(this.#options.timeout ?? 30_000);
        const response = await (this.#options.fetch ?? fetch)(request.url, { ...init, signal });
        asked = retryAfter(response.headers);
        const code = response.ok || isLast ? "" : errorOf(response, await response.clone().text()).code;
        const again = isTemporary(response.status, code, request.repeatable);
        if (isLast || (asked ?? 0) > LONGEST_RETRY_AFTER || !again) return response;
        await response.body?.cancel();
      } catch (cause) {
        if (isLast || !request.repeatable) throw new ConnectionFailed(String(cause), { cause });
      }
      await new Promise((resolve) => setTimeout(resolve, 1000 * wait(retry, asked)));
    }
  }
}

function now(): number {
  return performance.now() / 1000;
}

function given(values: Record<string, string | number | boolean | undefined>): Record<string, string> {
  const found = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(found.map(([name, value]) => [name, String(value)]));
}

/** The error of a response; the token endpoint and proxies have other bodies. */
function errorOf(response: Response, text: string): ApiError {
  let body: ErrorBody = { message: text.slice(0, 200) };
  try {
    const { error } = JSON.parse(text) as { error?: ErrorBody | string };
    body = typeof error === "string" ? { ...body, code: error } : (error ?? body);
  } catch {
    // It is no JSON: the message is its text.
  }
  const kind = response.status === 429 ? RateLimited : ApiError;
  return new kind(response.status, body, retryAfter(response.headers));
}
