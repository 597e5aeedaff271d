// The bodies and answers of the API. Generated from the OpenAPI description by `make clients`; not to be edited.

/** That instant. */
export interface AtSchedule {
  mode: "AT";
  at: string;
}

/** The envelope of a bulk. The items are checked one by one: a bad one fails no other. */
export interface BulkInput {
  messages: BulkItem[];
}

export interface BulkItem {
  channel?: "EMAIL" | "SMS" | "PUSH" | "AUTO" | null;
  channels?: ("EMAIL" | "SMS" | "PUSH")[] | null;
  strategy?: "FIRST_REACHABLE" | "FIRST_DELIVERED";
  fallbackAfter?: number | null;
  category: string;
  to: RecipientInput[];
  template?: TemplateInput | null;
  content?: ContentInput | null;
  push?: PushInput | null;
  context?: ContextInput | null;
  from?: FromInput | null;
  schedule?: LocalSchedule | OrgSchedule | AtSchedule | null;
  metadata?: Record<string, string> | null;
  idempotencyKey?: string | null;
}

/** The send result of one item, or its error. */
export interface BulkItemOutput {
  index: number;
  messageId?: string | null;
  status?: "ACCEPTED" | "SCHEDULED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "BLOCKED" | "CANCELLED" | "EXPIRED" | "UNKNOWN" | null;
  resolvedChannel?: string | null;
  provider?: string | null;
  scheduledFor?: string | null;
  recipients?: RecipientOutput[] | null;
  warnings?: WarningOutput[] | null;
  error?: ErrorObject | null;
}

export interface BulkOutput {
  accepted: number;
  rejected: number;
  results: BulkItemOutput[];
}

export interface CheckOutput {
  status: "ok" | "degraded" | "down";
  latencyMs: number;
  detail: string | null;
}

/** What the service depends on, as the answering process sees it. */
export interface ChecksOutput {
  database: CheckOutput;
  redis: CheckOutput;
  broker: CheckOutput;
  workers: CheckOutput;
  scheduler: CheckOutput;
  archive?: CheckOutput | null;
}

/** The entry, or one result for each of many. */
export type ConsentAnswer = ConsentOutput | ConsentEntriesOutput;

/** One entry or many, for the OpenAPI description: each is parsed by its own schema. */
export type ConsentBody = ConsentInput | ConsentEntries;

/** Many entries, for the OpenAPI description. */
export interface ConsentEntries {
  entries: ConsentInput[];
}

export interface ConsentEntriesOutput {
  accepted: number;
  rejected: number;
  results: ConsentItemOutput[];
}

/** One person's decision. Without `occurredAt` it was made now. */
export interface ConsentInput {
  contactId: string;
  channel: "EMAIL" | "SMS" | "PUSH" | "ALL";
  category: string;
  status: "OPTED_IN" | "OPTED_OUT";
  source?: "API" | "ADMIN" | "PREFERENCE_PAGE" | "ONE_CLICK" | "SMS_KEYWORD" | "IMPORT" | "DOUBLE_OPT_IN";
  evidence?: Record<string, string>;
  occurredAt?: string | null;
}

/** The entry made of one item, or the item's error. */
export interface ConsentItemOutput {
  index: number;
  entry?: ConsentOutput | null;
  error?: ErrorObject | null;
}

/** One entry of the ledger. */
export interface ConsentOutput {
  id: string;
  contactId: string;
  channel: "EMAIL" | "SMS" | "PUSH" | "ALL";
  category: string;
  status: "OPTED_IN" | "OPTED_OUT";
  source: "API" | "ADMIN" | "PREFERENCE_PAGE" | "ONE_CLICK" | "SMS_KEYWORD" | "IMPORT" | "DOUBLE_OPT_IN";
  occurredAt: string;
  recordedAt: string;
}

export interface ConsentPageOutput {
  consent: ConsentOutput[];
  nextCursor: string | null;
}

/** Literal content: what stands here is sent as it is. */
export interface ContentInput {
  subject?: string | null;
  text?: string | null;
  html?: string | null;
  title?: string | null;
  body?: string | null;
  data?: Record<string, unknown> | null;
  badge?: number | null;
}

