// Rows of variables and of data: when the last one is filled in, an empty one follows it.
export function growRows(root, changed) {
  for (const place of root.querySelectorAll("[data-rows]")) {
    place.addEventListener("input", () => {
      const rows = [...place.querySelectorAll(".c-row")];
      const last = rows.at(-1);
      if (last.querySelector("input:not([type=hidden])").value) {
        const next = last.cloneNode(true);
        for (const each of next.querySelectorAll("[name]")) {
          each.name = each.name.replace(/\d+/, (number) => String(Number(number) + 1));
          each.value = each.tagName === "SELECT" ? each.options[0].value : "";
        }
        last.removeAttribute("data-empty");
        place.append(next);
      }
      changed();
    });
  }
}

// Fills the empty row, after which another one follows.
export function declare(root, name) {
  const field = [...root.querySelectorAll('[data-rows="v"] input[name$="_name"]')].at(-1);
  field.closest("details").open = true;
  field.value = name;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

export const variableNames = (root) =>
  [...root.querySelectorAll('[data-rows="v"] input[name$="_name"]')].map((each) => each.value.trim()).filter(Boolean);
