// Send a message, follow it, and verify a webhook.
// node dist/example.js https://msg.example.com CLIENT_ID CLIENT_SECRET CONTACT_ID

import { createServer } from "node:http";

import { ApiError, Client, InvalidSignature, verify } from "./src/index.js";

const [baseUrl, clientId, clientSecret, contactId] = process.argv.slice(2) as [string, string, string, string];
const rme = new Client({ baseUrl, clientId, clientSecret });

try {
  const sent = await rme.sendMessage({
    channel: "EMAIL",
    category: "TRANSACTIONAL",
    to: [{ contactId }],
    content: { subject: "Your order", text: "It is on its way." },
  });
  console.log("accepted:", "messageId" in sent ? sent.messageId : sent);
} catch (error) {
  if (!(error instanceof ApiError)) throw error;
  console.error(error.code, error.details, error.requestId);
}

for await (const message of rme.iterateMessages({ contactId, limit: 200 })) {
  console.log(message.messageId, message.status);
}

/** A receiver of webhooks: the secret was shown when the endpoint was created. */
export function receiver(secret: string) {
  return createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    try {
      const event = await verify(secret, request.headers as Record<string, string>, Buffer.concat(chunks));
      console.log(event.type, event.data);
      response.writeHead(204).end();
    } catch (error) {
      response.writeHead(error instanceof InvalidSignature ? 401 : 500).end();
    }
  });
}