export interface ContextInput {
  recordId?: string | null;
  variables?: Record<string, unknown>;
}

export interface DeliveryOutput {
  contactId: string;
  status: "ACCEPTED" | "SCHEDULED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "BLOCKED" | "CANCELLED" | "EXPIRED" | "UNKNOWN";
  resolvedChannel: string | null;
  provider: string | null;
  scheduledFor: string | null;
  waiting: string | null;
  error: ReasonOutput | null;
}

export interface DetailOutput {
  field: string;
  message: string;
}

/** A message with its events, and with its trace where `include=trace` asks for it. */
export interface DetailedOutput {
  messageId: string;
  status: "ACCEPTED" | "SCHEDULED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "BLOCKED" | "CANCELLED" | "EXPIRED" | "UNKNOWN";
  channel: string | null;
  category: string;
  template: TemplateOutput | null;
  provider: string | null;
  scheduledFor: string | null;
  createdAt: string;
  error: ReasonOutput | null;
  metadata: Record<string, string>;
  test: boolean;
  recipients: DeliveryOutput[];
  events: EventOutput[];
  trace?: TraceOutput[] | null;
}

/** One device, or many (for the description: each is read with its own schema). */
export type DeviceBody = DeviceInput | DeviceEntries;

export interface DeviceBulkOutput {
  accepted: number;
  rejected: number;
  results: DeviceResultOutput[];
}

/** Many devices, each as one alone is given. A bad one fails no other. */
export interface DeviceEntries {
  entries: DeviceInput[];
}

export interface DeviceInputTokenKeys {
  p256dh: string;
  auth: string;
}

/** A PushSubscription, as `toJSON()` gives it. */
export interface DeviceInputToken {
  endpoint: string;
  expirationTime?: unknown;
  keys: DeviceInputTokenKeys;
}

/** A device. At least one of `contactId` and `userId` is given. */
export interface DeviceInput {
  contactId?: string | null;
  userId?: string | null;
  platform: "IOS" | "ANDROID" | "WEB" | "PLATFORM";
  token: string | DeviceInputToken;
  app?: string | null;
  environment?: "PRODUCTION" | "SANDBOX";
  locale?: string | null;
  timeZone?: string | null;
  name?: string | null;
}

/** A device, without its token. */
export interface DeviceListedOutput {
  deviceId: string;
  contactId: string | null;
  platform: "IOS" | "ANDROID" | "WEB" | "PLATFORM";
  active: boolean;
  registeredAt: string;
  userId: string | null;
  app: string | null;
  environment: "PRODUCTION" | "SANDBOX";
  locale: string | null;
  timeZone: string | null;
  name: string | null;
  lastSeenAt: string;
  inactiveReason: string | null;
  inactiveSince: string | null;
}

/** A device as registering answers with it. */
export interface DeviceOutput {
  deviceId: string;
  contactId: string | null;
  platform: "IOS" | "ANDROID" | "WEB" | "PLATFORM";
  active: boolean;
  registeredAt: string;
}

export interface DevicePageOutput {
  devices: DeviceListedOutput[];
  nextCursor: string | null;
}

/** The new device; of many, the result of each. */
export type DeviceRegisteredOutput = DeviceOutput | DeviceBulkOutput;

/** One device of many as it is now, or what is wrong with it. */
export interface DeviceResultOutput {
  index: number;
  entry?: DeviceOutput | null;
  error?: ErrorObject | null;
}

/** The result of a dry run. Nothing was stored, so nothing has a `messageId`. The fields of */
export interface DryRunOutput {
  messageId: null;
  status: "ACCEPTED" | "SCHEDULED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "BLOCKED" | "CANCELLED" | "EXPIRED" | "UNKNOWN" | null;
  resolvedChannel: string | null;
  provider: string | null;
  scheduledFor: string | null;
  wouldSend: boolean;
  result: Record<string, unknown> | null;
  error: ErrorObject | null;
  recipients: DryRunRecipientOutput[];
}

