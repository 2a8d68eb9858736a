"use strict";
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const one = (selector, root = document) => root.querySelector(selector);
  const store = {
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(key, value); } catch { /* a file has none */ } },
  };

  // Light or dark.
  const theme = store.get("karve-theme");
  if (theme) document.documentElement.dataset.theme = theme;
  const isDark = () => (document.documentElement.dataset.theme
    || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const turnTheme = () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    store.set("karve-theme", next);
    drawTrend();
  };

  // Tables.
  const key = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.key ?? cell.textContent.trim();
    const number = Number(value);
    return value === "" || Number.isNaN(number) ? value.toLowerCase() : number;
  };
  const sortBy = (table, column, direction) => {
    const rows = all("tbody tr", table);
    const compare = (a, b) => {
      const [x, y] = [key(a, column), key(b, column)];
      if (typeof x === typeof y) return x < y ? -1 : x > y ? 1 : 0;
      return typeof x === "number" ? -1 : 1;
    };
    rows.sort((a, b) => direction === "up" ? compare(a, b) : compare(b, a));
    one("tbody", table).append(...rows);
    all("th", table).forEach((th, at) => { th.dataset.sort = at === column ? direction : ""; });
  };
  const sorted = {};
  const prepareTables = (root) => all("table[data-sortable]", root).forEach((table) => {
    all("thead th", table).forEach((th, column) => {
      th.dataset.sort = "";
      th.tabIndex = 0;
      const turn = () => {
        const direction = th.dataset.sort === "up" ? "down" : "up";
        if (table.dataset.rounds !== undefined) sorted.rounds = [column, direction];
        sortBy(table, column, direction);
      };
      th.addEventListener("click", turn);
      th.addEventListener("keydown", (event) => { if (event.key === "Enter") turn(); });
    });
    if (table.dataset.rounds !== undefined && sorted.rounds) sortBy(table, ...sorted.rounds);
  });

  // The filter of the rounds.
  const wanted = { text: "", verdicts: new Set() };
  const matches = (row) => {
    if (wanted.verdicts.size && !wanted.verdicts.has(row.dataset.verdict)) return false;
    const said = row.textContent.toLowerCase();
    const text = wanted.text.toLowerCase().replace(/\s*([<>]=?)\s*/g, "$1");
    return text.split(/\s+/).filter(Boolean).every((word) => {
      const bound = /^gain([<>])(=?)([0-9.]+)$/.exec(word);
      if (bound) {
        const gain = parseFloat(row.dataset.gain);
        if (bound[2] && gain === +bound[3]) return true;
        return bound[1] === ">" ? gain > +bound[3] : gain < +bound[3];
      }
      if (word.startsWith("verdict:")) return row.dataset.verdict.startsWith(word.slice(8));
      return said.includes(word);
    });
  };
  const applyFilter = () => {
    const rows = all("table[data-rounds] tbody tr");
    let shown = 0;
    rows.forEach((row) => { row.hidden = !matches(row); shown += row.hidden ? 0 : 1; });
    const count = one("[data-count]");
    if (count) count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length}`;
  };
  const prepareFilter = () => {
    const form = one("[data-filter]");
    if (!form) return;
    form.hidden = false;
    const input = one("input", form);
    input.value = wanted.text;
    input.addEventListener("input", () => { wanted.text = input.value; applyFilter(); });
    form.addEventListener("submit", (event) => event.preventDefault());
    all("button[data-verdict]", form).forEach((button) => {
      const verdict = button.dataset.verdict;
      button.setAttribute("aria-pressed", wanted.verdicts.has(verdict));
      button.addEventListener("click", () => {
        if (!wanted.verdicts.delete(verdict)) wanted.verdicts.add(verdict);
        button.setAttribute("aria-pressed", wanted.verdicts.has(verdict));
        applyFilter();
      });
    });
    applyFilter();
  };

  // The trend, to look at closely: drag to zoom, double click to see all.
  let payload = null;
  let chart = null;
  let zoomed = false;
  const drawTrend = () => {
    const place = one("[data-chart=trend]");
    const button = one("[data-zoom]");
    const still = place && one("svg.karve-plot", place);
    if (!still || !button || typeof uPlot === "undefined") return;
    button.hidden = false;
    button.textContent = zoomed ? "all of it" : "zoom";
    button.onclick = () => { zoomed = !zoomed; drawTrend(); };
    if (chart) { chart.destroy(); chart = null; }
    still.style.display = zoomed ? "none" : "";
    if (!zoomed) return;
    // What only the plot needs is asked for when somebody looks.
    if (!payload) { still.style.display = ""; loadPayload().catch(() => {}); return; }
    const rows = payload.trend.filter((row) => row.estimate);
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    const of = (pick) => rows.map((row) => pick(row));
    const data = [
      of((row) => row.round), of((row) => row.best), of((row) => row.estimate.ratio),
      of((row) => row.estimate.low ?? row.estimate.ratio),
      of((row) => row.estimate.high ?? row.estimate.ratio),
    ];
    const paint = { keep: color("--good"), drop: color("--dim"), undecided: color("--bad") };
    const whiskers = (plot) => {
      const context = plot.ctx;
      const pixel = devicePixelRatio;
      context.save();
      context.lineWidth = 1.5 * pixel;
      rows.forEach((row, at) => {
        const x = plot.valToPos(data[0][at], "x", true);
        if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) return;
        const y = (value) => plot.valToPos(value, "y", true);
        context.strokeStyle = context.fillStyle = paint[row.verdict.split(" ")[0]] || paint.drop;
        context.beginPath();
        context.moveTo(x, y(data[3][at]));
        context.lineTo(x, y(data[4][at]));
        context.stroke();
        context.beginPath();
        context.arc(x, y(data[2][at]), 3.5 * pixel, 0, 7);
        row.verdict.startsWith("keep") ? context.fill() : context.stroke();
      });
      context.restore();
    };
    const axis = { stroke: color("--ink"), grid: { stroke: color("--line") }, ticks: { stroke: color("--line") } };
    const levels = (plot) => {
      const context = plot.ctx;
      const draw = (value, text, stroke) => {
        const y = plot.valToPos(value, "y", true);
        if (!(y > plot.bbox.top && y < plot.bbox.top + plot.bbox.height)) return;
        context.save();
        context.strokeStyle = context.fillStyle = stroke;
        context.setLineDash([4, 4]);
        context.textAlign = "left";
        context.beginPath();
        context.moveTo(plot.bbox.left, y);
        context.lineTo(plot.bbox.left + plot.bbox.width, y);
        context.stroke();
        context.fillText(text, plot.bbox.left + 6, y - 4);
        context.restore();
      };
      draw(1, "original", color("--dim"));
      if (payload.limit_ratio) draw(payload.limit_ratio, "roofline", color("--bad"));
      (payload.campaign.baselines || []).forEach((baseline) => {
        if (baseline.over_original > 0) draw(baseline.over_original, baseline.name, color("--link"));
      });
      const same = payload.controls.filter((control) => control.kind === "same").pop();
      if (same && same.estimate.low && same.estimate.high) {
        const [low, high] = [plot.valToPos(same.estimate.low, "y", true), plot.valToPos(same.estimate.high, "y", true)];
        context.save();
        context.globalAlpha = 0.25;
        context.fillStyle = color("--dim");
        context.fillRect(plot.bbox.left, high, plot.bbox.width, Math.max(1, low - high));
        context.restore();
      }
    };
    all(".uplot", place).forEach((old) => old.remove());
    const figure = (_, value) => value === null || value === undefined ? "" : value.toFixed(3) + "x";
    chart = new uPlot({
      width: Math.max(320, place.clientWidth), height: 360,
      scales: { x: { time: false, range: (_, low, high) => [low - 0.5, high + 0.5] }, y: { distr: 3, log: 10, range: (_, low, high) => [Math.min(low, 1) * 0.97, Math.max(high, 1) * 1.03] } },
      axes: [{ ...axis, label: "round", incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500] }, {
        ...axis, label: "speedup over the original (log scale)", size: 64,
        splits: (_, __, low, high) => {
          const ratio = (high / low) ** (1 / 6);
          return Array.from({ length: 7 }, (_, at) => low * ratio ** at);
        },
        filter: (_, splits) => splits,
        values: (_, splits) => splits.map((value) => value.toPrecision(3) + "x"),
      }],
      series: [{ label: "round" },
        { label: "best so far", stroke: color("--link"), width: 2, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }), value: figure },
        { label: "this round", stroke: "transparent", points: { show: false }, value: figure },
        { label: "low", stroke: "transparent", points: { show: false }, value: figure },
        { label: "high", stroke: "transparent", points: { show: false }, value: figure }],
      hooks: { drawAxes: [levels], draw: [whiskers] },
    }, data, place);
  };
  const loadPayload = async () => {
    const inlined = one("#payload");
    if (inlined) payload = JSON.parse(inlined.textContent);
    else {
      const answer = await fetch(location.pathname + "/payload.json");
      if (answer.ok) payload = await answer.json();
    }
    if (payload) drawTrend();
  };

  // Keys.
  let at = -1;
  const rows = () => all("tr[data-row]").filter((row) => !row.hidden);
  const go = (step) => {
    const list = rows();
    if (!list.length) return;
    all("tr.at").forEach((row) => row.classList.remove("at"));
    at = Math.min(list.length - 1, Math.max(0, at + step));
    list[at].classList.add("at");
    list[at].scrollIntoView({ block: "nearest" });
  };
  const follow = (link) => { if (link) location.href = link.href; return !!link; };
  // In a report all rounds are on one page.
  const step = (by) => {
    const rounds = all("article.round[id]");
    const place = document.getElementById(location.hash.slice(1));
    const here = rounds.findIndex((round) => round.contains(place));
    const next = rounds[here < 0 ? 0 : here + by];
    if (next) location.hash = next.id;
  };
  const keys = {
    j: () => go(1), k: () => go(-1),
    Enter: () => { const row = one("tr.at"); if (row) location.href = row.dataset.href; },
    "/": () => { const input = one("[data-filter] input"); if (input) input.focus(); },
    n: () => follow(one("a[rel=next]")) || step(1), p: () => follow(one("a[rel=prev]")) || step(-1),
    u: () => follow(all(".bar nav a").pop()) || scrollTo(0, 0), t: turnTheme,
    "?": () => { const dialog = one("#keys"); dialog.open ? dialog.close() : dialog.showModal(); },
  };
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA)$/.test(event.target.tagName);
    if (typing && event.key === "Escape") event.target.blur();
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    if (event.key === "Enter" && event.target !== document.body) return;
    event.preventDefault();
    keys[event.key]();
  });
  // A link to a turn of an agent opens it; newer browsers do so themselves.
  const reveal = () => {
    const place = document.getElementById(location.hash.slice(1));
    for (let box = place && place.closest("details:not([open])"); box; box = box.parentElement.closest("details:not([open])")) {
      box.open = true;
    }
    if (!place || !place.closest("details")) return;
    place.scrollIntoView();
    // Parts above it that come into view get their real height a frame later.
    requestAnimationFrame(() => requestAnimationFrame(() => place.scrollIntoView()));
  };
  addEventListener("hashchange", reveal);
  reveal();
  const doing = { theme: turnTheme, keys: keys["?"] };
  all("[data-do]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", doing[button.dataset.do]);
  });

  // Live: parts that changed are exchanged, the rest of the page stays as it is.
  const seen = {};
  const isOver = () => !one("[data-part=live]") && !one("[data-part=overview]");
  if (!isOver()) all("[data-part]").forEach((part) => { seen[part.dataset.part] = part.innerHTML; });
  const reload = async () => {
    const answer = await fetch(location.pathname);
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (fresh.body.dataset.replaced !== document.body.dataset.replaced) one("#replaced").hidden = false;
    document.body.dataset.replaced = fresh.body.dataset.replaced;
    const names = (root) => all("[data-part]", root).map((part) => part.dataset.part).join();
    const typing = document.activeElement.tagName === "INPUT" ? document.activeElement : null;
    let changed = [];
    const open = new Set(all("details[open] > summary").map((summary) => summary.textContent));
    if (names(fresh) !== names(document) && !typing) {
      one("main").innerHTML = one("main", fresh).innerHTML;
      changed = all("[data-part]");
    } else {
      all("[data-part]", fresh).forEach((part) => {
        const old = one(`[data-part="${part.dataset.part}"]`);
        if (!old || seen[part.dataset.part] === part.innerHTML || old.contains(typing)) return;
        old.innerHTML = part.innerHTML;
        changed.push(part);
      });
    }
    changed.forEach((part) => { seen[part.dataset.part] = part.innerHTML; });
    all("details > summary").forEach((summary) => {
      if (open.has(summary.textContent)) summary.parentElement.open = true;
    });
    if (changed.some((part) => part.dataset.part === "trend")) {
      chart = payload = null;
      drawTrend();
    }
    if (changed.some((part) => /^(rounds|overview)$/.test(part.dataset.part))) {
      prepareTables(document);
      prepareFilter();
    }
    document.body.dataset.updates = +(document.body.dataset.updates || 0) + 1;
  };
  // A hidden page needs no stream: a browser has few connections for one host.
  const live = document.body.dataset.live;
  let source = null;
  let busy = false;
  let again = false;
  const dot = (isLive) => { one("#live-dot").hidden = !isLive; };
  const close = () => { if (source) source.close(); source = null; dot(false); };
  // A page that takes long to make is asked for less often: a campaign needs its host.
  const rests = 2;
  const update = async () => {
    if (busy) { again = true; return; }
    busy = true;
    const begun = performance.now();
    try { await reload(); } catch { /* the server ended; the page stays */ }
    if (isOver()) close();
    setTimeout(() => {
      busy = false;
      if (again) { again = false; update(); }
    }, rests * (performance.now() - begun));
  };
  const listen = () => {
    if (!live || source || document.hidden || isOver() || typeof EventSource === "undefined") return;
    source = new EventSource(live);
    source.addEventListener("open", () => dot(true));
    source.addEventListener("error", () => dot(false));
    source.addEventListener("changed", update);
  };
  document.addEventListener("visibilitychange", () => document.hidden ? close() : listen());
  addEventListener("pagehide", close);
  listen();

  prepareTables(document);
  prepareFilter();
  drawTrend();
  let resized = null;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(drawTrend, 150); });
  document.body.dataset.ready = "yes";
})();
