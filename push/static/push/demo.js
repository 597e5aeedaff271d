// The demo page: subscribe this browser, and push to it.
const REFERENCE = "/push-demo/reference";
const form = document.getElementById("demo");
const result = document.getElementById("result");

function say(text) {
  result.textContent = text;
}

async function post(path, body) {
  const answer = await fetch(`/push-demo/${path}?org=${encodeURIComponent(form.dataset.org)}`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "X-CSRFToken": form.elements.csrfmiddlewaretoken.value,
    },
    body: JSON.stringify(body),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(`${said.error.code}: ${said.error.message}`);
  return said;
}

function bytes(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

async function register(subscription) {
  const device = await post("devices", {
    contactId: form.elements.contact.value,
    token: subscription,
  });
  const kept = await caches.open("push-demo");
  await kept.put(REFERENCE, new Response(device.reference));
  say(`This browser is device ${device.deviceId}.`);
}

async function subscribe() {
  if ((await Notification.requestPermission()) !== "granted") {
    throw new Error("The browser does not allow notifications.");
  }
  const worker = await navigator.serviceWorker.ready;
  await register(
    await worker.pushManager.subscribe({
      userVisibleOnly: true,
      applicationServerKey: bytes(form.dataset.key),
    }),
  );
}

async function send() {
  const message = await post("send", {
    contactId: form.elements.contact.value,
    title: form.elements.title.value,
    body: form.elements.body.value,
  });
  say(`Message ${message.messageId}: ${message.status}.`);
}

function does(name, action) {
  document.getElementById(name).addEventListener("click", async () => {
    say("…");
    try {
      await action();
    } catch (problem) {
      say(problem.message);
    }
  });
}

if ("serviceWorker" in navigator && "PushManager" in window) {
  navigator.serviceWorker.register("/push-demo/worker.js", { scope: "/push-demo" });
  does("subscribe", subscribe);
} else {
  document.getElementById("subscribe").disabled = true;
  say("This browser takes no pushes. On an iPhone, add this page to the home screen first.");
}
does("send", send);