/** What a recipient would get. */
export interface DryRunRecipientOutput {
  contactId: string;
  status: "ACCEPTED" | "SCHEDULED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "BLOCKED" | "CANCELLED" | "EXPIRED" | "UNKNOWN" | null;
  resolvedChannel: string | null;
  provider: string | null;
  scheduledFor: string | null;
  error: ErrorObject | null;
  trace: StepOutput[];
  content: Record<string, unknown> | null;
  renderError: string | null;
}

/** A new endpoint. */
export interface EndpointInput {
  url: string;
  description?: string;
  types: ("message.*" | "message.accepted" | "message.scheduled" | "message.sent" | "message.delivered" | "message.open" | "message.click" | "message.deferred" | "message.failover" | "message.fallback" | "message.bounced" | "message.complained" | "message.unsubscribed" | "message.failed" | "message.blocked" | "message.cancelled" | "message.expired" | "consent.changed" | "suppression.created" | "suppression.changed" | "suppression.lifted" | "device.registered" | "device.deactivated")[];
}

export interface ErrorObject {
  code: string;
  message: string;
  messageId: string | null;
  requestId: string;
  details: DetailOutput[];
}

/** Every error has this shape. */
export interface ErrorOutput {
  error: ErrorObject;
}

export interface EventOutput {
  type: string;
  at: string;
  contactId: string;
  channel?: string | null;
  provider?: string | null;
  detail?: Record<string, unknown> | null;
}

/** What a person must set right. `error`: sends fail or wait because of it. */
export interface FindingOutput {
  severity: "error" | "warning";
  code: string;
  message: string;
}

export interface FromInput {
  domain?: string | null;
  name?: string | null;
  localPart?: string | null;
}

/** `down`: nothing can be accepted; `degraded`: a part of the service does not answer. */
export interface HealthOutput {
  status: "ok" | "degraded" | "down";
  version: string;
  time: string;
  checks: ChecksOutput;
  queues: QueueOutput[];
  providers: ProviderOutput[];
  configuration: FindingOutput[];
}

export interface HistoryOutput {
  messages: SummaryOutput[];
  nextCursor: string | null;
}

/** That wall-clock time where each recipient is. */
export interface LocalSchedule {
  mode: "LOCAL";
  time: string;
  date?: string | null;
}

/** One request to send: to one or more recipients. */
export interface MessageInput {
  channel?: "EMAIL" | "SMS" | "PUSH" | "AUTO" | null;
  channels?: ("EMAIL" | "SMS" | "PUSH")[] | null;
  strategy?: "FIRST_REACHABLE" | "FIRST_DELIVERED";
  fallbackAfter?: number | null;
  category: string;
  to: RecipientInput[];
  template?: TemplateInput | null;
  content?: ContentInput | null;
  push?: PushInput | null;
  context?: ContextInput | null;
  from?: FromInput | null;
  schedule?: LocalSchedule | OrgSchedule | AtSchedule | null;
  metadata?: Record<string, string> | null;
}

/** That wall-clock time in the organization's zone. */
export interface OrgSchedule {
  mode: "ORG";
  time: string;
  date?: string | null;
}

/** What changes about an endpoint. A field that is left out stays as it is. */
export interface PatchedEndpointUpdateInput {
  url?: string;
  description?: string;
  types?: ("message.*" | "message.accepted" | "message.scheduled" | "message.sent" | "message.delivered" | "message.open" | "message.click" | "message.deferred" | "message.failover" | "message.fallback" | "message.bounced" | "message.complained" | "message.unsubscribed" | "message.failed" | "message.blocked" | "message.cancelled" | "message.expired" | "consent.changed" | "suppression.created" | "suppression.changed" | "suppression.lifted" | "device.registered" | "device.deactivated")[];
  enabled?: boolean;
}

