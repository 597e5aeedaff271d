// node's web-push: kept connections, many under way at once.
import { readFileSync } from "node:fs";
import https from "node:https";
import { createRequire } from "node:module";

const webpush = createRequire(process.argv[2] + "/")("web-push");
const job = JSON.parse(readFileSync(0, "utf8"));
const agent = new https.Agent({
  keepAlive: true,
  maxSockets: job.under_way ?? 50,
  ca: readFileSync(job.ca),
});
webpush.setVapidDetails(
  "mailto:ops@example.com",
  job.vapid_public_key,
  job.vapid_private_key,
);

const send = async (message) => {
  const answer = await webpush.sendNotification(message.subscription, message.payload, {
    TTL: 86400,
    urgency: "high",
    topic: message.topic,
    agent,
  });
  if (answer.statusCode !== 201) throw new Error(`answered ${answer.statusCode}`);
};

const all = async (messages) => {
  let next = 0;
  const one = async () => {
    while (next < messages.length) await send(messages[next++]);
  };
  await Promise.all(Array.from({ length: job.under_way ?? 50 }, one));
};

await all(job.messages.slice(0, 100));
const wall = process.hrtime.bigint();
const cpu = process.cpuUsage();
await all(job.messages);
const used = process.cpuUsage(cpu);
console.log(
  JSON.stringify({
    wall: Number(process.hrtime.bigint() - wall) / 1e9,
    cpu: (used.user + used.system) / 1e6,
    count: job.messages.length,
  }),
);
agent.destroy();
