// The timeline's two canvases: how many ops execute at once, and the rows of bars.

const ROW = 20, AXIS = 26, RIGHT = 8;

class Chart {
  constructor(spans, colors) {
    this.spans = spans;
    this.colors = colors;
    this.bars = document.getElementById("bars");
    this.overview = document.getElementById("overview");
    this.scroll = document.getElementById("scroll");
    this.tall = document.getElementById("tall");
    this.from = 0;
    this.to = spans.duration;
    this.chosen = -1;
    this.found = null;
    this.opened = new Set();
    this.setMode("lanes");
  }

  setMode(mode) {
    this.mode = mode;
    this.rows = new Rows(this.spans, mode, this.opened);
  }

  // Shows all lanes of a group, or the first ones again.
  toggle(group) {
    if (!this.opened.delete(group)) this.opened.add(group);
    this.setMode(this.mode);
  }

  // Shows the time from `from` to `to`, as far as the run has it.
  show(from, to) {
    const whole = this.spans.duration;
    const width = Math.min(whole, Math.max(to - from, whole * 1e-7, 1e-6));
    this.from = Math.max(0, Math.min(from, whole - width));
    this.to = this.from + width;
    this.draw();
  }

  // The place of a time, and the time of a place.
  x(time) {
    return this.left + (time - this.from) / (this.to - this.from) * (this.width - this.left - RIGHT);
  }

  time(x) {
    return this.from + (x - this.left) / (this.width - this.left - RIGHT) * (this.to - this.from);
  }

  // Makes a canvas as wide as its place, in the pixels of the screen.
  static prepare(canvas, height) {
    const width = canvas.parentElement.clientWidth;
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.textBaseline = "middle";
    return { pen, width };
  }

  static font(pen, size, weight) {
    pen.font = `${weight || "400"} ${size}px system-ui, "DejaVu Sans", sans-serif`;
  }

  draw() {
    const all = AXIS + this.rows.list.length * ROW + 4;
    const height = Math.min(all, 460);
    this.tall.style.height = `${all}px`;
    this.scroll.style.height = `${height}px`;
    const { pen, width } = Chart.prepare(this.bars, height);
    this.pen = pen;
    this.width = width;
    this.left = Math.min(230, Math.round(width * 0.28));
    this.height = height;
    const top = this.scroll.scrollTop;
    const first = Math.max(0, Math.floor(top / ROW));
    const last = Math.min(this.rows.list.length, Math.ceil((top + height - AXIS) / ROW));
    for (let k = first; k < last; k++) this.drawText(this.rows.list[k], this.y(k));
    pen.save();
    pen.beginPath();
    pen.rect(this.left, 0, width - this.left, height);
    pen.clip();
    this.drawAxisLines();
    for (let k = first; k < last; k++) {
      this.drawRow(this.rows.list[k], this.y(k));
      this.drawUndos(this.rows.undos.get(k) || [], this.y(k));
    }
    pen.restore();
    this.drawAxis();
    this.drawOverview();
  }

  // The top of a row on the canvas.
  y(row) { return AXIS + row * ROW - this.scroll.scrollTop; }

  drawText(row, y) {
    const { pen, colors } = this;
    if (row.isHead) {
      pen.fillStyle = colors.soft;
      pen.fillRect(0, y, this.width, ROW);
    }
    pen.fillStyle = row.span < 0 ? colors.quiet : colors.text;
    Chart.font(pen, 12, row.isHead ? "600" : "400");
    const x = 10 + Math.min(row.depth, 8) * 12;
    pen.fillText(this.fitting(row.text, this.left - x - 8), x, y + ROW / 2);
  }

  // The text as far as it fits.
  fitting(text, width) {
    const { pen } = this;
    if (text.length > 200) text = text.slice(0, 200);
    if (pen.measureText(text).width <= width) return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (pen.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
      else high = middle - 1;
    }
    return low > 0 ? `${text.slice(0, low)}…` : "";
  }

  // A round time between lines.
  step() {
    const about = (this.to - this.from) / Math.max(2, Math.floor((this.width - this.left) / 110));
    const power = 10 ** Math.floor(Math.log10(about));
    for (const factor of [1, 2, 5]) if (factor * power >= about) return factor * power;
    return 10 * power;
  }

