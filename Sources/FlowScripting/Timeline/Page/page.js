// The page: its texts, its table, and what the user does.

const began = performance.now();
const page = JSON.parse(document.getElementById("data").textContent);
const view = new URLSearchParams(location.hash.slice(1));
let spans, chart, sortedBy = (history.state && history.state.sortedBy) || "total";

function part(id) { return document.getElementById(id); }

// Makes an element. Texts never become markup.
function element(name, text, classes) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

function button(text, classes, action) {
  const made = element("button", text, classes);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}

// The colours of the style sheet, which depend on the user's scheme.
function colors() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    page: color("page"), text: color("text"), quiet: color("quiet"), line: color("line"),
    soft: color("soft"), ok: color("ok"), okLight: color("ok-light"), bad: color("bad"),
    again: color("again"), stopped: color("stopped"), delay: color("delay"),
    queue: color("queue"), chosen: color("chosen"), onBar: color("on-bar"),
    undo: color("undo"), kept: color("kept"),
  };
}

// Keeps what is shown in the address, so that it survives a reload and can be passed on.
function keepView(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === "" || value === undefined) view.delete(name);
    else view.set(name, value);
  }
  const text = view.toString();
  history.replaceState(history.state, "", text ? `#${text}` : location.pathname + location.search);
}

function showRun(number) {
  const run = page.runs[number];
  spans = new Spans(run);
  chart = new Chart(spans, colors());
  showHead(run, number);
  showProblems(run);
  showPath(run);
  showTable(run);
  part("summary").textContent = run.summary;
  part("details").replaceChildren(element("p", "Click a bar, a row or a problem.", "quiet"));
}

function showHead(run, number) {
  document.title = `${run.name} – flowlua`;
  part("runs").replaceChildren(...(page.runs.length < 2 ? [] : page.runs.map((other, k) => {
    const made = button(`${other.name} · ${other.state} · ${seconds(other.duration)}`, "", () => {
      keepView({ run: k, select: "", from: "", to: "", find: "", open: "" });
      start();
    });
    made.setAttribute("aria-current", String(k === number));
    return made;
  })));
  part("name").textContent = run.name;
  part("state").textContent = run.state;
  part("state").className = `state ${run.state}`;
  document.body.className = [
    run.state === "running" ? "open" : "", run.undos.length > 0 ? "undone" : "",
    run.numbers.kept > 0 ? "kept" : "",
  ].filter(Boolean).join(" ");
  const when = new Date(run.began * 1000);
  const pad = (value) => String(value).padStart(2, "0");
  const date = `${when.getFullYear()}-${pad(when.getMonth() + 1)}-${pad(when.getDate())}`;
  const time = `${pad(when.getHours())}:${pad(when.getMinutes())}:${pad(when.getSeconds())}`;
  const program = page.version ? `flowlua ${page.version}` : "";
  const about = [run.place, `${date} ${time}`, program, page.host];
  if (run.dropped !== "") about.push(run.dropped);
  if (run.omitted > 0) {
    about.push(`${run.omitted.toLocaleString("en")} of the ops that succeeded quickly are left out`);
  }
  if (page.omitted > 0) {
    about.push(`${page.omitted.toLocaleString("en")} of ${(page.omitted + page.runs.length).toLocaleString("en")
      } runs are left out: shown are failures, the longest and a sample`);
  }
  if (page.stage === "final") about.push("complete: the script has ended");
  part("about").textContent = about.filter(Boolean).join(" · ");
  part("error").textContent = run.error || "";
  part("error").hidden = !run.error;
  const { ops, failed, repeated, work, parallel, workers, use, kept, undone, undosFailed } = run.numbers;
  const numbers = [
    ["duration", seconds(run.duration)],
    ["ops executed", ops.toLocaleString("en")],
    ["failed", failed.toLocaleString("en")],
    ["attempts repeated", repeated.toLocaleString("en")],
    ["work in all", seconds(work)],
    ["at the same time, on average", `${parallel.toFixed(1)} ×`],
    [`of ${workers} workers used, while needed`, workers > 0 ? `${Math.round(use * 100)} %` : "–"],
  ];
  if (workers === 0) numbers[6][0] = "no workers";
  // Most runs have neither.
  const further = [["undone", undone], ["couldn't be undone", undosFailed], ["kept", kept]];
  numbers.splice(3, 0, ...further.filter(([, count]) => count > 0)
    .map(([name, count]) => [name, count.toLocaleString("en")]));
  part("numbers").replaceChildren(...numbers.map(([name, value]) => {
    const pair = element("div");
    pair.append(element("dt", name), element("dd", value));
    return pair;
  }));
}

