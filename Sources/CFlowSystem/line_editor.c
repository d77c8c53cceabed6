// The declarations of the readline interface that the editor uses are here, so that no header of a
// library is needed. libedit lacks some: each is looked up separately, and the editor works without
// it.
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

typedef char **completion_function(const char *, int, int);

/// The functions and variables of the library; NULL for those it lacks.
static struct {
  int (*initialize)(void);
  void (*handler_install)(const char *, void (*)(char *));
  void (*handler_remove)(void);
  void (*read_char)(void);
  void (*sigcleanup)(void);
  void (*free_line_state)(void);
  int (*forced_update_display)(void);
  void (*redisplay)(void);
  void (*resize_terminal)(void);
  void (*set_screen_size)(int rows, int columns);
  int (*insert_text)(const char *);
  void (*replace_line)(const char *, int);
  int (*bind_keyseq)(const char *, int (*)(int, int));
  int (*variable_bind)(const char *, const char *);
  char *(*variable_value)(const char *);
  void (*add_history)(const char *);
  void (*using_history)(void);
  char **line_buffer;
  int *point;
  int *end;
  int *catch_signals;
  int *catch_sigwinch;
  int *attempted_completion_over;
  int *completion_append_character;
  const char **basic_quotes;
  const char **readline_name;
  const char **break_characters;
  char *(**break_hook)(void);
  completion_function **attempted_completion;
  FILE **outstream;
  int (**getc_function)(FILE *);
} rl;

static flowsystem_editor_callbacks callbacks;
static bool is_gnu;
/// Whether this module tells the library which text was pasted.
static bool marks_pastes;

static bool look_up(void *library) {
  struct {
    void *to;
    const char *name;
    bool is_needed;
  } symbols[] = {
      {&rl.initialize, "rl_initialize", true},
      {&rl.handler_install, "rl_callback_handler_install", true},
      {&rl.handler_remove, "rl_callback_handler_remove", true},
      {&rl.read_char, "rl_callback_read_char", true},
      {&rl.forced_update_display, "rl_forced_update_display", true},
      {&rl.line_buffer, "rl_line_buffer", true},
      {&rl.point, "rl_point", true},
      {&rl.end, "rl_end", true},
      {&rl.outstream, "rl_outstream", true},
      {&rl.add_history, "add_history", true},
      {&rl.using_history, "using_history", true},
      {&rl.sigcleanup, "rl_callback_sigcleanup", false},
      {&rl.free_line_state, "rl_free_line_state", false},
      {&rl.redisplay, "rl_redisplay", false},
      {&rl.resize_terminal, "rl_resize_terminal", false},
      {&rl.set_screen_size, "rl_set_screen_size", false},
      {&rl.insert_text, "rl_insert_text", false},
      {&rl.replace_line, "rl_replace_line", false},
      {&rl.getc_function, "rl_getc_function", false},
      {&rl.bind_keyseq, "rl_bind_keyseq", false},
      {&rl.variable_bind, "rl_variable_bind", false},
      {&rl.variable_value, "rl_variable_value", false},
      {&rl.catch_signals, "rl_catch_signals", false},
      {&rl.catch_sigwinch, "rl_catch_sigwinch", false},
      {&rl.attempted_completion_over, "rl_attempted_completion_over", false},
      {&rl.completion_append_character, "rl_completion_append_character", false},
      {&rl.basic_quotes, "rl_basic_quote_characters", false},
      {&rl.readline_name, "rl_readline_name", false},
      {&rl.break_characters, "rl_completer_word_break_characters", false},
      {&rl.break_hook, "rl_completion_word_break_hook", false},
      {&rl.attempted_completion, "rl_attempted_completion_function", false},
  };
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *found = dlsym(library, symbols[i].name);
    if (found == NULL && symbols[i].is_needed) return false;
    memcpy(symbols[i].to, &found, sizeof found);
  }
  return true;
}

// MARK: - Signals

static volatile sig_atomic_t needs_redraw;
static volatile sig_atomic_t was_resized;

static void at_exit(void) {
  flowsystem_restore_terminal();
  flowsystem_return_terminal();
}

static void on_resize(int number) {
  (void)number;
  int problem = errno;
  was_resized = 1;
  flowsystem_wake_loop();
  errno = problem;
}

/// The process continues, whatever has paused it. In the background, setting the modes pauses it
/// again.
static void on_continue(int number) {
  (void)number;
  int problem = errno;
  if (flowsystem_retake_terminal()) {
    needs_redraw = 1;
    flowsystem_wake_loop();
  }
  errno = problem;
}

