// The spans of one run: columns of numbers, as the page's data has them, made readable.
//
// A span is a number from 0 on; 0 is the run itself, and each one comes after its parent. Times are seconds
// since the run's start.

// This file is the first of the page's script.
"use strict";

const OP = 0, GROUP = 2;
const RUNNING = 0, SUCCEEDED = 1, FAILED = 2, KEPT = 4;
const STATES = ["running", "succeeded", "failed", "cancelled", "kept"];

class Spans {
  constructor(run) {
    const columns = run.spans;
    this.run = run;
    this.count = columns.name.length;
    this.duration = Math.max(run.duration, 1e-6);
    this.name = Spans.sums(columns.name);
    this.index = Spans.sums(columns.index);
    this.parent = Spans.sums(columns.parent);
    this.kind = Uint8Array.from(columns.kind);
    this.state = Uint8Array.from(columns.state);
    this.lane = Int32Array.from(columns.lane);
    // The names of those that aren't workers of the program itself.
    this.lanes = columns.lanes;
    const starts = Spans.sums(columns.start);
    this.start = new Float64Array(this.count);
    this.end = new Float64Array(this.count);
    for (let i = 0; i < this.count; i++) {
      this.start[i] = starts[i] / 1e6;
      // A span that hasn't ended lasts until now.
      const length = columns.length[i];
      this.end[i] = length < 0 ? this.duration : this.start[i] + length / 1e6;
    }
    this.attempts = new Map();
    for (const [span, ...attempt] of run.attempts) {
      if (!this.attempts.has(span)) this.attempts.set(span, []);
      const [start, length, failed, delay, message] = attempt;
      this.attempts.get(span).push({
        start: start / 1e6, end: (start + length) / 1e6, failed: failed === 1,
        next: (start + length + delay) / 1e6, delay: delay / 1e6, message,
      });
    }
    this.works = new Map();
    for (const [span, start, length, failed, title, ending] of run.works) {
      if (!this.works.has(span)) this.works.set(span, []);
      this.works.get(span).push({
        start: start / 1e6, end: length < 0 ? this.duration : (start + length) / 1e6,
        failed: failed === 1, title, ending,
      });
    }
    for (const works of this.works.values()) works.sort((a, b) => a.start - b.start);
    // The waits for limits before the start.
    this.queues = new Map();
    for (const [span, time, text] of run.queues) this.queues.set(span, { time: time / 1e6, text });
    // The steps of graphs before each one, and after it, with the keys that they give.
    this.before = new Map();
    this.after = new Map();
    for (const [from, to, key] of run.edges) {
      const name = key < 0 ? "" : run.names[key];
      for (const [all, span, other] of [[this.before, to, from], [this.after, from, to]]) {
        if (!all.has(span)) all.set(span, new Map());
        const keys = all.get(span);
        if (!keys.has(other)) keys.set(other, []);
        if (name) keys.get(other).push(name);
      }
    }
    this.undos = run.undos.map(([span, start, length, state, name, message]) => ({
      span, start: start / 1e6, end: length < 0 ? this.duration : (start + length) / 1e6,
      state, name, message,
    }));
    this.undosOf = new Map();
    for (const undo of this.undos) {
      if (!this.undosOf.has(undo.span)) this.undosOf.set(undo.span, []);
      this.undosOf.get(undo.span).push(undo);
    }
    this.findChildren();
  }

  // Each number of a column is the difference to the one before: short in text.
  static sums(differences) {
    const all = new Float64Array(differences.length);
    let sum = 0;
    for (let i = 0; i < all.length; i++) all[i] = sum += differences[i];
    return all;
  }

  laneName(lane) { return this.lanes[lane] || `worker ${lane}`; }

  findChildren() {
    this.children = new Map();
    for (let i = 1; i < this.count; i++) {
      const siblings = this.children.get(this.parent[i]);
      if (siblings) siblings.push(i);
      else this.children.set(this.parent[i], [i]);
    }
  }

  childrenOf(span) { return this.children.get(span) || []; }

  label(span) { return this.run.labels[span] || ""; }

