// The calls of the API. Generated from the OpenAPI description by `make clients`; not to be edited.
import type * as types from "./types.js";

/** What a call sends. `keyed`: it takes an Idempotency-Key. */
export interface Call {
  method: string;
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string | undefined>;
  body?: unknown;
  keyed?: boolean;
}

export abstract class Operations {
  /** Perform a call, and return its answer. */
  protected abstract call<T>(call: Call): Promise<T>;

  /** Suppress an address or a contact, or up to 500. */
  addSuppressions(body: types.SuppressionBody): Promise<types.SuppressionOutput | types.SuppressionAddedOutput> {
    return this.call({
      method: "POST",
      path: `/suppressions`,
      body,
    });
  }

  /** Cancel a scheduled message. */
  cancelMessage(messageId: string): Promise<types.SendOutput> {
    return this.call({
      method: "DELETE",
      path: `/messages/${encodeURIComponent(messageId)}`,
    });
  }

  /** Create a webhook endpoint. */
  createWebhookEndpoint(body: types.EndpointInput): Promise<types.WebhookEndpointSecretOutput> {
    return this.call({
      method: "POST",
      path: `/webhook-endpoints`,
      body,
    });
  }

  /** Delete a webhook endpoint, with its queue. */
  deleteWebhookEndpoint(endpointId: string): Promise<void> {
    return this.call({
      method: "DELETE",
      path: `/webhook-endpoints/${encodeURIComponent(endpointId)}`,
    });
  }

  /** Get the health of the service, its providers and their configuration. */
  getHealth(): Promise<types.HealthOutput> {
    return this.call({
      method: "GET",
      path: `/health`,
    });
  }

  /** Get a message with its events. */
  getMessage(messageId: string, options: { include?: "trace" | undefined } = {}): Promise<types.DetailedOutput> {
    return this.call({
      method: "GET",
      path: `/messages/${encodeURIComponent(messageId)}`,
      query: { "include": options.include },
    });
  }

  /** Read a suppression. */
  getSuppression(suppressionId: string): Promise<types.SuppressionOutput> {
    return this.call({
      method: "GET",
      path: `/suppressions/${encodeURIComponent(suppressionId)}`,
    });
  }

  /** Read a webhook endpoint. */
  getWebhookEndpoint(endpointId: string): Promise<types.WebhookEndpointOutput> {
    return this.call({
      method: "GET",
      path: `/webhook-endpoints/${encodeURIComponent(endpointId)}`,
    });
  }

  /** Lift a suppression that the query names. */
  liftSuppression(options: { address?: string | undefined; channel?: "EMAIL" | "SMS" | "PUSH" | "ALL" | undefined; contactId?: string | undefined; id?: string | undefined } = {}): Promise<void> {
    return this.call({
      method: "DELETE",
      path: `/suppressions`,
      query: { "address": options.address, "channel": options.channel, "contactId": options.contactId, "id": options.id },
    });
  }

  /** Lift a suppression. */
  liftSuppressionById(suppressionId: string): Promise<void> {
    return this.call({
      method: "DELETE",
      path: `/suppressions/${encodeURIComponent(suppressionId)}`,
    });
  }

  /** Read the consent ledger, newest first. */
  listConsent(options: { category?: string | undefined; channel?: "EMAIL" | "SMS" | "PUSH" | "ALL" | undefined; contactId?: string | undefined; cursor?: string | undefined; history?: boolean | undefined; limit?: number | undefined } = {}): Promise<types.ConsentPageOutput> {
    return this.call({
      method: "GET",
      path: `/consent`,
      query: { "category": options.category, "channel": options.channel, "contactId": options.contactId, "cursor": options.cursor, "history": options.history, "limit": options.limit },
    });
  }

