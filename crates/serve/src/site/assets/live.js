// Follows a run that goes on: its newest seconds go into the charts that the page has.
const data = window.kelvin.data, bar = document.createElement("p");
bar.id = "live";
bar.className = "says";
bar.setAttribute("role", "status");
document.querySelector(".answer").before(bar);
const names = { build: "loading the data", "check-before": "checking the data", "check-after": "checking the data", connect: "connecting", "ramp-up": "ramp-up", measure: "measured window", stop: "ending" };
const number = (value) => (value == null ? "–" : value.toLocaleString("en-US", { maximumFractionDigits: value < 100 ? 2 : 0 }));
let spoken = 0;

// A second that is known already was incomplete: the new one takes its place.
function merge(point, message) {
  const seconds = message.seconds, missing = seconds.t.map(() => null);
  const from = point.t.findIndex((second) => second >= seconds.t[0]), keep = from < 0 ? point.t.length : from;
  const joined = (own, fresh) => own.slice(0, keep).concat(fresh || missing);
  for (const name of ["t", "headline", "all", "p50", "p95", "p99", "max"]) if (point[name]) point[name] = joined(point[name], seconds[name]);
  for (const name of Object.keys(point.open || {})) point.open[name] = joined(point.open[name], seconds.open && seconds.open[name]);
  for (const of of ["directions", "sources"]) for (const own of point[of] || []) {
    const fresh = (seconds[of] || []).find((one) => one.name === own.name) || {};
    for (const name of Object.keys(own)) if (name !== "name") own[name] = joined(own[name], fresh[name]);
  }
  for (const own of point.seen ? point.seen.charts : []) {
    const fresh = message.seen && message.seen.charts.find((chart) => chart.title === own.title);
    own.columns = own.columns.map((column, n) => joined(column, fresh && fresh.columns[fresh.names.indexOf(own.names[n])]));
  }
}

function take(message) {
  const point = data.points[message.point], seconds = message.seconds, last = seconds.t.length - 1, second = seconds.t[last];
  // What the page has no chart for, since it was made before there was any of it, comes with a new page.
  if (!point || point.t.length < 2) {
    if (performance.now() > 3000) location.reload();
  } else {
    merge(point, message);
    point.end = Math.max(second + 1, (message.phase === "measure" && message.planned_s) || 0, point.end);
    window.kelvin.redraw(message.point);
    const titles = point.seen ? point.seen.charts.map((chart) => chart.title) : [];
    if (performance.now() > 15000 && message.seen && message.seen.charts.some((chart) => !titles.includes(chart.title))) location.reload();
  }
  const planned = message.phase === "measure" && message.planned_s ? " of " + number(message.planned_s) : "";
  const where = second < 0 ? "ramp-up, " + -second + " s before the measured window" : "second " + (second + 1) + planned;
  // The tenants of a scenario have no common sum.
  const tenants = (data.scenario && seconds.sources) || [];
  const done = tenants.length ? tenants.map((one) => `${one.name} ${number(one.headline[last])}`).join(", ") + ` per ${data.per}` : `${number(seconds.headline[last])} ${data.headline}, p99 ${number(seconds.p99[last] ?? seconds.p95[last] ?? seconds.p50[last])} ${data.unit}`;
  const text = `Running: ${names[message.phase] || message.phase || ""}, ${where}, ${message.users} users. Last second: ${done}. ${number(message.errors)} errors.`;
  // Once in ten seconds is often enough to be read aloud.
  bar.setAttribute("aria-live", performance.now() - spoken > 10000 ? "polite" : "off");
  if (performance.now() - spoken > 10000) spoken = performance.now();
  bar.textContent = text;
}

const source = new EventSource(document.body.dataset.live);
source.onmessage = (event) => take(JSON.parse(event.data));
source.addEventListener("end", () => {
  source.close();
  bar.textContent = "The run has ended. Its report is being prepared.";
  setTimeout(() => location.reload(), 1500);
});
bar.textContent = "Running: waiting for its first second.";