// MARK: - Output while a line is edited

// The output that removes the line from the screen waits in the buffers of stdout and stderr,
// before any other output. If there is none, it is discarded: nothing flickers.

enum { REMOVAL_SIZE = 32 };
static char removal[REMOVAL_SIZE];
static size_t removal_length;
static const char short_removal[] = "\r\033[J";
static bool awaits_output;
static char *own_prompt;

/// The prompt, or a standard one when there was no memory for it.
static const char *shown_prompt(void) { return own_prompt != NULL ? own_prompt : "> "; }

/// The row of the cursor, counted from the first row of the prompt.
static int cursor_row(void) {
  int columns, rows;
  flowsystem_terminal_size(&columns, &rows);
  int row = 0, column = 0;
  const char *texts[] = {shown_prompt(), *rl.line_buffer};
  for (int i = 0; i < 2; i++) {
    const char *text = texts[i] != NULL ? texts[i] : "";
    size_t left = strlen(text);
    if (i == 1 && *rl.point >= 0 && (size_t)*rl.point < left) left = (size_t)*rl.point;
    mbstate_t state = {0};
    while (left > 0) {
      wchar_t character = 0;
      size_t length = mbrtowc(&character, text, left, &state);
      int width = 1;
      if (length == (size_t)-1 || length == (size_t)-2 || length == 0) {
        length = 1;
        // A byte that is no character is shown as \ooo.
        width = 4;
        memset(&state, 0, sizeof state);
      } else if (character == L'\n') {
        row += 1;
        column = width = 0;
      } else if (character == L'\t') {
        width = 8 - column % 8;
      } else {
        width = wcwidth(character);
        if (width < 0) width = 2;
      }
      text += length;
      left -= length;
      if (column + width > columns) {
        row += 1;
        column = 0;
      }
      column += width;
      if (column >= columns) {
        row += 1;
        column -= columns;
      }
    }
  }
  return row;
}

/// Tells the library the size of the terminal. Its own arithmetic overflows when the width jumps between extremes.
static void adopt_size(bool is_new) {
  enum { NARROWEST = 10, WIDEST = 1000 };
  int columns, rows;
  flowsystem_terminal_size(&columns, &rows);
  bool is_usual = columns >= NARROWEST && columns <= WIDEST;
  if (is_usual && is_new && rl.resize_terminal != NULL) rl.resize_terminal();
  if (is_usual || rl.set_screen_size == NULL) return;
  rl.set_screen_size(rows, columns < NARROWEST ? NARROWEST : WIDEST);
  needs_redraw = 1;
}

/// Whether a stream's buffer contains exactly these bytes.
static bool holds_only(FILE *stream, const char *bytes, size_t count) {
  return __fpending(stream) == count && memcmp(stream->_IO_write_base, bytes, count) == 0;
}

void flowsystem_editor_await_output(void) {
  if (awaits_output || !flowsystem_has_terminal()) return;
  int row = cursor_row();
  if (row > 0) {
    snprintf(removal, sizeof removal, "\r\033[%dA\033[J", row);
  } else {
    memcpy(removal, short_removal, sizeof short_removal);
  }
  removal_length = strlen(removal);
  fflush(stdout);
  // A script may have removed the buffer.
  if (__fbufsize(stdout) > REMOVAL_SIZE) fwrite(removal, 1, removal_length, stdout);
  // The second stream to print must not remove the output of the first.
  fwrite(short_removal, 1, sizeof short_removal - 1, stderr);
  awaits_output = true;
}

void flowsystem_editor_settle_output(void) {
  if (awaits_output) {
    awaits_output = false;
    bool is_buffered = __fbufsize(stdout) > REMOVAL_SIZE;
    bool is_silent = !is_buffered || holds_only(stdout, removal, removal_length);
    if (is_silent && is_buffered) __fpurge(stdout);
    if (holds_only(stderr, short_removal, sizeof short_removal - 1)) __fpurge(stderr);
    else is_silent = false;
    if (!is_silent) {
      fflush(stderr);
      flowsystem_editor_begin_line();
      needs_redraw = 1;
    }
  }
  if (was_resized && flowsystem_has_terminal()) {
    was_resized = 0;
    adopt_size(true);
  }
  if (needs_redraw && flowsystem_has_terminal()) {
    needs_redraw = 0;
    rl.forced_update_display();
    fflush(*rl.outstream);
  }
}