function showProblems(run) {
  part("problems").replaceChildren(...run.problems.map((problem) => {
    const made = button(undefined, problem.severity, () => {
      choose(problem.span, problem.start === undefined);
      // Its undo may be far from the op.
      if (problem.start !== undefined) showAround(problem.start, problem.length);
    });
    made.append(element("b", problem.title), ` ${problem.message} `,
      element("span", problem.note, "quiet"));
    return made;
  }));
}

// A part of the critical path that is long enough has its text in the bar, the others have it below.
function showPath(run) {
  part("waited").hidden = run.path.length === 0;
  const room = part("path").clientWidth;
  const narrow = [];
  part("path").replaceChildren(...run.path.map((step) => {
    const share = step.length / spans.duration;
    const text = `${step.title} ${seconds(step.length)}`;
    const fits = share * room > 12 + text.length * 6.6;
    if (!fits) narrow.push(step);
    const made = pathButton(step, fits ? text : "");
    made.style.flex = `${Math.max(share, 0.004)} 1 0`;
    // The part of the work that was a wait is grey at its end.
    const waited = step.kind === "work" ? step.waited / step.length : 0;
    if (waited > 0) made.style.setProperty("--work", `${(100 - waited * 100).toFixed(1)}%`);
    return made;
  }));
  const most = 12;
  const longest = [...narrow].sort((a, b) => b.length - a.length).slice(0, most);
  part("narrow").replaceChildren(...narrow.filter((step) => longest.includes(step)).map(
    (step) => pathButton(step, `${step.title} ${seconds(step.length)}`)));
  if (narrow.length > most) part("narrow").append(`and ${narrow.length - most} shorter parts`);
}

function pathButton(step, text) {
  const made = button(text, step.kind === "work" ? "" : step.kind, () => {
    show(step.start - spans.duration * 0.02, step.start + step.length + spans.duration * 0.02);
    if (step.span >= 0) choose(step.span);
  });
  const waited = step.kind === "work" && step.waited > 0 ? `, ${seconds(step.waited)} of it waiting` : "";
  const share = Math.round(step.length / spans.duration * 100);
  made.title = `${step.title} ${seconds(step.length)} (${share} %)${waited}`;
  made.setAttribute("aria-label", made.title);
  return made;
}

const COUNTS = [["runs", "runs"], ["failed", "failed"], ["retried", "retried"]];
const RARE_COUNTS = [["kept", "kept"], ["undone", "undone"], ["undos failed", "undosFailed"]];
const TIMES = [
  ["total", "total"], ["median", "median"], ["p95", "p95"], ["longest", "longest"],
  ["longest queued", "queued"],
];

function showTable(run) {
  // Most runs have none of the rare ones.
  const counts = [...COUNTS, ...RARE_COUNTS.filter(([, key]) => run.ops.some((row) => row[key] > 0))];
  const isCount = (key) => counts.some(([, other]) => other === key);
  const columns = [["op", "name"], ...counts, ...TIMES];
  const head = element("tr");
  for (const [title, key] of columns) {
    const cell = element("th");
    cell.scope = "col";
    cell.setAttribute("aria-sort", key === sortedBy ? "descending" : "none");
    cell.append(button(key === sortedBy ? `${title} ↓` : title, "", () => {
      sortedBy = key;
      showTable(run);
    }));
    head.append(cell);
  }
  part("ops").tHead.replaceChildren(head);
  const rows = [...run.ops].sort((a, b) => sortedBy === "name"
    ? a.name.localeCompare(b.name) : (b[sortedBy] || 0) - (a[sortedBy] || 0));
  part("ops").tBodies[0].replaceChildren(...rows.map((row) => {
    const line = element("tr");
    for (const [, key] of columns) {
      const value = row[key];
      const text = key === "name" ? value
        : isCount(key)
          ? (value > 0 ? value.toLocaleString("en") : "–") : (value > 0 ? seconds(value) : "–");
      const isBad = (key === "failed" || key === "undosFailed") && value > 0;
      const cell = element("td", text, isBad ? "bad" : "");
      if (key === "name") cell.title = value;
      line.append(cell);
    }
    return line;
  }));
}

// How many programs and requests of an op the details list.
const SHOWN_WORKS = 50;

