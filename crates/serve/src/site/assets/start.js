// Starts and stops runs. The token is in a header, never in an address, and is kept nowhere.
const form = document.getElementById("start"), outcome = document.getElementById("outcome"), list = document.getElementById("jobs");

async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Kelvin-Token": form.elements.token.value },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.trim());
  return JSON.parse(text);
}

function element(name, text, more = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, more);
}

function show(jobs) {
  list.replaceChildren(...jobs.map((job) => {
    const part = element("article", "");
    part.append(element("h3", "Job " + job.id + ": " + (job.ended ? "ended" + (job.code == null ? "" : " with exit code " + job.code) : "running")));
    if (job.run != null) part.append(element("a", "Run " + job.run, { href: "/run/" + job.store + "/" + job.run }));
    if (!job.ended) part.append(" ", element("button", "Stop", { type: "button", onclick: () => act(() => post("/api/stop", { job: job.id }).then(show)) }));
    if (job.lines.length) part.append(element("pre", job.lines.join("\n")));
    return part;
  }));
  if (!jobs.length) list.replaceChildren(element("p", "Nothing yet."));
  if (jobs.some((job) => !job.ended)) setTimeout(refresh, 1000);
}

const refresh = () => act(() => post("/api/jobs", {}).then(show));

async function act(what) {
  try {
    await what();
  } catch (error) {
    outcome.textContent = "Rejected: " + error.message;
  }
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  act(async () => {
    const job = await post("/api/start", { store: Number(form.elements.store.value), specification: form.elements.specification.value });
    outcome.textContent = "Job " + job.id + " has started.";
    await refresh();
  });
});