/** A provider account; its numbers are of the last hour. */
export interface ProviderOutput {
  name: string;
  channel: "EMAIL" | "SMS" | "PUSH";
  status: "ok" | "degraded" | "down" | "paused" | "draining";
  circuit: "CLOSED" | "OPEN" | "HALF_OPEN";
  successRate: number | null;
  p95LatencyMs: number | null;
  lastSuccessAt: string | null;
  lastError: string | null;
}

/** What a push says beyond its template. */
export interface PushInput {
  data?: Record<string, unknown> | null;
  badge?: number | null;
  image?: string | null;
  link?: string | null;
  ttl?: number | null;
  collapseKey?: string | null;
  priority?: "HIGH" | "NORMAL" | null;
}

/** What is ready to be sent on a channel and has not gone. */
export interface QueueOutput {
  channel: "EMAIL" | "SMS" | "PUSH";
  ready: number;
  oldestSeconds: number;
}

export interface ReasonOutput {
  code: string;
  message: string;
}

export interface RecipientInput {
  contactId: string;
  variables?: Record<string, unknown>;
}

export interface RecipientOutput {
  contactId: string;
  status: "ACCEPTED" | "SCHEDULED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "BLOCKED" | "CANCELLED" | "EXPIRED" | "UNKNOWN";
  resolvedChannel: string | null;
  provider: string | null;
  scheduledFor: string | null;
  error: ErrorObject | null;
}

/** Which version of a template to render, for whom and with what. */
export interface RenderInput {
  language?: string | null;
  channel?: "EMAIL" | "SMS" | "PUSH" | null;
  version?: number | null;
  contactId?: string | null;
  context?: ContextInput | null;
  variables?: Record<string, unknown>;
}

/** A version as it would be sent; what its channel does not have is null. */
export interface RenderOutput {
  name: string;
  language: string;
  channel: "EMAIL" | "SMS" | "PUSH";
  version: number;
  subject: string | null;
  text: string | null;
  html: string | null;
  title: string | null;
  body: string | null;
  data: Record<string, string> | null;
  sms: SmsOutput | null;
  missing: string[];
  warnings: DetailOutput[];
}

export interface ReplaceInputTokenKeys {
  p256dh: string;
  auth: string;
}

/** A PushSubscription, as `toJSON()` gives it. */
export interface ReplaceInputToken {
  endpoint: string;
  expirationTime?: unknown;
  keys: ReplaceInputTokenKeys;
}

/** The token that takes the place of the device's. */
export interface ReplaceInput {
  token: string | ReplaceInputToken;
}

/** A replay: without a period, of the deliveries that were given up in 30 days. */
export interface ReplayInput {
  since?: string | null;
  until?: string | null;
}

/** The send result. `recipients` is there where there is more than one. */
export interface SendOutput {
  messageId: string;
  status: "ACCEPTED" | "SCHEDULED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "BLOCKED" | "CANCELLED" | "EXPIRED" | "UNKNOWN";
  resolvedChannel: string | null;
  provider: string | null;
  scheduledFor: string | null;
  recipients?: RecipientOutput[] | null;
  warnings?: WarningOutput[] | null;
}

/** With `Prefer: wait` the send result of what has left; with `dryRun` what would be sent. */
export type SentOrDryRun = SendOutput | DryRunOutput;

/** What an SMS takes; `units` are septets (GSM-7) or UTF-16 units (UCS-2). */
export interface SmsOutput {
  encoding: "GSM-7" | "UCS-2";
  characters: number;
  units: number;
  segments: number;
}

/** One step of the trace; docs/messages.md says what each may hold. */
export interface StepOutput {
  at: string;
  step: "DECISION" | "ATTEMPT" | "GATE" | "WAIT" | "FAILOVER" | "FALLBACK";
  result: string | null;
  channel?: string | null;
  entry?: string | null;
  until?: string | null;
  provider?: string | null;
  providerId?: string | null;
  deviceId?: string | null;
  detail?: string | null;
  latencyMs?: number | null;
}

