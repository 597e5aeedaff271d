// Runs the list of cases that both clients share: reads it from the standard input, and writes what
// became of each. See tests/clients.

import { ApiError, Client, verify } from "./src/index.js";

interface Step {
  call: string;
  arguments: unknown[];
  options?: Record<string, unknown>;
  take?: number;
}

interface Work {
  client: { baseUrl: string; clientId: string; clientSecret: string; maxRetries?: number };
  steps: Step[];
}

const camel = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
const camelKeys = (given: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [camel(name), value]));

async function run(client: Client, step: Step): Promise<unknown> {
  const options = step.options ? [camelKeys(step.options)] : [];
  if (step.call === "verify") {
    const [secret, headers, body] = step.arguments as [string, Record<string, string>, string];
    return verify(secret, headers, body);
  }
  const methods = client as unknown as Record<string, (...given: unknown[]) => unknown>;
  const result = methods[camel(step.call)]!(...step.arguments, ...options);
  if (!step.call.startsWith("iterate_")) return (await result) ?? null;
  const items: unknown[] = [];
  for await (const item of result as AsyncIterable<unknown>) items.push(item);
  return items;
}

async function outcome(client: Client, step: Step): Promise<unknown> {
  try {
    return { result: await run(client, step) };
  } catch (error) {
    if (!(error instanceof ApiError)) return { error: (error as Error).constructor.name };
    const { status, code, details, retryAfter = null } = error;
    return { error: error.constructor.name, status, code, details, retryAfter };
  }
}

let text = "";
for await (const chunk of process.stdin) text += chunk;
const work = JSON.parse(text) as Work;
const client = new Client(work.client);
const outcomes: unknown[] = [];
for (const step of work.steps) outcomes.push(await outcome(client, step));
process.stdout.write(JSON.stringify(outcomes));
