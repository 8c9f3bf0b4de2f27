"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const STOPS = [[68, 1, 84], [72, 40, 120], [62, 73, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37]];
  const EMPTY = 0, ZERO = 1, FIRST = 2, LAST = 65533, INFINITE = 65534, NAN = 65535;
  const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 4", "1 2"];

  const el = (name, attributes, ...children) => {
    const node = document.createElement(name);
    for (const [k, v] of Object.entries(attributes || {})) node.setAttribute(k, v);
    node.append(...children);
    return node;
  };
  const svg = (name, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [k, v] of Object.entries(attributes || {})) node.setAttribute(k, v);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  // Strict JSON holds non-finite numbers as words.
  const number = (v) => (typeof v === "number" ? v : Number(v));
  const show = (v) => {
    if (!Number.isFinite(v)) return String(v);
    if (v === 0) return "0";
    const size = Math.abs(v);
    if (size >= 1e6 || size < 1e-3) return v.toExponential(2).replace("e+", "e");
    return String(Number(v.toPrecision(4)));
  };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const ticks = (low, high, most) => {
    if (!(high > low)) return [low];
    const raw = (high - low) / Math.max(most, 1);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
    const out = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) out.push(Number((i * step).toPrecision(12)));
    return out;
  };
  const wholeTicks = (low, high, most) => ticks(low, high, most).filter(Number.isInteger);
  const logTicks = (low, high, most) => {
    const a = Math.ceil(low - 1e-9), b = Math.floor(high + 1e-9);
    if (b < a || b - a < 1) return ticks(low, high, most).map((t) => [t, show(10 ** t)]);
    const every = Math.max(1, Math.ceil((b - a + 1) / most));
    const out = [];
    for (let t = a; t <= b; t += every) out.push([t, t >= -3 && t <= 4 ? show(10 ** t) : "1e" + t]);
    return out;
  };

  const prepare = (index, label) => {
    const plot = document.querySelector(`[data-figure="${index}"]`);
    plot.hidden = false;
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-roledescription", "chart");
    plot.setAttribute("aria-label", label);
    // Only key presses are spoken: a pointer sweeping over the chart would flood a screen reader.
    const readout = el("output", { class: "readout", "aria-live": "off" });
    plot.after(readout);
    plot.addEventListener("focus", () => readout.setAttribute("aria-live", "polite"));
    plot.addEventListener("blur", () => readout.setAttribute("aria-live", "off"));
    return { plot, readout, controls: document.querySelector(`[data-controls="${index}"]`) };
  };
  const redrawOnChange = (plot, draw) => {
    let width = 0;
    new ResizeObserver(() => {
      if (plot.clientWidth && plot.clientWidth !== width) { width = plot.clientWidth; requestAnimationFrame(draw); }
    }).observe(plot);
  };

  function curve(figure, index) {
    const lines = figure.lines.map((l) => ({ source: l.source, steps: l.steps, values: l.values.map(number) }));
    const steps = lines.flatMap((l) => l.steps);
    if (!steps.length) return;
    const { plot, readout, controls } = prepare(index, `${figure.name} over steps. Left and right arrow keys read single values, Home and End the first and the last.`);
    let x0 = Infinity, x1 = -Infinity, positive = false;
    for (const s of steps) { x0 = Math.min(x0, s); x1 = Math.max(x1, s); }
    for (const l of lines) for (const v of l.values) if (v > 0 && v < Infinity) positive = true;
    const longest = lines.reduce((a, b) => (b.steps.length > a.steps.length ? b : a));
    const hint = "Point at the chart, or focus it and use the arrow keys.";
    let log = false, at = null, place = null;
    readout.textContent = hint;

    if (positive) {
      const toggle = el("button", { type: "button", "aria-pressed": "false" }, "Log scale");
      toggle.addEventListener("click", () => {
        log = !log;
        toggle.setAttribute("aria-pressed", String(log));
        draw();
      });
      controls.append(toggle);
    }
    if (lines.length > 1) {
      const legend = el("div", { class: "legend" });
      lines.forEach((l, i) => {
        const key = svg("svg", { viewBox: "0 0 24 10", "aria-hidden": "true" });
        const stroke = svg("line", { x1: 0, x2: 24, y1: 5, y2: 5, "stroke-width": 2, "stroke-dasharray": DASHES[i % 6] });
        stroke.style.stroke = `var(--line-${i % 6})`;
        key.append(stroke);
        legend.append(el("span", {}, key, l.source));
      });
      plot.before(legend);
    }

    function draw() {
      const W = Math.max(plot.clientWidth, 200), H = 230, L = 58, R = 14, T = 20, B = 26;
      const usable = (v) => Number.isFinite(v) && (!log || v > 0);
      const level = (v) => (log ? Math.log10(v) : v);
      let y0 = Infinity, y1 = -Infinity;
      for (const l of lines) for (const v of l.values) if (usable(v)) { y0 = Math.min(y0, level(v)); y1 = Math.max(y1, level(v)); }
      if (y0 > y1) { y0 = 0; y1 = 1; }
      const margin = (y1 - y0) * 0.05 || Math.abs(y1) * 0.1 || 1;
      y0 -= margin; y1 += margin;
      const X = (s) => (x1 > x0 ? L + ((s - x0) / (x1 - x0)) * (W - L - R) : (L + W - R) / 2);
      const Y = (v) => T + (1 - (level(v) - y0) / (y1 - y0)) * (H - T - B);
      const root = svg("svg", { viewBox: `0 0 ${W} ${H}`, height: H, "aria-hidden": "true" });
      const hatch = svg("pattern", { id: `hatch-${index}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
      hatch.append(svg("rect", { class: "odd-ground", width: 6, height: 6 }), svg("line", { class: "odd-line", x1: 0, y1: 0, x2: 0, y2: 6, "stroke-width": 1.5, opacity: 0.55 }));
      const defs = svg("defs");
      defs.append(hatch);
      root.append(defs);

      for (const [t, label] of log ? logTicks(y0, y1, 5) : ticks(y0, y1, 5).map((t) => [t, show(t)])) {
        const y = T + (1 - (t - y0) / (y1 - y0)) * (H - T - B);
        root.append(svg("line", { class: "axis", x1: L, x2: W - R, y1: y, y2: y }), svg("text", { x: L - 8, y: y + 4, "text-anchor": "end" }, label));
      }
      for (const t of wholeTicks(x0, x1, Math.max(2, Math.floor((W - L) / 90)))) {
        root.append(svg("text", { x: X(t), y: H - 7, "text-anchor": "middle" }, t.toLocaleString("en")));
      }
      // Where a value is not finite: a hatched band from the first to the last of each run.
      const bands = [];
      for (const l of lines) {
        for (let i = 0; i < l.values.length; i++) {
          if (Number.isFinite(l.values[i])) continue;
          let j = i;
          while (j + 1 < l.values.length && !Number.isFinite(l.values[j + 1])) j++;
          const a = X(l.steps[i]), b = X(l.steps[j]), word = String(l.values[i]);
          root.append(svg("rect", { x: a - 1, y: T, width: Math.max(b - a, 0) + 2, height: H - T - B, fill: `url(#hatch-${index})` }));
          if (!bands.some((x) => Math.abs(x - a) < 60) && b - a > 60) root.append(svg("text", { class: "error", x: a + 8, y: H - B - 10 }, word === "NaN" ? "NaN" : word + ", then not finite"));
          bands.push(a);
          i = j;
        }
      }
      lines.forEach((l, n) => {
        let d = "", pen = "M";
        l.values.forEach((v, i) => {
          if (!usable(v)) { pen = "M"; return; }
          const lone = pen === "M" && !(i + 1 < l.values.length && usable(l.values[i + 1]));
          d += `${pen}${X(l.steps[i]).toFixed(1)} ${Y(v).toFixed(1)}${lone ? "h.01" : ""}`;
          pen = "L";
        });
        const path = svg("path", { class: "curve", d, "stroke-dasharray": DASHES[n % 6], "stroke-linecap": "round" });
        path.style.stroke = `var(--line-${n % 6})`;
        root.append(path);
      });
      let edge = -Infinity;
      for (const m of [...data.marks].sort((a, b) => a.step - b.step)) {
        if (m.step < x0 || m.step > x1) continue;
        const x = X(m.step);
        root.append(svg("line", { class: `mark ${m.severity}`, x1: x, x2: x, y1: T - 4, y2: H - B }));
        if (x - edge > 24) { root.append(svg("text", { class: m.severity, x, y: T - 8, "text-anchor": "middle" }, m.id)); edge = x; }
      }
      const cross = svg("line", { class: "cross", y1: T, y2: H - B, visibility: "hidden" });
      root.append(cross);
      plot.replaceChildren(root);
      place = (i) => {
        at = i;
        const s = longest.steps[i], x = X(s);
        cross.setAttribute("x1", x); cross.setAttribute("x2", x); cross.setAttribute("visibility", "visible");
        const parts = lines.map((l) => {
          const v = l.values[nearest(l.steps, s)];
          return (lines.length > 1 ? l.source + " " : "") + show(v);
        });
        const marks = data.marks.filter((m) => m.step === s).map((m) => `; ${m.id} ${m.rule} begins here`).join("");
        readout.textContent = `Step ${s.toLocaleString("en")}: ${parts.join(", ")}${figure.unit ? " " + figure.unit : ""}${marks}`;
      };
      plot.onpointermove = (event) => {
        const box = plot.getBoundingClientRect();
        place(nearest(longest.steps, x0 + ((event.clientX - box.left - L) / (W - L - R)) * (x1 - x0)));
      };
      plot.onpointerleave = () => {
        if (document.activeElement === plot) return;
        cross.setAttribute("visibility", "hidden");
        readout.textContent = hint;
        at = null;
      };
      if (at !== null) place(at);
    }
    plot.addEventListener("keydown", (event) => {
      const n = longest.steps.length, from = at === null ? -1 : at, by = event.shiftKey ? 10 : 1;
      const to = { ArrowRight: from + by, ArrowLeft: from - by, Home: 0, End: n - 1 }[event.key];
      if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      place(Math.max(0, Math.min(n - 1, to)));
    });
    redrawOnChange(plot, draw);
  }

  function nearest(sorted, target) {
    let a = 0, b = sorted.length - 1;
    while (a < b) {
      const middle = (a + b) >> 1;
      if (sorted[middle] < target) a = middle + 1; else b = middle;
    }
    return a > 0 && target - sorted[a - 1] <= sorted[a] - target ? a - 1 : a;
  }

  const shade = (t) => {
    const at = Math.max(0, Math.min(1, t)) * (STOPS.length - 1), i = Math.min(Math.floor(at), STOPS.length - 2), f = at - i;
    return STOPS[i].map((c, k) => Math.round(c + (STOPS[i + 1][k] - c) * f));
  };
  // NaN: magenta with diagonal stripes. Infinity: orange-red with dots. Both outside the scale's own hues.
  const pattern = (context, code) => {
    const tile = el("canvas", { width: 8, height: 8 }), c = tile.getContext("2d");
    c.fillStyle = code === NAN ? "#d6217f" : "#ff5a1f";
    c.fillRect(0, 0, 8, 8);
    if (code === NAN) {
      c.strokeStyle = "#ffffff"; c.lineWidth = 1.4;
      for (const o of [-8, 0, 8]) { c.beginPath(); c.moveTo(o, 8); c.lineTo(o + 8, 0); c.stroke(); }
    } else {
      c.fillStyle = "#ffffff"; c.fillRect(1, 1, 2, 2); c.fillRect(5, 5, 2, 2);
    }
    return context.createPattern(tile, "repeat");
  };

  // What all names begin with, up to a dot: the first part to go when a name is too long.
  const sharedStart = (names) => {
    let shared = names[0];
    for (const name of names) while (!name.startsWith(shared)) shared = shared.slice(0, -1);
    return names.length > 1 ? shared.lastIndexOf(".") + 1 : 0;
  };
  const fitted = (context, name, shared, width) => {
    const fits = (text) => context.measureText(text).width <= width;
    if (fits(name)) return name;
    const rest = name.slice(shared);
    if (fits(rest)) return rest;
    // Both ends of a path tell something: the layer's number, and which weight it is.
    let keep = Math.floor(rest.length / 2);
    while (keep > 1 && !fits(rest.slice(0, keep) + "\u2026" + rest.slice(-keep))) keep--;
    return rest.slice(0, keep) + "\u2026" + rest.slice(-keep);
  };

  function heatmap(figure, index) {
    const rows = figure.rows.length, columns = figure.first.length;
    if (!rows || !columns) return;
    const { plot, readout } = prepare(index, `${figure.name}, ${rows} rows by ${columns} columns. Arrow keys read single cells.`);
    const bytes = Uint8Array.from(atob(figure.data), (c) => c.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const code = (i, j) => view.getUint16(2 * (i * columns + j), true);
    const level = (c) => figure.low + ((c - FIRST) / (LAST - FIRST)) * (figure.high - figure.low);
    const value = (c) => {
      if (c === EMPTY) return "no value";
      if (c === ZERO) return "0";
      if (c === NAN) return "NaN";
      if (c === INFINITE) return "Infinity";
      return String(Number((figure.log ? 10 ** level(c) : level(c)).toPrecision(3)));
    };
    const tone = (c) => (figure.high > figure.low ? (c - FIRST) / (LAST - FIRST) : 0.5);
    const hint = "Point at a cell, or focus the map and use the arrow keys.";
    let at = null, place = null;
    readout.textContent = hint;

    const shared = sharedStart(figure.rows);
    const present = new Set();
    for (let k = 0; k < rows * columns; k++) { const c = view.getUint16(2 * k, true); if (c < FIRST || c > LAST) present.add(c); }
    const legend = el("div", { class: "legend" });
    const ends = [figure.low, figure.high].map((v) => show(figure.log ? 10 ** v : v));
    legend.append(el("span", {}, ends[0], el("span", { class: "ramp" }), ends[1], figure.log ? " (log scale)" : ""));
    const keys = [[ZERO, "exactly 0"], [INFINITE, "Infinity"], [NAN, "NaN"], [EMPTY, "no value"]].filter(([c]) => present.has(c));
    const swatches = keys.map(([c, label]) => {
      const swatch = el("canvas", { width: 36, height: 24, "aria-hidden": "true" });
      legend.append(el("span", {}, swatch, label));
      return [c, swatch];
    });
    plot.before(legend);

    const cell = el("div", { class: "cell" });
    function draw() {
      const W = Math.max(plot.clientWidth, 240), size = Math.max(2, Math.min(20, Math.round(440 / rows)));
      const L = Math.min(230, Math.floor(W * 0.34)), B = 24, H = rows * size + B, scale = window.devicePixelRatio || 1;
      const canvas = el("canvas", { width: Math.round(W * scale), height: Math.round(H * scale), "aria-hidden": "true" });
      canvas.style.height = `${H}px`;
      const c = canvas.getContext("2d");
      c.scale(scale, scale);
      const fills = { [ZERO]: css("--zero"), [NAN]: pattern(c, NAN), [INFINITE]: pattern(c, INFINITE) };
      const width = (W - L - 2) / columns;
      for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columns; j++) {
          const k = code(i, j);
          if (k === EMPTY) continue;
          c.fillStyle = fills[k] || `rgb(${shade(tone(k)).join(" ")})`;
          const a = Math.round((L + j * width) * scale) / scale, b = Math.round((L + (j + 1) * width) * scale) / scale;
          c.fillRect(a, i * size, b - a, size);
        }
      }
      c.font = `11.5px ${css("--sans")}`;
      c.fillStyle = css("--soft");
      c.textBaseline = "middle";
      const every = Math.max(1, Math.ceil(13 / size));
      for (let i = Math.ceil(Math.max(0, 7 / size - 0.5)); i < rows; i += every) {
        const name = fitted(c, figure.rows[i], shared, L - 12);
        c.fillText(name, L - 8 - c.measureText(name).width, i * size + size / 2);
      }
      const most = Math.max(2, Math.floor((W - L) / 90)), gap = Math.max(1, Math.ceil(columns / most));
      for (let j = 0; j < columns; j += gap) {
        const label = figure.first[j].toLocaleString("en");
        if (L + j * width + c.measureText(label).width <= W) c.fillText(label, L + j * width, rows * size + 13);
      }
      for (const [k, swatch] of swatches) {
        const s = swatch.getContext("2d");
        s.clearRect(0, 0, 36, 24);
        if (k !== EMPTY) { s.fillStyle = k === ZERO ? css("--zero") : pattern(s, k); s.fillRect(0, 0, 36, 24); }
      }
      plot.replaceChildren(canvas, cell);
      place = (i, j) => {
        at = [i, j];
        cell.style.display = "block";
        cell.style.left = `${L + j * width - 2}px`;
        cell.style.top = `${i * size - 2}px`;
        cell.style.width = `${Math.max(width, 2) + 4}px`;
        cell.style.height = `${size + 4}px`;
        const a = figure.first[j], b = figure.last[j];
        const span = a === b ? `step ${a.toLocaleString("en")}` : `steps ${a.toLocaleString("en")} to ${b.toLocaleString("en")}`;
        readout.textContent = `${figure.rows[i]}, ${span}: ${value(code(i, j))}${figure.unit ? " " + figure.unit : ""}`;
      };
      plot.onpointermove = (event) => {
        const box = plot.getBoundingClientRect();
        const j = Math.floor((event.clientX - box.left - L) / width), i = Math.floor((event.clientY - box.top) / size);
        if (i >= 0 && i < rows && j >= 0 && j < columns) place(i, j);
      };
      plot.onpointerleave = () => {
        if (document.activeElement === plot) return;
        cell.style.display = "none";
        readout.textContent = hint;
        at = null;
      };
      if (at) place(...at);
    }
    plot.addEventListener("keydown", (event) => {
      const [i, j] = at || [0, -1], by = event.shiftKey ? 10 : 1;
      const to = { ArrowRight: [i, j + by], ArrowLeft: [i, j - by], ArrowDown: [i + by, Math.max(j, 0)], ArrowUp: [i - by, Math.max(j, 0)], Home: [i, 0], End: [i, columns - 1] }[event.key];
      if (!to || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      place(Math.max(0, Math.min(rows - 1, to[0])), Math.max(0, Math.min(columns - 1, to[1])));
    });
    redrawOnChange(plot, draw);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

  data.figures.forEach((figure, index) => (figure.kind === "heatmap" ? heatmap : curve)(figure, index));

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const d of opened) d.open = true;
  });
  window.addEventListener("afterprint", () => { for (const d of opened) d.open = false; });
})();