void flowsystem_editor_begin_line(void) {
  // This many spaces leave the cursor in its line only when it was at the start of it.
  int columns, rows;
  flowsystem_terminal_size(&columns, &rows);
  fprintf(stdout, "%*s\r\033[J", columns - 1, "");
  fflush(stdout);
}

/// Sets whether output to stderr waits for the end of its line.
static void hold_errors(bool holds) {
  static char buffer[BUFSIZ];
  fflush(stderr);
  setvbuf(stderr, holds ? buffer : NULL, holds ? _IOLBF : _IONBF, holds ? sizeof buffer : 0);
}

// MARK: - The locale

/// Whether a locale has no characters beyond ASCII.
static bool is_bare(const char *locale) {
  return locale == NULL || strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0;
}

/// Whether UTF-8 replaces a locale without a character set.
static bool replaces_locale;

/// Calls the library, which reads the locale from the environment itself, with the locale set that
/// it is to find there.
static void call_with_locale(void (*body)(void)) {
  const char *own = getenv("LC_ALL");
  char *kept = own != NULL ? flowsystem_copy_text(own, strlen(own)) : NULL;
  // A value that can't be saved isn't replaced.
  if (!replaces_locale || (own != NULL && kept == NULL)) {
    free(kept);
    body();
    return;
  }
  setenv("LC_ALL", "C.UTF-8", 1);
  body();
  if (kept != NULL) setenv("LC_ALL", kept, 1);
  else unsetenv("LC_ALL");
  free(kept);
}

static void initialize(void) { rl.initialize(); }

// MARK: - Room for the line

// libedit's `rl_line_buffer` is the address of a copy of its line, which libedit moves when a longer line needs it, and
// writes to at its old address: only when the line itself gets a larger buffer is the address read again. So the copy is
// made large before a line is long.

/// How many bytes of a line the copy has room for.
static size_t room;

/// Makes room for a line of this many bytes. Without memory there is as much as before.
static void make_room(size_t length) {
  enum { LEAST = 16 << 10 };
  if (is_gnu || rl.insert_text == NULL || rl.replace_line == NULL || *rl.line_buffer == NULL
      || length <= room)
    return;
  size_t wanted = length < LEAST ? LEAST : 2 * length;
  char *line = flowsystem_copy_text(*rl.line_buffer, strlen(*rl.line_buffer));
  char *filler = flowsystem_resize(NULL, wanted + 1);
  if (line != NULL && filler != NULL) {
    size_t point = *rl.point > 0 ? (size_t)*rl.point : 0;
    memset(filler, 'x', wanted);
    filler[wanted] = 0;
    // The line's buffer grows by factors: one of these texts is the first that it has no room for.
    for (int i = 0; i < 32 && strlen(*rl.line_buffer) < wanted; i++) rl.insert_text(filler);
    if (strlen(*rl.line_buffer) >= wanted) room = wanted;
    // The bytes after the line in its buffer are copied, too, up to a NUL: this text leaves one where the room
    // ends.
    rl.replace_line(filler, 0);
    // The cursor stays within the line: the first part has it at its end.
    if (point < strlen(line)) {
      char next = line[point];
      line[point] = 0;
      rl.replace_line(line, 0);
      line[point] = next;
    }
    rl.replace_line(line, 0);
  }
  free(line);
  free(filler);
}

/// Makes room for more bytes of the line than it has.
static void make_room_beside(size_t added) {
  make_room((*rl.end > 0 ? (size_t)*rl.end : 0) + added);
}

// MARK: - Editing

/// The most bytes that one key may add to a line: a completion, or a word of the history.
enum { MOST_OF_A_KEY = 4096 };

static void leave(void) {
  flowsystem_return_terminal();
  rl.handler_remove();
  if (marks_pastes) {
    flowsystem_request_paste_marks(false);
    flowsystem_write_plainly("\r", 1);
  }
  fflush(*rl.outstream);
  hold_errors(false);
  flowsystem_lend_terminal(false);
}

/// Whether the library ends the line itself after Ctrl-D, as it does when it recognizes pasted
/// text.
static bool ends_last_line(void) {
  if (!is_gnu || rl.variable_value == NULL) return false;
  const char *value = rl.variable_value("enable-bracketed-paste");
  return value != NULL && strcmp(value, "on") == 0;
}

static void on_line(char *line) {
  leave();
  if (line == NULL && !ends_last_line()) flowsystem_write_plainly("\n", 1);
  callbacks.line(callbacks.context, line);
  free(line);
}

