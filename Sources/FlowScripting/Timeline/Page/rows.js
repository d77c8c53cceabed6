// The rows of the timeline: which spans each shows.
//
// A row has a text, a depth, and either one span or, in a lane, many that don't overlap. A group of many lanes
// has the last ones in one row, until the user opens it.

// The most lanes of a group that isn't open.
const MOST_LANES = 12;

class Rows {
  // `opened` has the groups that show all of their lanes.
  constructor(spans, mode, opened) {
    this.spans = spans;
    this.opened = opened;
    this.isByItem = mode === "rows";
    this.list = [];
    // The row of each span.
    this.of = new Int32Array(spans.count).fill(-1);
    const parts = spans.childrenOf(0);
    // A run of one op has no other row.
    for (const span of parts.length > 0 ? parts : [0]) this.add(span, 0);
    // The undos in each row, in the order of their starts.
    this.undos = new Map();
    for (const undo of spans.undos) {
      const row = this.of[undo.span] < 0 ? 0 : this.of[undo.span];
      if (!this.undos.has(row)) this.undos.set(row, []);
      this.undos.get(row).push(undo);
    }
  }

  // The tree may be as deep as the script made it: no recursion.
  add(root, rootDepth) {
    const open = [[root, rootDepth]];
    while (open.length > 0) {
      const [span, depth] = open.pop();
      const children = this.spans.childrenOf(span);
      const isGroup = this.spans.kind[span] === GROUP;
      this.of[span] = this.list.length;
      this.list.push({
        text: isGroup ? this.groupTitle(span, children) : this.spans.title(span),
        depth, span, isHead: children.length > 0 && this.spans.kind[span] !== OP,
      });
      if (isGroup && !this.isByItem) {
        this.addLanes(span, children, depth + 1);
      } else {
        const order = isGroup
          ? [...children].sort((a, b) => this.spans.index[a] - this.spans.index[b]) : children;
        for (let k = order.length - 1; k >= 0; k--) open.push([order[k], depth + 1]);
      }
    }
  }

  // `ResizeOp × 48`
  groupTitle(span, items) {
    if (items.length === 0) return this.spans.title(span);
    const name = this.spans.name[items[0]];
    const isOneName = items.every((item) => this.spans.name[item] === name);
    const text = isOneName ? this.spans.run.names[name] : this.spans.title(span);
    return `${text} × ${items.length}`;
  }

  // Each worker has lanes of its own, the main thread has others. In each an item takes the first one that
  // is free.
  addLanes(group, items, depth) {
    const { start, end, lane } = this.spans;
    const lanesOf = new Map();
    for (const item of items) {
      if (!lanesOf.has(lane[item])) lanesOf.set(lane[item], []);
      const lanes = lanesOf.get(lane[item]);
      let free = lanes.find((list) => end[list[list.length - 1]] <= start[item] + 3e-6);
      if (!free) lanes.push(free = []);
      free.push(item);
    }
    const lanes = [...lanesOf.keys()].sort((a, b) => a - b).flatMap((worker) => lanesOf.get(worker)
      .map((list, k) => ({ list, text: worker > 0 && k === 0 ? this.spans.laneName(worker) : "" })));
    const isLong = lanes.length > MOST_LANES;
    const shown = isLong && !this.opened.has(group) ? MOST_LANES - 1 : lanes.length;
    for (const { list, text } of lanes.slice(0, shown)) {
      this.place(list);
      this.list.push({ text, depth, span: -1, items: list });
    }
    if (!isLong) return;
    const hidden = lanes.slice(shown).map(({ list }) => list);
    for (const list of hidden) this.place(list);
    const text = hidden.length > 0 ? `▸ ${hidden.length} more rows` : "▾ fewer rows";
    this.list.push({ text, depth, span: -1, hidden, group });
  }

  // The next row is for these items, and for the spans within them.
  place(items) {
    for (const item of items) this.of[item] = this.list.length;
    for (const item of items) this.cover(item);
  }

  // A span within an item has no row of its own in a lane.
  cover(item) {
    const open = [...this.spans.childrenOf(item)];
    while (open.length > 0) {
      const inner = open.pop();
      this.of[inner] = this.of[item];
      open.push(...this.spans.childrenOf(inner));
    }
  }

  // The group to open before an item has a row with a bar of its own; -1 if it has one.
  hides(span) {
    const row = this.list[this.of[span]];
    return row && row.hidden && row.hidden.length > 0 ? row.group : -1;
  }

  // The place of the first item of a lane that ends at a time or later.
  firstIn(items, time) {
    const { end } = this.spans;
    let low = 0, high = items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (end[items[middle]] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