function showDetails(span) {
  const list = element("dl");
  const row = (name, text) => list.append(element("dt", name), element("dd", text));
  const length = spans.end[span] - spans.start[span];
  const message = spans.message(span);
  // The line of what is kept says so itself.
  row("outcome", spans.state[span] === KEPT && message ? message
    : STATES[spans.state[span]] + (message ? `: ${message}` : ""));
  const within = span > 0 ? spans.path(spans.parent[span]) : "";
  if (within) row("within", within);
  neighbours(list, "after", spans.before.get(span));
  neighbours(list, "before", spans.after.get(span));
  const queued = spans.queued(span);
  row("started", `+${seconds(spans.start[span])}${queued > 0 ? `, queued for ${seconds(queued)}` : ""}`);
  if (spans.queues.has(span)) row("limits", spans.queues.get(span).text);
  if (spans.state[span] !== KEPT) row(spans.state[span] === RUNNING ? "so far" : "took", seconds(length));
  if (spans.lane[span] > 0) row("ran on", spans.laneName(spans.lane[span]));
  for (const [k, attempt] of (spans.attempts.get(span) || []).entries()) {
    row(`attempt ${k + 1}`, seconds(attempt.end - attempt.start)
      + (attempt.message ? ` – ${attempt.message}` : "")
      + (attempt.delay > 0 ? `, then waited ${seconds(attempt.delay)}` : ""));
  }
  for (const undo of spans.undosOf.get(span) || []) {
    const name = undo.name ? ` of ${undo.name}` : "";
    const end = undo.state === RUNNING ? "so far" : STATES[undo.state];
    const message = undo.message ? `: ${undo.message}` : "";
    row(`undo${name}`, `+${seconds(undo.start)}, ${seconds(undo.end - undo.start)} ${end}${message}`);
  }
  const works = spans.works.get(span) || [];
  for (const work of works.slice(0, SHOWN_WORKS)) {
    const ending = work.ending ? `, ${work.ending}` : "";
    row(`+${seconds(work.start)}`, `${work.title} – ${seconds(work.end - work.start)}${ending}`);
  }
  if (works.length > SHOWN_WORKS) {
    row("", `and ${(works.length - SHOWN_WORKS).toLocaleString("en")} more`);
  }
  if (spans.run.kept && spans.run.place && spans.kind[span] === OP && span > 0) {
    const words = [
      "flowlua", `--resume=${spans.run.kept}`, "--only", quoted(spans.path(span)), quoted(spans.run.place),
    ];
    list.append(element("dt", "again"), element("dd", words.join(" "), "command"));
  }
  part("details").replaceChildren(element("h3", spans.title(span)), list);
}

// The steps of a graph before or after one, as links to their details.
function neighbours(list, name, others) {
  if (!others) return;
  const cell = element("dd", "", "neighbours");
  for (const [other, keys] of [...others].slice(0, SHOWN_WORKS)) {
    const given = keys.length > 0 ? ` <${keys.join(">, <")}>` : "";
    cell.append(button(spans.title(other) + given, "", () => choose(other, false)));
  }
  if (others.size > SHOWN_WORKS) cell.append(`and ${(others.size - SHOWN_WORKS).toLocaleString("en")} more`);
  list.append(element("dt", name), cell);
}

