// A live page: the file is written again while the script executes, so the page loads itself again. The user's
// view stays: the address has the view, the state of its entry in the history the rest.

class Live {
  // `page` is the data; `ready` says how long the page took to be ready, in milliseconds.
  constructor(page, ready) {
    this.page = page;
    this.loaded = Date.now() / 1000;
    this.typed = 0;
    this.isPressed = false;
    this.isPaused = Boolean(history.state && history.state.isPaused);
    // Loading takes at most a tenth of the browser's time.
    this.shortest = Math.max(2, page.every, ready / 100);
    const button = document.getElementById("pause");
    button.addEventListener("click", () => {
      this.isPaused = !this.isPaused;
      this.show();
    });
    addEventListener("pointerdown", () => { this.isPressed = true; });
    for (const end of ["pointerup", "pointercancel"]) {
      addEventListener(end, () => { this.isPressed = false; });
    }
    addEventListener("keydown", () => { this.typed = Date.now() / 1000; });
    document.getElementById("live").hidden = false;
    this.show();
    setInterval(() => this.tick(), 250);
  }

  // How old the page is, in seconds.
  get age() { return Math.max(0, Date.now() / 1000 - this.page.written); }

  // An open run is written again at least every 15 s, unless the script is busy.
  get isOld() { return this.age > 20 + 2 * this.page.every; }

  // How long the page waits until it loads itself, in seconds. The page of a script that was killed stays live:
  // it is loaded more and more seldom.
  get delay() { return Math.max(this.shortest, Math.min(60, this.age / 10)); }

  tick() {
    this.show();
    if (Date.now() / 1000 - this.loaded >= this.delay && !this.isBusy) this.reload();
  }

  // Whether the user would be disturbed, or doesn't look.
  get isBusy() {
    return this.isPaused || this.isPressed || document.hidden
      || Date.now() / 1000 - this.typed < 1 || !getSelection().isCollapsed;
  }

  show() {
    const old = Math.round(this.age);
    const age = old < 2 ? "now" : `${old < 120 ? `${old} s` : seconds(old)} ago`;
    const hint = this.isOld ? " – the script is busy, has no open run, or was killed" : "";
    const text = this.isPaused ? "paused" : "live";
    document.getElementById("age").textContent = `● ${text} · written ${age}${hint}`;
    document.getElementById("live").className = this.isOld ? "old" : "";
    document.getElementById("pause").textContent = this.isPaused ? "continue" : "pause";
  }

  reload() {
    const focused = document.activeElement;
    history.replaceState({
      isPaused: this.isPaused, y: scrollY, rows: document.getElementById("scroll").scrollTop,
      summary: document.getElementById("summary").scrollTop, sortedBy,
      focused: focused ? focused.id : "", caret: focused ? focused.selectionStart : null,
    }, "");
    location.reload();
  }
}

// Shows what a reload has left.
function restorePlace() {
  const { state } = history;
  if (!state) return;
  document.getElementById("scroll").scrollTop = state.rows;
  document.getElementById("summary").scrollTop = state.summary;
  const focused = state.focused && document.getElementById(state.focused);
  if (focused) {
    focused.focus({ preventScroll: true });
    if (focused.setSelectionRange && typeof state.caret === "number") {
      focused.setSelectionRange(state.caret, state.caret);
    }
  }
  scrollTo(0, state.y);
}