  // `UploadOp #7 cat.png`
  title(span) {
    const index = this.index[span] > 0 ? ` #${this.index[span]}` : "";
    const label = this.label(span);
    return this.run.names[this.name[span]] + index + (label ? ` ${label}` : "");
  }

  // `publish/ShardsOp #2/CountOp #1`
  path(span) {
    const parts = [];
    for (let at = span; at >= 0; at = this.parent[at]) {
      if (this.kind[at] !== GROUP) parts.unshift(this.title(at));
    }
    return parts.join("/");
  }

  message(span) { return this.run.messages[span] || ""; }

  // `undo UploadOp #7`
  undoTitle(undo) { return `undo ${undo.name || this.title(undo.span)}`; }

  // How long an item waited from its group's start to its own, or another op for limits.
  queued(span) {
    const parent = this.parent[span];
    if (parent < 0 || this.kind[parent] !== GROUP) return this.queues.get(span)?.time || 0;
    return Math.max(0, this.start[span] - this.start[parent]);
  }

  // The span with a name such as `UploadOp-31`, or a number; -1 without one.
  find(text) {
    if (/^\d+$/.test(text)) return Number(text) < this.count ? Number(text) : -1;
    const [, name, index] = /^(.*?)(?:-(\d+))?$/s.exec(text);
    const wanted = this.run.names.indexOf(name);
    for (let i = 0; i < this.count; i++) {
      if (this.name[i] === wanted && this.index[i] === Number(index || 0)) return i;
    }
    return -1;
  }

  // The text by which `find` finds a span.
  key(span) {
    const name = this.run.names[this.name[span]];
    const text = this.index[span] > 0 ? `${name}-${this.index[span]}` : name;
    return this.find(text) === span ? text : String(span);
  }

  // Which spans have a text in their name, index, label or message.
  matches(text) {
    const wanted = text.toLowerCase();
    const found = new Uint8Array(this.count);
    const ofName = this.run.names.map((name) => name.toLowerCase().includes(wanted));
    for (let i = 0; i < this.count; i++) {
      found[i] = ofName[this.name[i]]
        || `${this.title(i)} ${this.message(i)}`.toLowerCase().includes(wanted) ? 1 : 0;
    }
    return found;
  }

  // How many ops and undos execute at once, on average in each of `count` equal parts of the run's time.
  concurrency(count) {
    const share = this.duration / count;
    const whole = new Float64Array(count + 1);
    const part = new Float64Array(count);
    const add = (start, end) => {
      const from = Math.min(count - 1, Math.floor(start / share));
      const to = Math.min(count - 1, Math.floor(end / share));
      if (from === to) {
        part[from] += (end - start) / share;
        return;
      }
      part[from] += from + 1 - start / share;
      part[to] += end / share - to;
      whole[from + 1] += 1;
      whole[to] -= 1;
    };
    for (let i = 0; i < this.count; i++) {
      if (this.kind[i] !== OP) continue;
      // Between its attempts it doesn't execute.
      const attempts = this.attempts.get(i);
      if (attempts) for (const attempt of attempts) add(attempt.start, attempt.end);
      else add(this.start[i], this.end[i]);
    }
    for (const undo of this.undos) add(undo.start, undo.end);
    let running = 0;
    for (let k = 0; k < count; k++) {
      running += whole[k];
      part[k] += running;
    }
    return part;
  }
}

// `2.54 s`, `217 ms`, `3 min 20 s`
function seconds(time) {
  if (time >= 3600) return `${Math.floor(time / 3600)} h ${Math.floor(time / 60) % 60} min`;
  if (time >= 120) return `${Math.floor(time / 60)} min ${Math.floor(time) % 60} s`;
  if (time >= 100) return `${time.toFixed(0)} s`;
  if (time >= 1) return `${time.toFixed(2)} s`;
  if (time >= 0.01) return `${(time * 1e3).toFixed(0)} ms`;
  if (time >= 0.001) return `${(time * 1e3).toFixed(1)} ms`;
  return `${(time * 1e6).toFixed(0)} µs`;
}