static void install(void) { rl.handler_install(shown_prompt(), on_line); }

void flowsystem_editor_begin(const char *prompt) {
  free(own_prompt);
  own_prompt = flowsystem_copy_text(prompt, strlen(prompt));
  fflush(stdout);
  // No status line is shown while there is a prompt.
  flowsystem_lend_terminal(true);
  hold_errors(true);
  // Taken from here on, because a signal may arrive as soon as the prompt is shown.
  flowsystem_take_terminal();
  if (marks_pastes) flowsystem_request_paste_marks(true);
  call_with_locale(install);
  fflush(*rl.outstream);
  flowsystem_adopt_modes();
  needs_redraw = 0;
}

void flowsystem_editor_insert(const char *text) {
  if (!flowsystem_has_terminal() || rl.insert_text == NULL) return;
  make_room_beside(strlen(text));
  rl.insert_text(text);
  if (is_gnu && rl.redisplay != NULL) rl.redisplay();
  else rl.forced_update_display();
  fflush(*rl.outstream);
}

void flowsystem_editor_drop(void) {
  if (!flowsystem_has_terminal()) return;
  if (is_gnu && rl.redisplay != NULL) {
    *rl.point = *rl.end;
    rl.redisplay();
    fflush(*rl.outstream);
  }
  flowsystem_write_plainly("^C\n", 3);
  if (is_gnu && rl.free_line_state != NULL) rl.free_line_state();
  if (rl.sigcleanup != NULL) rl.sigcleanup();
  leave();
}

/// Moves the cursor to the start of the prompt, and clears the screen from there on.
static void remove_line(void) {
  int row = cursor_row();
  if (row > 0) fprintf(*rl.outstream, "\r\033[%dA\033[J", row);
  else fputs(short_removal, *rl.outstream);
}

/// Reads the input, for a library that can't recognize pasted text.
static void read_keys_and_pastes(void) {
  switch (flowsystem_read_input()) {
  case FLOWSYSTEM_END: on_line(NULL); return;
  case FLOWSYSTEM_PART: return;
  case FLOWSYSTEM_LOST: flowsystem_write_plainly("\a", 1); return;
  case FLOWSYSTEM_KEYS:
    do {
      make_room_beside(MOST_OF_A_KEY);
      rl.read_char();
    } while (flowsystem_has_terminal() && flowsystem_holds_keys());
    break;
  case FLOWSYSTEM_PASTE:
    remove_line();
    make_room_beside(strlen(flowsystem_pasted_text()));
    rl.insert_text(flowsystem_pasted_text());
    rl.forced_update_display();
  }
  fflush(*rl.outstream);
}