// A word of a command line.
function quoted(word) {
  return /^[\w./:=+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

// Shows a time; `choose` shows a span's details, and its bar when `zooms`.
function show(from, to) {
  chart.show(from, to);
  const isWhole = chart.to - chart.from >= spans.duration * 0.999;
  keepView({ from: isWhole ? "" : chart.from.toFixed(6), to: isWhole ? "" : chart.to.toFixed(6) });
}

function choose(span, zooms) {
  if (span < 0 || span >= spans.count) return;
  chart.chosen = span;
  if (chart.rows.hides(span) >= 0) toggle(chart.rows.hides(span));
  showDetails(span);
  chart.reveal(span);
  keepView({ select: spans.key(span) });
  if (zooms) showAround(spans.start[span], spans.end[span] - spans.start[span]);
  else chart.draw();
}

// Shows a time, and something before and after it.
function showAround(start, length) {
  const width = Math.max(length * 4, spans.duration * 0.05);
  show(start - width / 3, start + length + width / 3);
}

// Shows all rows of a group, or only the first ones.
function toggle(group) {
  chart.toggle(group);
  keepView({ open: [...chart.opened].join(".") });
  chart.draw();
}

function find(text) {
  chart.found = text ? spans.matches(text) : null;
  keepView({ find: text });
  chart.draw();
}

function setMode(mode) {
  chart.setMode(mode);
  part("scroll").scrollTop = 0;
  keepView({ mode: mode === "lanes" ? "" : mode });
  chart.draw();
}

function showTip(event) {
  const tip = part("tip");
  const box = chart.bars.getBoundingClientRect();
  const undo = chart.undoAt(event.clientX - box.left, event.clientY - box.top);
  const span = undo ? undo.span : chart.at(event.clientX - box.left, event.clientY - box.top);
  tip.hidden = span < 0;
  const row = chart.rowAt(event.clientY - box.top);
  chart.bars.style.cursor = row && row.hidden ? "pointer" : "";
  if (span < 0) return;
  const queued = spans.queued(span);
  const attempts = spans.attempts.get(span);
  tip.textContent = undo ? [
    spans.undoTitle(undo), seconds(undo.end - undo.start), undo.message,
  ].filter(Boolean).join(" · ") : [
    spans.title(span),
    spans.state[span] === KEPT ? "kept" : seconds(spans.end[span] - spans.start[span]),
    queued > 0 ? spans.queues.get(span)?.text || `queued ${seconds(queued)}` : "",
    attempts ? `${attempts.length} attempts` : "",
  ].filter(Boolean).join(" · ");
  tip.style.left = `${Math.max(0, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
}

function zoom(factor, center) {
  show(center - (center - chart.from) * factor, center + (chart.to - center) * factor);
}

const keys = {
  ArrowLeft: () => show(chart.from - (chart.to - chart.from) * 0.2,
    chart.to - (chart.to - chart.from) * 0.2),
  ArrowRight: () => show(chart.from + (chart.to - chart.from) * 0.2,
    chart.to + (chart.to - chart.from) * 0.2),
  ArrowUp: () => choose(chart.neighbour(chart.chosen, -1)),
  ArrowDown: () => choose(chart.neighbour(chart.chosen, 1)),
  "+": () => zoom(0.8, (chart.from + chart.to) / 2),
  "-": () => zoom(1.25, (chart.from + chart.to) / 2),
  Home: () => show(0, spans.duration),
  Enter: () => choose(chart.chosen, true),
};

function listen() {
  const bars = part("bars");
  let pressed = null;
  bars.addEventListener("pointerdown", (event) => {
    pressed = event.offsetX;
    bars.setPointerCapture(event.pointerId);
  });
  bars.addEventListener("pointerup", (event) => {
    const from = pressed;
    pressed = null;
    if (from !== null && Math.abs(event.offsetX - from) > 6) {
      show(chart.time(Math.min(from, event.offsetX)), chart.time(Math.max(from, event.offsetX)));
    } else {
      const row = chart.rowAt(event.offsetY);
      const undo = chart.undoAt(event.offsetX, event.offsetY);
      if (undo) choose(undo.span);
      else if (row && row.hidden) toggle(row.group);
      else choose(chart.at(event.offsetX, event.offsetY));
    }
  });
  bars.addEventListener("pointermove", showTip);
  bars.addEventListener("pointerleave", () => { part("tip").hidden = true; });
  bars.addEventListener("dblclick", () => show(0, spans.duration));
  bars.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, chart.time(event.offsetX));
  }, { passive: false });
  bars.addEventListener("keydown", (event) => {
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
  part("overview").addEventListener("click", (event) => {
    const time = (event.offsetX - chart.left) / (chart.width - chart.left - RIGHT) * spans.duration;
    const half = (chart.to - chart.from) / 2;
    show(time - half, time + half);
  });
  part("scroll").addEventListener("scroll", () => requestAnimationFrame(() => chart.draw()));
  part("whole").addEventListener("click", () => show(0, spans.duration));
  part("find").addEventListener("input", (event) => find(event.target.value));
  part("mode").addEventListener("change", (event) => setMode(event.target.value));
  window.addEventListener("resize", () => {
    showPath(spans.run);
    chart.draw();
  });
  window.addEventListener("hashchange", () => {
    for (const name of [...view.keys()]) view.delete(name);
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) view.set(name, value);
    start();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    chart.colors = colors();
    chart.draw();
  });
}

// A number of the address, or `otherwise`.
function number(name, otherwise) {
  const value = Number.parseFloat(view.get(name));
  return Number.isFinite(value) ? value : otherwise;
}

// Shows what the address says.
function start() {
  const count = page.runs.length;
  showRun(Math.max(0, Math.min(count - 1, Math.trunc(number("run", 0)))));
  chart.opened = new Set((view.get("open") || "").split(".").filter(Boolean).map(Number));
  part("mode").value = view.get("mode") === "rows" ? "rows" : "lanes";
  chart.setMode(part("mode").value);
  part("find").value = view.get("find") || "";
  chart.found = part("find").value ? spans.matches(part("find").value) : null;
  chart.show(number("from", 0), number("to", spans.duration));
  if (view.has("select")) choose(spans.find(view.get("select")));
}

if (page.runs.length > 0) {
  listen();
  start();
  restorePlace();
} else {
  part("name").textContent = "Nothing was started";
  document.body.className = "empty";
}
const root = document.documentElement;
root.dataset.ops = page.runs.length > 0 ? spans.run.numbers.ops : 0;
root.dataset.failed = page.runs.length > 0 ? spans.run.numbers.failed : 0;
root.dataset.undone = page.runs.length > 0 ? spans.run.numbers.undone : 0;
root.dataset.kept = page.runs.length > 0 ? spans.run.numbers.kept : 0;
root.dataset.rows = page.runs.length > 0 ? chart.rows.list.length : 0;
root.dataset.ready = (performance.now() - began).toFixed(1);
if (page.stage === "live") page.live = new Live(page, performance.now() - began);
