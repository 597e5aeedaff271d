"use strict";

// Light, dark, or as the system has it. It runs before the page is drawn, so that no page flashes.
const APPEARANCE = "adminTheme";
const systemIsDark = window.matchMedia("(prefers-color-scheme: dark)");

function chosenAppearance() {
  try {
    return JSON.parse(localStorage.getItem(APPEARANCE));
  } catch {
    return null; // no storage, or not our text
  }
}

function applyAppearance(chosen) {
  const isDark = chosen === "dark" || (chosen !== "light" && systemIsDark.matches);
  document.documentElement.classList.toggle("dark", isDark);
}

applyAppearance(chosenAppearance());
systemIsDark.addEventListener("change", () => applyAppearance(chosenAppearance()));
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-appearance]");
  if (!button) return;
  applyAppearance(button.dataset.appearance);
  try {
    localStorage.setItem(APPEARANCE, JSON.stringify(button.dataset.appearance));
  } catch {
    // Without storage it holds for this page.
  }
});