  /** Read the consent ledger, newest first: all pages, one item after another. */
  async *iterateConsent(options: { category?: string | undefined; channel?: "EMAIL" | "SMS" | "PUSH" | "ALL" | undefined; contactId?: string | undefined; history?: boolean | undefined; limit?: number | undefined } = {}): AsyncGenerator<types.ConsentOutput> {
    let cursor: string | undefined;
    do {
      const page: types.ConsentPageOutput = await this.listConsent({ ...options, cursor });
      yield* page.consent;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** Query the devices, newest first. */
  listDevices(options: { contactId?: string | undefined; cursor?: string | undefined; limit?: number | undefined } = {}): Promise<types.DevicePageOutput> {
    return this.call({
      method: "GET",
      path: `/devices`,
      query: { "contactId": options.contactId, "cursor": options.cursor, "limit": options.limit },
    });
  }

  /** Query the devices, newest first: all pages, one item after another. */
  async *iterateDevices(options: { contactId?: string | undefined; limit?: number | undefined } = {}): AsyncGenerator<types.DeviceListedOutput> {
    let cursor: string | undefined;
    do {
      const page: types.DevicePageOutput = await this.listDevices({ ...options, cursor });
      yield* page.devices;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** Query the history, newest first. */
  listMessages(options: { category?: string | undefined; channel?: "EMAIL" | "SMS" | "PUSH" | undefined; contactId?: string | undefined; cursor?: string | undefined; limit?: number | undefined; since?: string | undefined; status?: "ACCEPTED" | "SCHEDULED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "BLOCKED" | "CANCELLED" | "EXPIRED" | "UNKNOWN" | undefined; until?: string | undefined } = {}): Promise<types.HistoryOutput> {
    return this.call({
      method: "GET",
      path: `/messages`,
      query: { "category": options.category, "channel": options.channel, "contactId": options.contactId, "cursor": options.cursor, "limit": options.limit, "since": options.since, "status": options.status, "until": options.until },
    });
  }

  /** Query the history, newest first: all pages, one item after another. */
  async *iterateMessages(options: { category?: string | undefined; channel?: "EMAIL" | "SMS" | "PUSH" | undefined; contactId?: string | undefined; limit?: number | undefined; since?: string | undefined; status?: "ACCEPTED" | "SCHEDULED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "BLOCKED" | "CANCELLED" | "EXPIRED" | "UNKNOWN" | undefined; until?: string | undefined } = {}): AsyncGenerator<types.SummaryOutput> {
    let cursor: string | undefined;
    do {
      const page: types.HistoryOutput = await this.listMessages({ ...options, cursor });
      yield* page.messages;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** Query the suppressions, newest first. */
  listSuppressions(options: { address?: string | undefined; channel?: "EMAIL" | "SMS" | "PUSH" | "ALL" | undefined; contactId?: string | undefined; cursor?: string | undefined; limit?: number | undefined; reason?: "HARD_BOUNCE" | "COMPLAINT" | "STOP" | "UNSUBSCRIBE" | "INVALID_ADDRESS" | "MANUAL" | undefined } = {}): Promise<types.SuppressionListOutput> {
    return this.call({
      method: "GET",
      path: `/suppressions`,
      query: { "address": options.address, "channel": options.channel, "contactId": options.contactId, "cursor": options.cursor, "limit": options.limit, "reason": options.reason },
    });
  }

  /** Query the suppressions, newest first: all pages, one item after another. */
  async *iterateSuppressions(options: { address?: string | undefined; channel?: "EMAIL" | "SMS" | "PUSH" | "ALL" | undefined; contactId?: string | undefined; limit?: number | undefined; reason?: "HARD_BOUNCE" | "COMPLAINT" | "STOP" | "UNSUBSCRIBE" | "INVALID_ADDRESS" | "MANUAL" | undefined } = {}): AsyncGenerator<types.SuppressionOutput> {
    let cursor: string | undefined;
    do {
      const page: types.SuppressionListOutput = await this.listSuppressions({ ...options, cursor });
      yield* page.suppressions;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** List the versions of templates. */
  listTemplates(options: { channel?: "EMAIL" | "SMS" | "PUSH" | undefined; cursor?: string | undefined; language?: string | undefined; limit?: number | undefined; name?: string | undefined; status?: "DRAFT" | "ACTIVE" | "ARCHIVED" | undefined } = {}): Promise<types.TemplatesOutput> {
    return this.call({
      method: "GET",
      path: `/templates`,
      query: { "channel": options.channel, "cursor": options.cursor, "language": options.language, "limit": options.limit, "name": options.name, "status": options.status },
    });
  }

  /** List the versions of templates: all pages, one item after another. */
  async *iterateTemplates(options: { channel?: "EMAIL" | "SMS" | "PUSH" | undefined; language?: string | undefined; limit?: number | undefined; name?: string | undefined; status?: "DRAFT" | "ACTIVE" | "ARCHIVED" | undefined } = {}): AsyncGenerator<types.VersionOutput> {
    let cursor: string | undefined;
    do {
      const page: types.TemplatesOutput = await this.listTemplates({ ...options, cursor });
      yield* page.templates;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** List the webhook endpoints, newest first. */
  listWebhookEndpoints(options: { cursor?: string | undefined; limit?: number | undefined } = {}): Promise<types.WebhookEndpointPageOutput> {
    return this.call({
      method: "GET",
      path: `/webhook-endpoints`,
      query: { "cursor": options.cursor, "limit": options.limit },
    });
  }

  /** List the webhook endpoints, newest first: all pages, one item after another. */
  async *iterateWebhookEndpoints(options: { limit?: number | undefined } = {}): AsyncGenerator<types.WebhookEndpointOutput> {
    let cursor: string | undefined;
    do {
      const page: types.WebhookEndpointPageOutput = await this.listWebhookEndpoints({ ...options, cursor });
      yield* page.webhookEndpoints;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** Record what one person decided, or up to 500 decisions. */
  recordConsent(body: types.ConsentBody): Promise<types.ConsentAnswer> {
    return this.call({
      method: "POST",
      path: `/consent`,
      body,
    });
  }

  /** Register a device, or up to 500. */
  registerDevices(body: types.DeviceBody): Promise<types.DeviceOutput | types.DeviceRegisteredOutput> {
    return this.call({
      method: "POST",
      path: `/devices`,
      body,
    });
  }

  /** Forget a device. */
  removeDevice(deviceId: string): Promise<void> {
    return this.call({
      method: "DELETE",
      path: `/devices/${encodeURIComponent(deviceId)}`,
    });
  }

  /** Preview a template. */
  renderTemplate(name: string, body: types.RenderInput = {}): Promise<types.RenderOutput> {
    return this.call({
      method: "POST",
      path: `/templates/${encodeURIComponent(name)}/render`,
      body,
    });
  }

  /** Replace the token of a device. */
  replaceDeviceToken(deviceId: string, body: types.ReplaceInput): Promise<types.DeviceOutput> {
    return this.call({
      method: "POST",
      path: `/devices/${encodeURIComponent(deviceId)}/replace`,
      body,
    });
  }

  /** Send events to a webhook endpoint again. */
  replayWebhooks(endpointId: string, body: types.ReplayInput = {}): Promise<types.WebhookReplayOutput> {
    return this.call({
      method: "POST",
      path: `/webhook-endpoints/${encodeURIComponent(endpointId)}/replay`,
      body,
    });
  }

  /** Replace the signing secret of a webhook endpoint. */
  rotateWebhookSecret(endpointId: string): Promise<types.WebhookEndpointSecretOutput> {
    return this.call({
      method: "POST",
      path: `/webhook-endpoints/${encodeURIComponent(endpointId)}/rotate-secret`,
    });
  }

  /** Send a message. */
  sendMessage(body: types.MessageInput, options: { dryRun?: boolean | undefined; idempotencyKey?: string | undefined; prefer?: string | undefined } = {}): Promise<types.SentOrDryRun | types.SendOutput> {
    return this.call({
      method: "POST",
      path: `/messages`,
      query: { "dryRun": options.dryRun },
      headers: { "Idempotency-Key": options.idempotencyKey, "Prefer": options.prefer },
      body,
      keyed: true,
    });
  }

  /** Send up to 500 messages. */
  sendMessages(body: types.BulkInput, options: { idempotencyKey?: string | undefined } = {}): Promise<types.BulkOutput> {
    return this.call({
      method: "POST",
      path: `/messages/bulk`,
      headers: { "Idempotency-Key": options.idempotencyKey },
      body,
      keyed: true,
    });
  }

  /** Get the key that browsers subscribe with. */
  showVapidKey(): Promise<types.VapidKeyOutput> {
    return this.call({
      method: "GET",
      path: `/devices/vapid-key`,
    });
  }

  /** Send a test event to a webhook endpoint. */
  testWebhookEndpoint(endpointId: string): Promise<types.WebhookTestOutput> {
    return this.call({
      method: "POST",
      path: `/webhook-endpoints/${encodeURIComponent(endpointId)}/test`,
    });
  }

  /** Change, enable or disable a webhook endpoint. */
  updateWebhookEndpoint(endpointId: string, body: types.PatchedEndpointUpdateInput = {}): Promise<types.WebhookEndpointOutput> {
    return this.call({
      method: "PATCH",
      path: `/webhook-endpoints/${encodeURIComponent(endpointId)}`,
      body,
    });
  }
}
