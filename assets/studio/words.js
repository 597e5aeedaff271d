// The words of the page in the person's language; `{name}` in them stands for a value.
const place = document.getElementById("studio-data") || document.getElementById("compare-data");
const words = place ? JSON.parse(place.textContent).words : {};

export const say = (name, values = {}) =>
  Object.entries(values).reduce((text, [key, value]) => text.replace(`{${key}}`, value), words[name]);