void flowsystem_editor_read(void) {
  if (!flowsystem_has_terminal()) return;
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  if (poll(&input, 1, 0) <= 0) return;
  if ((input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
    on_line(NULL);
  } else if (marks_pastes) {
    read_keys_and_pastes();
  } else {
    rl.read_char();
    fflush(*rl.outstream);
  }
}

// MARK: - Completion

static char **matches;
static size_t match_count, match_capacity;
/// Whether there was no memory for one of them.
static bool is_match_lost;

void flowsystem_editor_add_match(const char *match) {
  // Room for the common prefix at the start and NULL at the end.
  if (match_count + 3 > match_capacity) {
    size_t capacity = match_capacity == 0 ? 64 : match_capacity * 2;
    char **grown = flowsystem_resize(matches, capacity * sizeof *grown);
    if (grown == NULL) {
      is_match_lost = true;
      return;
    }
    matches = grown;
    match_capacity = capacity;
  }
  char *copy = flowsystem_copy_text(match, strlen(match));
  if (copy != NULL) matches[++match_count] = copy;
  else is_match_lost = true;
}

/// Returns the common prefix of all matches; NULL without memory.
static char *copy_common_prefix(void) {
  size_t common = strlen(matches[1]);
  for (size_t i = 2; i <= match_count; i++) {
    size_t same = 0;
    while (same < common && matches[i][same] == matches[1][same]) same += 1;
    common = same;
  }
  return flowsystem_copy_text(matches[1], common);
}

static char **complete(const char *text, int start, int end) {
  (void)text;
  if (rl.attempted_completion_over != NULL) *rl.attempted_completion_over = 1;
  if (rl.completion_append_character != NULL) *rl.completion_append_character = 0;
  matches = NULL;
  match_count = match_capacity = 0;
  is_match_lost = false;
  callbacks.complete(callbacks.context, *rl.line_buffer, (size_t)start, (size_t)end);
  // The common prefix of some of the matches may be longer than the one of all.
  char *common = match_count > 0 && !is_match_lost ? copy_common_prefix() : NULL;
  if (common == NULL) {
    for (size_t i = 1; i <= match_count; i++) free(matches[i]);
    free(matches);
    return NULL;
  }
  matches[0] = common;
  if (match_count == 1) {
    // A single match is the common prefix alone.
    free(matches[1]);
    match_count = 0;
  }
  matches[match_count + 1] = NULL;
  return matches;
}

static char *find_breaks(void) {
  return (char *)callbacks.breaks(
      callbacks.context, *rl.line_buffer, *rl.point > 0 ? (size_t)*rl.point : 0);
}

void flowsystem_editor_add_history(const char *entry) {
  // A key makes it the line.
  make_room(strlen(entry));
  rl.add_history(entry);
}

// MARK: - Opening

/// Alt-Enter: starts a new line of the chunk.
static int insert_line_break(int count, int key) {
  (void)count;
  (void)key;
  rl.insert_text("\n");
  return 0;
}

/// Lets Ctrl-X end a search, unless the user has chosen what does: a sequence of keys that isn't bound would crash the
/// library there, when it gets the keys one by one.
static void avoid_open_search(void) {
  const char *name = "isearch-terminators";
  if (!is_gnu || rl.variable_bind == NULL || rl.variable_value == NULL) return;
  if (rl.variable_value(name) == NULL) rl.variable_bind(name, "\\e\\C-j\\C-x");
}

bool flowsystem_editor_open(const char *library, const flowsystem_editor_callbacks *wanted) {
  const char *known[] = {"libreadline.so.8", "libreadline.so.7", "libedit.so.2"};
  void *opened = NULL;
  if (library != NULL) {
    opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  } else {
    for (size_t i = 0; i < sizeof known / sizeof *known && opened == NULL; i++)
      opened = dlopen(known[i], RTLD_NOW | RTLD_LOCAL);
  }
  if (opened == NULL || !look_up(opened)) return false;
  // The output of the editor doesn't go through the buffer of a script's output.
  int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
  FILE *screen = copy >= 0 ? fdopen(copy, "w") : NULL;
  if (screen == NULL) {
    if (copy >= 0) close(copy);
    return false;
  }
  *rl.outstream = screen;
  is_gnu = dlsym(opened, "rl_gnu_readline_p") != NULL && rl.sigcleanup != NULL;
  callbacks = *wanted;
  if (rl.catch_signals != NULL) *rl.catch_signals = 0;
  if (rl.catch_sigwinch != NULL) *rl.catch_sigwinch = 0;
  if (rl.readline_name != NULL) *rl.readline_name = "flowlua";
  marks_pastes = !is_gnu && rl.getc_function != NULL && rl.insert_text != NULL;
  flowsystem_use_paste_marks(is_gnu || marks_pastes);
  if (marks_pastes) *rl.getc_function = flowsystem_next_character;
  if (is_gnu && rl.variable_bind != NULL) rl.variable_bind("enable-bracketed-paste", "on");
  replaces_locale = is_bare(setlocale(LC_CTYPE, "")) && setlocale(LC_CTYPE, "C.UTF-8") != NULL;
  call_with_locale(initialize);
  make_room(1);
  adopt_size(false);
  avoid_open_search();
  rl.using_history();
  // Without this the keys of a line are read one by one, by the file that reads them.
  if (is_gnu && rl.bind_keyseq != NULL && rl.insert_text != NULL) {
    rl.bind_keyseq("\\e\\C-m", insert_line_break);
    rl.bind_keyseq("\\e\\C-j", insert_line_break);
  }
  // A folder or a part of a module's name isn't the end of the string: no quote is added.
  if (is_gnu && rl.basic_quotes != NULL) *rl.basic_quotes = "";
  if (rl.attempted_completion != NULL) *rl.attempted_completion = complete;
  if (rl.break_hook != NULL) *rl.break_hook = find_breaks;
  atexit(at_exit);
  flowsystem_catch_unless_taken(SIGWINCH, on_resize);
  flowsystem_catch_pauses();
  flowsystem_catch_unless_taken(SIGCONT, on_continue);
  flowsystem_catch_unless_taken(SIGHUP, flowsystem_end_by_signal);
  flowsystem_catch_quit();
  return true;
}
