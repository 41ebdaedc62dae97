(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const plots = [];
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = (v) => (v == null ? "–" : v.toLocaleString("en-US", { maximumFractionDigits: v < 10 ? 3 : v < 1000 ? 1 : 0 }));
  const short = (v) => (v >= 1e6 ? +(v / 1e6).toPrecision(3) + " M" : v >= 1e4 ? +(v / 1e3).toPrecision(3) + " k" : number(v));
  const narrow = innerWidth < 520;
  const logLabel = (point) => (narrow ? "" : point.open ? "response time, " : data.words.time + ", ") + data.unit + " (log scale)";
  const font = "12px system-ui, sans-serif";
  const axis = (label, more) => Object.assign({ label, labelSize: 20, labelFont: font, font, stroke: () => css("--soft"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { stroke: () => css("--line"), width: 1 } }, more);
  const line = (label, colour, more) => Object.assign({ label, stroke: () => css(colour), width: 1.6, points: { show: true, size: 6, fill: () => css(colour), filter: alone }, value: (u, v) => number(v) }, more);

  // A line needs two adjacent points; a point without a neighbour is drawn as a dot.
  function alone(u, k) {
    const values = u.data[k], found = [];
    for (let i = u.series[0].idxs[0]; i <= u.series[0].idxs[1]; i++) {
      if (values[i] != null && values[i - 1] == null && values[i + 1] == null) found.push(i);
    }
    return found;
  }

  // The ramp-up is shaded, and events are vertical lines behind the data.
  function marks(point) {
    return {
      hooks: {
        drawClear: (u) => {
          const c = u.ctx, left = u.bbox.left, right = left + u.bbox.width, top = u.bbox.top, height = u.bbox.height;
          const open = Math.min(Math.max(u.valToPos(0, "x", true), left), right);
          c.save();
          c.fillStyle = css("--ramp");
          if (point.t[0] < 0) c.fillRect(left, top, open - left, height);
          for (const [from, to, kind] of point.seen ? point.seen.bands : []) {
            const start = Math.max(u.valToPos(from, "x", true), left), end = Math.min(u.valToPos(to, "x", true), right);
            if (end < left || start > right) continue;
            const width = Math.max(end - start, 2 * devicePixelRatio);
            c.fillStyle = css(kind === "checkpoint" ? "--c3" : kind === "vacuum" ? "--c2" : "--c8");
            c.globalAlpha = 0.13;
            c.fillRect(start, top, width, height);
            // The start remains visible where the band is pale or overlapped by another.
            c.globalAlpha = 0.8;
            c.fillRect(start, top, devicePixelRatio, height);
            c.fillRect(start, top, width, 3 * devicePixelRatio);
            c.globalAlpha = 1;
          }
          // The steps of a scenario are numbered; numbers that would overlap are below each other.
          let steps = 0;
          const rows = [];
          c.font = "600 " + 11 * devicePixelRatio + "px system-ui, sans-serif";
          c.textBaseline = "top";
          for (const [second, kind] of point.marks) {
            const x = u.valToPos(second, "x", true);
            if (kind === "step") steps++;
            if (x < left || x > right) continue;
            if (kind === "step") {
              const width = c.measureText(steps).width + 3 * devicePixelRatio;
              const at = x + width > right ? x - width : x + 2 * devicePixelRatio;
              let row = rows.findIndex((end) => end <= at);
              if (row < 0) row = rows.length;
              rows[row] = at + width;
              c.fillStyle = css("--accent");
              if (row < 4) c.fillText(steps, at, top + row * 11 * devicePixelRatio);
            }
            c.strokeStyle = css(kind === "error" ? "--bad" : kind === "note" ? "--warn" : kind === "step" ? "--accent" : "--soft");
            c.globalAlpha = kind === "error" ? 0.35 : 0.8;
            c.lineWidth = devicePixelRatio;
            c.setLineDash(kind === "error" ? [] : [4 * devicePixelRatio, 4 * devicePixelRatio]);
            c.beginPath(); c.moveTo(x, top); c.lineTo(x, top + height); c.stroke();
          }
          c.restore();
        },
      },
    };
  }

  // Text of a legend while no second is selected, as on paper: minimum and maximum, without the ramp-up.
  function span(places, column) {
    const known = column.filter((v, i) => v != null && (places[i] >= 0 || places[places.length - 1] < 0));
    if (!known.length) return "–";
    const least = known.reduce((a, b) => Math.min(a, b)), most = known.reduce((a, b) => Math.max(a, b));
    return least === most ? number(least) : number(least) + " to " + number(most);
  }

  // A chart in a closed part of the page has no width yet: it is created when the part is opened. `make` returns its
  // columns, and is called again when a running run has more of them.
  function plot(id, options, make, height) {
    const box = document.getElementById(id), columns = make();
    if (!box || columns[0].length === 0) return;
    const closed = box.closest("details:not([open])");
    if (closed) {
      closed.addEventListener("toggle", () => plot(id, options, make, height), { once: true });
      return;
    }
    columns.forEach((column, k) => {
      if (k === 0) return;
      const series = options.series[k], shown = series.value, own = series.own;
      series.value = (u, v, s, i) => (i == null ? span(u.data[0], own ? own() : u.data[k]) : shown(u, v, s, i));
      if (column.every((v) => v == null)) series.label += " (too few per second)";
    });
    const size = () => ({ width: Math.max(240, box.clientWidth - 10), height: typeof height === "function" ? height(box.clientWidth) : height || (box.clientWidth < 500 ? 170 : 190) });
    plots.push({ id, made: new uPlot(Object.assign(options, size()), columns, box), size, box, make });
  }

  data.points.forEach((point, i) => {
    const cursor = { sync: { key: "point-" + i }, drag: { x: true, y: false } };
    // The axis covers the window, even if it has few seconds so far, or the part selected by the reader.
    const x = { time: false, range: (u, lo, hi) => {
      const first = point.t[0], last = point.t[point.t.length - 1];
      return lo > first || hi < last ? [lo, hi] : [Math.min(first, 0) - (point.end - Math.min(first, 0)) * 0.01, point.end];
    } };
    const time = axis("seconds since the start of the measured window", { size: 42, labelSize: 14 }), bare = axis("", { labelSize: 0, size: 28 });
    // I/O jobs with a rate have no queue of arrivals: each worker has its own schedule.
    const known = (column) => (column && column.some((v) => v != null) ? column : null);
    // Each tenant of a scenario has a separate line: transactions and I/Os of different loads have no common sum.
    const tenants = data.scenario && (point.sources || []).length ? point.sources : null;
    const lines = (more) => tenants.map((one, k) => line(one.name + more(one), "--c" + (k % 9), {}));
    // The highest percentile for which most of a tenant's seconds have enough transactions.
    const highest = (one) => ["p99", "p95"].find((name) => one[name].filter((v) => v != null).length * 2 >= one.headline.filter((v) => v > 0).length) || "p50";
    // If one tenant has a much lower throughput than another, it would coincide with the axis.
    const means = (tenants || []).map((one) => one.headline.filter((v) => v > 0)).filter((own) => own.length).map((own) => own.reduce((a, b) => a + b) / own.length);
    const apart = means.length && Math.max(...means) > 30 * Math.min(...means);
    const scale = apart ? { distr: 3 } : { range: (u, lo, hi) => [0, (hi || 1) * 1.08] };
    const due = !tenants && point.open && known(point.open.due), late = point.open && known(point.open.lag_max);
    // Reads and writes of a second have separate lines: their sum describes neither.
    const colours = { read: "--c0", write: "--c1", trim: "--c2" };
    const paces = () => (tenants ? lines(() => "") : point.directions ? point.directions.map((one) => line(one.name, colours[one.name] || "--c3", {})) : [line(data.headline, "--c0", {})]);
    const rates = () => (tenants ? tenants.map((one) => one.headline) : point.directions ? point.directions.map((one) => one.rate) : [point.headline]);
    const sources = () => (tenants ? [] : point.sources || []);
    const rated = (name) => (narrow || tenants ? "per " : name + " per ") + data.per + (apart && !narrow ? " (log scale)" : "");
    const left = (label) => axis(label, { size: 64, values: (u, v) => v.map(short) });
    // If most seconds have too few transactions for a p99, the p95 is more useful.
    const enough = (column) => column.filter((v) => v != null).length * 2 >= column.length;
    const tail = (one) => (enough(one.p99) || !enough(one.p95) ? "p99" : "p95");
    const times = tenants ? [] : point.directions ? point.directions.map((one) => [one.name + " " + tail(one), colours[one.name], () => one[tail(one)]])
      : [[tail(point), "--c1", () => point[tail(point)]], ["p50", "--c3", () => point.p50]];
    plot("overview-" + i, {
      cursor, scales: { x, y: scale, ms: { distr: 3 } }, plugins: [marks(point)],
      axes: [time, left(rated(data.words.unit.many))].concat(tenants ? [] :
        axis((narrow ? "" : (point.open ? "response time, " : data.words.time + ", ")) + data.unit + (narrow ? "" : " (log scale)"), { scale: "ms", side: 1, size: 56, grid: { show: false }, values: (u, v) => v.map((n) => (n == null ? "" : number(n))) })),
      series: [{ label: "second" }].concat(paces().map((one) => Object.assign(one, { width: 2, fill: tenants || point.directions ? null : () => css("--c0") + "1f" })),
        due ? [line("due", "--soft", { width: 1, dash: [4, 4] })] : [],
        times.map(([name, colour]) => line(name + ", " + data.unit, colour, { scale: "ms", width: 1.3, dash: point.directions ? [6, 3] : null }))),
    }, () => [point.t].concat(rates(), due ? [point.open.due] : [], times.map((one) => one[2]())), (width) => (width < 500 ? 230 : 270));
    plot("throughput-" + i, {
      cursor, scales: { x, y: scale }, plugins: [marks(point)],
      axes: [bare, left(apart ? "log scale" : "")],
      series: [{ label: "second" }].concat(paces(), sources().map((one, k) => line(one.name, "--c" + ((k + 3) % 9), {})),
        point.all && !tenants ? [line(data.total, "--c2", {})] : [],
        due ? [line("due", "--soft", { width: 1, dash: [4, 4] })] : []),
    }, () => [point.t].concat(rates(), sources().map((one) => one.headline), point.all && !tenants ? [point.all] : [], due ? [point.open.due] : []));
    const latency = (id, times, service, late) => plot(id, {
      cursor, scales: { x, y: { distr: 3 } }, plugins: [marks(point)],
      axes: [bare, axis("log scale", { size: 64, values: (u, v) => v.map((n) => (n == null ? "" : number(n))) })],
      series: [{ label: "second" }, line("p50", "--c0", {}), line("p95", "--c2", {}), line("p99", "--c1", {}), line("max", "--soft", { width: 0.8 })].concat(
        service ? [line(data.words.time_short + " p99", "--c3", { dash: [4, 4] })] : [],
        late ? [line("generator’s lateness, max", "--c4", { width: 0.8, dash: [2, 3] })] : []),
    }, () => [point.t, times.p50, times.p95, times.p99, times.max].concat(service ? [service().service_p99] : [], late ? [point.open.lag_max] : []));
    if (point.directions) point.directions.forEach((one, k) => latency("latency-" + i + "-" + k, one, point.open ? () => one : null, late));
    else if (tenants) plot("latency-" + i, {
      cursor, scales: { x, y: { distr: 3 } }, plugins: [marks(point)],
      axes: [bare, axis("log scale", { size: 64, values: (u, v) => v.map((n) => (n == null ? "" : number(n))) })],
      series: [{ label: "second" }].concat(lines((one) => " " + highest(one))),
    }, () => [point.t].concat(tenants.map((one) => one[highest(one)])));
    else latency("latency-" + i, point, point.open ? () => point.open : null, late);
    if (point.open) plot("queue-" + i, {
      cursor, scales: { x, y: { range: (u, lo, hi) => [0, Math.max(hi || 0, 1) * 1.08] } }, plugins: [marks(point)],
      axes: [bare, axis("", { labelSize: 0, size: 64, incrs: [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((e) => [1, 2, 5].map((m) => m * 10 ** e)), values: (u, v) => v.map(short) })],
      series: [{ label: "second" }, line("waiting for an idle " + data.words.who.one, "--c1", {}), line("refused", "--bad", { dash: [4, 4] })],
    }, () => [point.t, point.open.waiting, point.open.refused]);

    (point.seen ? point.seen.charts : []).forEach((chart, k) => {
      const top = (hi) => [0, chart.top || (hi || 1) * 1.08];
      const own = chart.columns.map((_, n) => Object.assign(line(chart.names[n], "--c" + chart.colours[n], {}), chart.stacked
        ? { width: 1, own: () => chart.columns[n], value: (u, v, s, i) => number(chart.columns[n][i]) } : {}));
      // Stacked columns are drawn as running totals, with the area between them filled.
      const sums = () => (chart.stacked ? chart.columns.map((_, n) => point.t.map((_, i) => (chart.columns[n][i] == null ? null :
        chart.columns.slice(0, n + 1).reduce((sum, column) => sum + (column[i] || 0), 0)))) : chart.columns);
      const fill = (n) => () => css("--c" + chart.colours[n]) + "99";
      if (chart.stacked && own.length) own[0].fill = fill(0);
      plot("seen-" + i + "-" + k, {
        cursor, scales: { x, y: { range: (u, lo, hi) => top(hi) } }, plugins: [marks(point)],
        bands: chart.stacked ? own.slice(1).map((_, n) => ({ series: [n + 2, n + 1], fill: fill(n + 1) })) : [],
        axes: [bare, axis(chart.unit, { size: 64, values: (u, v) => v.map(short) })],
        legend: { markers: { fill: (u, s) => (s > 0 && chart.stacked ? css("--c" + chart.colours[s - 1]) : null) } },
        series: [{ label: "second" }].concat(own),
      }, () => [point.t].concat(sums()));
    });

    // 1/(1 − p) on a logarithmic axis gives every further nine the same width.
    const nines = new Map();
    point.distributions.forEach(([, curve], k) => curve.forEach(([p, v]) => {
      if (!nines.has(p)) nines.set(p, point.distributions.map(() => null));
      nines.get(p)[k] = v;
    }));
    const percents = [...nines.keys()].sort((a, b) => a - b);
    const at = (p) => 100 / (100 - p);
    plot("distribution-" + i, {
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false, distr: 3 }, y: { distr: 3 } },
      axes: [
        axis("percentile", { splits: (u) => (narrow ? [50, 90, 99, 99.9, 99.99] : [0, 50, 90, 99, 99.9, 99.99, 99.999]).map(at).filter((v) => v <= u.scales.x.max * 1.001), values: (u, v) => v.map((n) => "p" + +(100 - 100 / n).toFixed(3)), filter: (u, v) => v }),
        axis(logLabel(point), { size: 64, values: (u, v) => v.map((n) => (n == null ? "" : number(n))) }),
      ],
      series: [{ label: "percentile", value: (u, v) => (v == null ? "–" : (100 - 100 / v).toFixed(3)) }].concat(
        point.distributions.map(([name], k) => line(name, "--c" + (k % 5), {}))),
    }, () => [percents.map(at)].concat(point.distributions.map((_, k) => percents.map((p) => nines.get(p)[k]))), (width) => (width < 500 ? 220 : 240));
  });

  // A link to a finding opens the parts of the page that contain it.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    for (let part = target && target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  let waiting;
  // Content that is wider than its box can also be scrolled with the keyboard.
  const reachable = () => document.querySelectorAll(".scroll").forEach((box) => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
  const fit = () => { plots.forEach(({ made, size }) => made.setSize(size())); reachable(); };
  document.addEventListener("toggle", reachable, true);
  reachable();
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(fit, 100); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach(({ made }) => made.redraw(false)));
  // Axis labels must not be clipped: the longest one needs 160 pixels beside its axis.
  addEventListener("beforeprint", () => plots.forEach(({ id, made, box }) => made.setSize(box.closest(".charts") ? { width: 326, height: 112 } : { width: 670, height: /^(overview|distribution)/.test(id) ? 220 : 150 })));
  addEventListener("afterprint", fit);
  // For the script that follows a running run.
  window.kelvin = { data, redraw: (point) => plots.filter(({ id }) => id.split("-")[1] === String(point) && !id.startsWith("distribution")).forEach(({ made, make }) => made.setData(make())) };
})();