  drawAxisLines() {
    const { pen } = this;
    const step = this.step();
    pen.fillStyle = this.colors.line;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      pen.fillRect(Math.round(this.x(t)), AXIS, 1, this.height);
    }
  }

  // Over the rows, which may be scrolled.
  drawAxis() {
    const { pen } = this;
    pen.fillStyle = this.colors.page;
    pen.fillRect(0, 0, this.width, AXIS - 4);
    pen.fillStyle = this.colors.quiet;
    Chart.font(pen, 12);
    pen.textAlign = "center";
    const step = this.step();
    const digits = Math.max(0, -Math.floor(Math.log10(step)));
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const text = step >= 1 ? `${t.toFixed(0)} s`
        : step >= 1e-3 ? `${(t * 1e3).toFixed(Math.max(0, digits - 3))} ms`
          : `${(t * 1e6).toFixed(Math.max(0, digits - 6))} µs`;
      pen.fillText(text, Math.min(this.x(t), this.width - 24), 11);
    }
    pen.textAlign = "left";
  }

  drawRow(row, y) {
    if (row.hidden) {
      for (const items of row.hidden) this.drawHidden(items, y);
    } else if (!row.items) {
      if (row.isHead) this.drawHead(row, y);
      else this.drawSpan(row.span, y);
    } else {
      this.drawLane(row.items, (item) => this.drawSpan(item, y));
    }
  }

  // Undos are over what their row has at that time. Of those that share a pixel one is drawn, and the failed ones.
  drawUndos(undos, y) {
    const { pen, spans, colors } = this;
    let drawnTo = -Infinity;
    for (const undo of undos) {
      if (undo.end < this.from || undo.start > this.to) continue;
      const isPlain = undo.state === SUCCEEDED && undo.span !== this.chosen;
      const from = this.x(undo.start);
      const width = Math.max(2, this.x(undo.end) - from);
      if (isPlain && from + width < drawnTo) continue;
      drawnTo = from + width + 1;
      pen.globalAlpha = this.found && !this.found[undo.span] ? 0.15 : 1;
      pen.fillStyle = [colors.chosen, colors.undo, colors.bad, colors.stopped][undo.state];
      pen.fillRect(from, y + 3, width, ROW - 6);
      // A failed span keeps the mark of an undo.
      pen.fillStyle = colors.undo;
      pen.fillRect(from, y + 3, width, 3);
      pen.fillRect(from, y + ROW - 6, width, 3);
      this.drawWorks(undo.span, y, undo);
      if (width > 3) {
        pen.fillStyle = colors.page;
        pen.fillRect(from + width - 0.5, y + 3, 0.5, ROW - 6);
      }
      Chart.font(pen, 11);
      pen.fillStyle = colors.onBar;
      const time = seconds(undo.end - undo.start);
      this.drawFitting([`${spans.undoTitle(undo)} ${time}`, spans.undoTitle(undo), "undo"], from, width, y);
      pen.globalAlpha = 1;
      if (undo.span === this.chosen) this.drawChosen(from, y + 1, width);
    }
  }

  // Of items that share a pixel with what is drawn already only the conspicuous ones are drawn.
  drawLane(items, drawItem) {
    const { spans } = this;
    const perPixel = (this.to - this.from) / (this.width - this.left);
    let drawnTo = -Infinity;
    for (let k = this.rows.firstIn(items, this.from); k < items.length; k++) {
      const item = items[k];
      if (spans.start[item] > this.to) break;
      const isPlain = (spans.state[item] === SUCCEEDED || spans.state[item] === KEPT)
        && !spans.attempts.has(item)
        && item !== this.chosen;
      if (isPlain && spans.end[item] < drawnTo) continue;
      drawItem(item);
      if (isPlain) drawnTo = Math.max(spans.end[item], spans.start[item] + perPixel);
    }
  }

  // Thin lines, one over the other: when anything was executed in the lanes of a closed row, and the failures.
  drawHidden(items, y) {
    const { pen, spans, colors } = this;
    this.drawLane(items, (item) => {
      const isPlain = spans.state[item] === SUCCEEDED || spans.state[item] === KEPT;
      pen.globalAlpha = this.found && !this.found[item] ? 0.15 : 1;
      pen.fillStyle = spans.state[item] === SUCCEEDED ? colors.okLight : this.color(item);
      const from = this.x(spans.start[item]);
      pen.fillRect(from, y + (isPlain ? 8 : 5), Math.max(1.2, this.x(spans.end[item]) - from), isPlain ? 4 : 10);
      pen.globalAlpha = 1;
    });
  }

  // A thin line for what has rows of its own.
  drawHead(row, y) {
    const { pen, spans, colors } = this;
    const from = this.x(spans.start[row.span]);
    const to = Math.max(from + 1, this.x(spans.end[row.span]));
    pen.fillStyle = spans.state[row.span] === FAILED ? colors.bad : colors.quiet;
    pen.fillRect(from, y + ROW / 2 - 1.5, to - from, 3);
    if (row.span === this.chosen) this.drawChosen(from, y + 3, to - from);
    const note = spans.message(row.span);
    if (!note) return;
    Chart.font(pen, 11);
    pen.fillStyle = colors.quiet;
    const isRight = to + 8 < this.width - 120;
    if (isRight) pen.fillText(this.fitting(note, this.width - to - 16), to + 8, y + ROW / 2);
  }

  color(span) {
    const { colors } = this;
    return [colors.chosen, colors.ok, colors.bad, colors.stopped, colors.kept][this.spans.state[span]];
  }

  drawSpan(span, y) {
    const { pen, spans, colors } = this;
    if (spans.end[span] < this.from || spans.start[span] > this.to) return;
    const from = this.x(spans.start[span]);
    // A kept op took no time.
    const least = spans.state[span] === KEPT ? 3 : 1.2;
    const width = Math.max(least, this.x(spans.end[span]) - from);
    pen.globalAlpha = this.found && !this.found[span] ? 0.15 : 1;
    if (this.mode === "rows") this.drawQueue(span, from, y);
    const attempts = spans.attempts.get(span);
    if (attempts) {
      for (const [k, attempt] of attempts.entries()) {
        const left = this.x(attempt.start);
        const right = Math.max(left + 1.2, this.x(attempt.end));
        const isLast = k === attempts.length - 1;
        pen.fillStyle = isLast && !attempt.delay ? this.color(span) : colors.again;
        pen.fillRect(left, y + 3, right - left, ROW - 6);
        if (attempt.delay > 0) {
          pen.fillStyle = colors.delay;
          pen.fillRect(right, y + 7, Math.max(0, this.x(attempt.next) - right), ROW - 14);
        }
      }
    } else {
      pen.fillStyle = this.color(span);
      pen.fillRect(from, y + 3, width, ROW - 6);
    }
    if (width > 3) this.drawWorks(span, y, { start: spans.start[span], end: spans.end[span] });
    // A line between neighbours.
    if (width > 3) {
      pen.fillStyle = colors.page;
      pen.fillRect(from + width - 0.5, y + 3, 0.5, ROW - 6);
    }
    // Beside the first delay there is no room for a text.
    const first = attempts && attempts[0].delay > 0 ? this.x(attempts[0].end) - from : width;
    if (first > 18) this.drawCaption(span, from, first, y);
    pen.globalAlpha = 1;
    if (span === this.chosen) this.drawChosen(from, y + 1, width);
  }

  // Programs and requests in a time: a line near the foot of the bar.
  drawWorks(span, y, within) {
    const { pen, colors } = this;
    for (const work of this.spans.works.get(span) || []) {
      if (work.start < within.start - 1e-6 || work.start > within.end) continue;
      const left = this.x(work.start);
      pen.fillStyle = work.failed ? colors.bad : colors.onBar;
      pen.fillRect(left, y + ROW - 6, Math.max(1, this.x(work.end) - left - 1), 1.5);
    }
  }

  drawQueue(span, from, y) {
    const queued = this.spans.queued(span);
    if (queued <= 0) return;
    const left = this.x(this.spans.start[span] - queued);
    this.pen.fillStyle = this.colors.queue;
    this.pen.fillRect(left, y + 8, from - left, 4);
  }

  drawCaption(span, from, width, y) {
    const { pen, spans } = this;
    Chart.font(pen, 11);
    pen.fillStyle = this.colors.onBar;
    const index = spans.index[span];
    const label = spans.label(span);
    const texts = index > 0
      ? [label ? `#${index} ${label}` : `#${index}`, `${index}`]
      : [seconds(spans.end[span] - spans.start[span])];
    this.drawFitting(texts, from, width, y);
  }

  // The first text that there is room for.
  drawFitting(texts, from, width, y) {
    const { pen } = this;
    const left = Math.max(from, this.left);
    const room = from + width - left - 6;
    const text = texts.find((one) => pen.measureText(one).width <= room);
    if (text) pen.fillText(text, left + 3, y + ROW / 2 + 0.5);
  }

  drawChosen(from, y, width) {
    const { pen } = this;
    pen.strokeStyle = this.colors.chosen;
    pen.lineWidth = 2;
    pen.strokeRect(from - 1, y, width + 2, ROW - 2);
  }

  drawOverview() {
    const { spans, colors } = this;
    const height = 46;
    const { pen, width } = Chart.prepare(this.overview, height);
    const count = Math.max(1, Math.floor(width - this.left - RIGHT));
    const running = spans.concurrency(count);
    const most = running.reduce((a, b) => Math.max(a, b), 1);
    Chart.font(pen, 12);
    pen.fillStyle = colors.quiet;
    const caption = `running at once (≤ ${Math.ceil(most - 0.01)})`;
    this.pen = pen;
    pen.fillText(this.fitting(caption, this.left - 16), 10, 23);
    pen.fillStyle = colors.okLight;
    for (let k = 0; k < count; k++) {
      const tall = (height - 8) * running[k] / most;
      pen.fillRect(this.left + k, height - 2 - tall, 1, tall);
    }
    pen.fillStyle = colors.bad;
    for (let i = 0; i < spans.count; i++) {
      if (spans.state[i] !== FAILED || spans.kind[i] !== OP) continue;
      pen.fillRect(this.left + spans.end[i] / spans.duration * count - 1, 0, 3, 8);
    }
    for (const undo of spans.undos) {
      if (undo.state !== FAILED) continue;
      pen.fillRect(this.left + undo.end / spans.duration * count - 1, 0, 3, 8);
    }
    if (this.to - this.from < spans.duration * 0.999) {
      pen.globalAlpha = 0.16;
      pen.fillStyle = colors.chosen;
      pen.fillRect(this.left + this.from / spans.duration * count, 0,
        Math.max(2, (this.to - this.from) / spans.duration * count), height);
      pen.globalAlpha = 1;
    }
  }

  // The row at a place of the canvas, if there is one.
  rowAt(y) {
    return y < AXIS ? undefined : this.rows.list[Math.floor((y - AXIS + this.scroll.scrollTop) / ROW)];
  }

  // The undo at a place of the canvas, if there is one.
  undoAt(x, y) {
    const row = y < AXIS || x < this.left ? -1 : Math.floor((y - AXIS + this.scroll.scrollTop) / ROW);
    const time = this.time(x);
    const near = (this.to - this.from) / (this.width - this.left) * 2;
    return (this.rows.undos.get(row) || [])
      .find((undo) => time >= undo.start - near && time <= undo.end + near);
  }

  // The span at a place of the canvas; -1 without one.
  at(x, y) {
    const { spans } = this;
    const row = this.rowAt(y);
    if (!row || row.hidden) return -1;
    if (x < this.left) return row.span;
    const time = this.time(x);
    const near = (this.to - this.from) / (this.width - this.left) * 3;
    if (!row.items) {
      const isIn = time >= spans.start[row.span] - near && time <= spans.end[row.span] + near;
      return isIn ? row.span : -1;
    }
    let best = -1, distance = Infinity;
    for (let k = this.rows.firstIn(row.items, time - near); k < row.items.length; k++) {
      const item = row.items[k];
      if (spans.start[item] > time + near) break;
      const from = Math.abs(time - (spans.start[item] + spans.end[item]) / 2);
      if (from < distance) [best, distance] = [item, from];
    }
    return best;
  }

  // Scrolls to the row of a span.
  reveal(span) {
    const y = this.rows.of[span] * ROW;
    const { scrollTop } = this.scroll;
    if (y < scrollTop || y > scrollTop + this.height - AXIS - ROW) {
      this.scroll.scrollTop = Math.max(0, y - this.height / 2);
    }
  }

  // The span `steps` after another among what has a bar, in the order of the rows.
  neighbour(span, steps) {
    const row = this.rows.list[this.rows.of[span]];
    if (row && row.items) {
      const next = row.items[row.items.indexOf(span) + steps];
      if (next !== undefined) return next;
    }
    let at = (row ? this.rows.of[span] : -1) + steps;
    // Arrows pass the row of an open group that closes it.
    while (this.rows.list[at] && this.rows.list[at].hidden && this.rows.list[at].hidden.length === 0) at += steps;
    const other = this.rows.list[at];
    if (!other) return -1;
    if (other.hidden) return other.hidden[0][0];
    return other.items ? other.items[steps > 0 ? 0 : other.items.length - 1] : other.span;
  }
}
