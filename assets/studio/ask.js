// Returns an answer with its JSON. `isForeign`: it has none, such as the log-in page to which a session
// that has ended leads. null: there is no answer, or the person has left the page before it came.
export async function ask(address, body) {
  try {
    const answer = await fetch(address, body ? { method: "POST", body } : {});
    const isJson = answer.headers.get("Content-Type")?.startsWith("application/json");
    if (!isJson) return { ok: false, isForeign: true, found: {} };
    return { ok: answer.ok, isForeign: false, found: await answer.json() };
  } catch {
    return null;
  }
}

export const formOf = (form) => new URLSearchParams(new FormData(form));
