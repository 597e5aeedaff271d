// The demo's service worker: shows what is pushed, opens what is tapped, keeps its subscription.
const REFERENCE = "/push-demo/reference";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

function read(data) {
  try {
    return data ? data.json() : {};
  } catch {
    return { body: data.text() }; // not ours: browsers demand that every push shows something
  }
}

self.addEventListener("push", (event) => {
  const said = read(event.data);
  const shown = self.registration.showNotification(said.title || "rme", {
    body: said.body || "",
    tag: said.tag || undefined,
    image: said.image || undefined,
    icon: "/static/push/icon.svg",
    data: { link: said.link || "/push-demo", ...said.data },
  });
  const waits = [shown];
  if (Number.isInteger(said.badge) && self.navigator.setAppBadge) {
    waits.push(self.navigator.setAppBadge(said.badge).catch(() => undefined));
  }
  event.waitUntil(Promise.all(waits));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(self.clients.openWindow(event.notification.data.link));
});

// A browser may renew a subscription by itself. The page's reference says whose it was.
self.addEventListener("pushsubscriptionchange", (event) => {
  event.waitUntil(
    (async () => {
      const options = event.oldSubscription?.options;
      const renewed =
        event.newSubscription ||
        (options && (await self.registration.pushManager.subscribe(options)));
      const kept = await (await caches.open("push-demo")).match(REFERENCE);
      if (!renewed || !kept) return;
      await fetch("/push-demo/replace", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ reference: await kept.text(), token: renewed }),
      });
    })(),
  );
});