/** A message without its events. */
export interface SummaryOutput {
  messageId: string;
  status: "ACCEPTED" | "SCHEDULED" | "SENDING" | "SENT" | "DELIVERED" | "FAILED" | "BLOCKED" | "CANCELLED" | "EXPIRED" | "UNKNOWN";
  channel: string | null;
  category: string;
  template: TemplateOutput | null;
  provider: string | null;
  scheduledFor: string | null;
  createdAt: string;
  error: ReasonOutput | null;
  metadata: Record<string, string>;
  test: boolean;
  recipients: DeliveryOutput[];
}

/** The new entry; of many, the result of each. */
export type SuppressionAddedOutput = SuppressionOutput | SuppressionBulkOutput;

/** One entry or many, for the OpenAPI description: each is parsed by its own schema. */
export type SuppressionBody = SuppressionInput | SuppressionEntries;

export interface SuppressionBulkOutput {
  accepted: number;
  rejected: number;
  results: SuppressionResultOutput[];
}

/** Many entries, for the OpenAPI description. A bad one fails no other. */
export interface SuppressionEntries {
  entries: SuppressionInput[];
}

/** An entry. Exactly one of `address` and `contactId` is given; PUSH needs a contact. */
export interface SuppressionInput {
  channel: "EMAIL" | "SMS" | "PUSH" | "ALL";
  address?: string | null;
  contactId?: string | null;
  reason?: "HARD_BOUNCE" | "COMPLAINT" | "STOP" | "UNSUBSCRIBE" | "INVALID_ADDRESS" | "MANUAL";
  note?: string | null;
  expiresAt?: string | null;
}

export interface SuppressionListOutput {
  suppressions: SuppressionOutput[];
  nextCursor: string | null;
}

/** An address, or a contact, that is not written to on a channel. */
export interface SuppressionOutput {
  id: string;
  channel: "EMAIL" | "SMS" | "PUSH" | "ALL";
  address: string | null;
  contactId: string | null;
  reason: "HARD_BOUNCE" | "COMPLAINT" | "STOP" | "UNSUBSCRIBE" | "INVALID_ADDRESS" | "MANUAL";
  note: string | null;
  source: string;
  createdAt: string;
  expiresAt: string | null;
}

/** One entry of many as it is on the list now, or what is wrong with it. */
export interface SuppressionResultOutput {
  index: number;
  entry?: SuppressionOutput | null;
  error?: ErrorObject | null;
}

export interface TemplateInput {
  name: string;
  language?: string | null;
}

export interface TemplateOutput {
  name: string;
  language: string | null;
}

export interface TemplatesOutput {
  templates: VersionOutput[];
  nextCursor: string | null;
}

export interface TraceOutput {
  contactId: string;
  steps: StepOutput[];
}

/** What a browser needs to subscribe. */
export interface VapidKeyOutput {
  key: string;
}

/** One version of a template. */
export interface VersionOutput {
  name: string;
  language: string;
  channel: "EMAIL" | "SMS" | "PUSH";
  category: string;
  status: "DRAFT" | "ACTIVE" | "ARCHIVED";
  version: number;
  variables: Record<string, unknown>;
  updatedAt: string;
}

/** An accepted field of the request that has no effect on some channel. */
export interface WarningOutput {
  field: string;
  message: string;
}

/** A URL to which the organization's events are sent. */
export interface WebhookEndpointOutput {
  id: string;
  url: string;
  description: string;
  types: string[];
  enabled: boolean;
  disabledReason: string | null;
  failingSince: string | null;
  lastSuccessAt: string | null;
  formerSecretUntil: string | null;
  createdAt: string;
}

export interface WebhookEndpointPageOutput {
  webhookEndpoints: WebhookEndpointOutput[];
  nextCursor: string | null;
}

/** An endpoint with its secret, which is shown this once. */
export interface WebhookEndpointSecretOutput {
  id: string;
  url: string;
  description: string;
  types: string[];
  enabled: boolean;
  disabledReason: string | null;
  failingSince: string | null;
  lastSuccessAt: string | null;
  formerSecretUntil: string | null;
  createdAt: string;
  secret: string;
}

export interface WebhookReplayOutput {
  queued: number;
  complete: boolean;
}

export interface WebhookTestOutput {
  webhookId: string;
}
