// The list filters itself while somebody types, and shows runs that begin elsewhere.
const filter = document.getElementById("filter");
let asked = 0;

function ready() {
  const boxes = [...document.querySelectorAll("#runs input[name=run]")], button = document.getElementById("compare");
  if (!button) return;
  const chosen = boxes.filter((box) => box.checked);
  button.disabled = chosen.length !== 2;
  for (const box of boxes) box.disabled = chosen.length >= 2 && !box.checked;
}

function wanted() {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(filter)) if (value) query.append(name, value);
  return query;
}

async function show(query) {
  const number = ++asked;
  let text;
  try {
    text = await (await fetch("/?" + query)).text();
  } catch {
    return;
  }
  if (number !== asked) return;
  const next = new DOMParser().parseFromString(text, "text/html").getElementById("runs");
  const now = document.getElementById("runs");
  if (!next || next.innerHTML === now.dataset.shown) return;
  const chosen = new Set([...now.querySelectorAll("input:checked")].map((box) => box.value));
  const held = now.contains(document.activeElement) ? document.activeElement : null;
  const shown = next.innerHTML;
  now.replaceChildren(...next.childNodes);
  now.dataset.shown = shown;
  for (const box of now.querySelectorAll("input[name=run]")) box.checked = chosen.has(box.value);
  // Whoever moves through the list by keyboard stays where they are.
  if (held) {
    const same = held.getAttribute("href") ? `a[href="${CSS.escape(held.getAttribute("href"))}"]` : held.value ? `input[value="${CSS.escape(held.value)}"]` : "button";
    now.querySelector(same)?.focus();
  }
  ready();
}

let waiting;
filter.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const query = wanted();
    history.replaceState(null, "", "/" + (query.size ? "?" + query : ""));
    show(query);
  }, 120);
});
filter.querySelector("button").hidden = true;
document.getElementById("runs").addEventListener("change", ready);
setInterval(() => document.hidden || show(new URLSearchParams(location.search)), 3000);
ready();
