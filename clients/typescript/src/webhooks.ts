// Verification of webhooks, by the rules of Standard Webhooks:
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

import { RmeError } from "./errors.js";

const TOLERANCE = 5 * 60;

/** The request is not the service's, or was changed, or is more than five minutes old. */
export class InvalidSignature extends RmeError {}

/** An event. `data` depends on the type: see the service's guide to webhooks. */
export interface WebhookEvent {
  type: string;
  timestamp: string;
  data: Record<string, unknown>;
}

/**
 * Return the event of a request; throws InvalidSignature. `body` is as it was received, before
 * parsing; names of headers may be in any case.
 */
export async function verify(
  secret: string,
  headers: Headers | Record<string, string>,
  body: Uint8Array | string,
): Promise<WebhookEvent> {
  const read = headers instanceof Headers ? headers : new Headers(headers);
  const [id, timestamp, signatures] = ["id", "timestamp", "signature"].map(
    (name) => read.get(`webhook-${name}`) ?? "",
  ) as [string, string, string];
  if (!id || !/^[0-9]+$/.test(timestamp)) throw new InvalidSignature("A header is missing.");
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE) {
    throw new InvalidSignature("The timestamp is too far from now.");
  }
  const encoder = new TextEncoder();
  const content = typeof body === "string" ? encoder.encode(body) : body;
  const signed = concatenated(encoder.encode(`${id}.${timestamp}.`), content);
  const key = await crypto.subtle.importKey(
    "raw",
    bytesOf(secret.replace(/^whsec_/, "")),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["verify"],
  );
  for (const each of signatures.split(" ")) {
    const [version, text] = each.split(",", 2);
    // The comparison of `verify` takes the same time for all signatures.
    if (version === "v1" && text && (await matches(key, text, signed))) {
      return JSON.parse(new TextDecoder().decode(content)) as WebhookEvent;
    }
  }
  throw new InvalidSignature("No signature matches.");
}

async function matches(key: CryptoKey, text: string, signed: Uint8Array<ArrayBuffer>): Promise<boolean> {
  try {
    return await crypto.subtle.verify("HMAC", key, bytesOf(text), signed);
  } catch {
    return false; // it is no base64
  }
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function concatenated(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}
