// Lines at the bottom of the terminal that show progress, and make way for all other output.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "internal.h"

// Guards all of these, except when a signal handler reads the first.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/// How many lines the status has. The cursor is at the start of the first one, not at the end of the last one: the
/// terminal shows keys where the cursor is, and an Enter there moves it within the status instead of scrolling all.
static atomic_int shown_lines;
/// The size of the terminal when the status was shown: the place of the cursor was saved for that one.
static atomic_int shown_columns, shown_rows;
/// Where the output ends: at the start of a line, within one, which the status would overwrite, or
/// where another program has left the cursor.
enum { AT_START, WITHIN_LINE, UNKNOWN };
static atomic_int output_end;
/// How many other programs use the terminal as this process does.
static atomic_int guests;
/// The bytes that are written at once.
static char *buffer;
static size_t capacity;

/// Room for the sequences around a status, and for those between two lines.
enum { MOVE_SIZE = 32, BREAK_SIZE = 8 };
static const char ERASE_LINE[] = "\x1b[K", ERASE_REST[] = "\x1b[J";
static const char SAVE_PLACE[] = "\x1b"
                                 "7",
                  RESTORE_PLACE[] = "\x1b"
                                    "8";

/// Writes all of it to stderr, bypassing its stream.
static void write_all(const char *bytes, size_t count) {
  while (count > 0) {
    ssize_t written = write(STDERR_FILENO, bytes, count);
    if (written <= 0) return;
    bytes += written;
    count -= (size_t)written;
  }
}

static size_t put(char *to, const char *bytes, size_t count) {
  memcpy(to, bytes, count);
  return count;
}

/// Puts the sequence that moves the cursor back to the start of the status; returns its length. Safe in a signal
/// handler.
static size_t put_return(char *to) {
  if (atomic_load(&shown_lines) == 0) return put(to, "\r", 1);
  int columns, rows;
  bool is_same = flowsystem_status_size(&columns, &rows) && columns == atomic_load(&shown_columns)
      && rows == atomic_load(&shown_rows);
  // A terminal of another size has moved the cursor with the text, but not the place that was saved.
  return is_same ? put(to, RESTORE_PLACE, sizeof RESTORE_PLACE - 1) : put(to, "\r", 1);
}

/// Puts the sequence that moves the cursor up to the start of a line; returns its length.
static size_t put_move(char *to, int up) {
  size_t length = 0;
  to[length++] = '\r';
  if (up <= 0) return length;
  to[length++] = '\x1b';
  to[length++] = '[';
  if (up > 99) up = 99;
  if (up > 9) to[length++] = (char)('0' + up / 10);
  to[length++] = (char)('0' + up % 10);
  to[length++] = 'A';
  return length;
}

/// Removes the lines. Safe in a signal handler.
static void erase(void) {
  char text[MOVE_SIZE + sizeof ERASE_REST];
  size_t length = put_return(text);
  length += put(text + length, ERASE_REST, sizeof ERASE_REST - 1);
  write_all(text, length);
}

/// Fills the buffer with what replaces the present lines; returns its length, 0 without memory.
static size_t fill(const char *text, size_t count, int lines) {
  size_t needed = MOVE_SIZE + count + (size_t)lines * BREAK_SIZE;
  if (needed > capacity) {
    char *grown = flowsystem_resize(buffer, needed);
    if (grown == NULL) return 0;
    buffer = grown;
    capacity = needed;
  }
  size_t length = put_return(buffer);
  for (const char *end = text + count; text < end;) {
    const char *newline = memchr(text, '\n', (size_t)(end - text));
    const char *line_end = newline != NULL ? newline : end;
    length += put(buffer + length, text, (size_t)(line_end - text));
    if (newline == NULL) break;
    length += put(buffer + length, ERASE_LINE, sizeof ERASE_LINE - 1);
    length += put(buffer + length, "\r\n", 2);
    text = newline + 1;
  }
  length += put(buffer + length, ERASE_REST, sizeof ERASE_REST - 1);
  // A single line has room for an Enter below it.
  if (lines == 1) length += put(buffer + length, "\r\n", 2);
  length += put_move(buffer + length, lines == 1 ? 1 : lines - 1);
  return length + put(buffer + length, SAVE_PLACE, sizeof SAVE_PLACE - 1);
}

bool flowsystem_show_status(const char *text, size_t count) {
  if (atomic_load(&output_end) == WITHIN_LINE || atomic_load(&guests) > 0) return false;
  // A job in the background shows nothing.
  if (tcgetpgrp(STDERR_FILENO) != getpgrp()) return false;
  // Buffered output appears before the lines.
  fflush(stdout);
  flowsystem_begin_line();
  int lines = 1;
  for (size_t i = 0; i < count; i++)
    if (text[i] == '\n') lines += 1;
  pthread_mutex_lock(&mutex);
  size_t length = fill(text, count, lines);
  if (length > 0) {
    int columns = 0, rows = 0;
    flowsystem_status_size(&columns, &rows);
    atomic_store(&shown_columns, columns);
    atomic_store(&shown_rows, rows);
    atomic_store(&shown_lines, lines);
    write_all(buffer, length);
  }
  pthread_mutex_unlock(&mutex);
  return length > 0;
}

void flowsystem_hide_status(void) {
  // Most output occurs while there are no lines.
  if (atomic_load(&shown_lines) == 0) return;
  pthread_mutex_lock(&mutex);
  if (atomic_load(&shown_lines) > 0) erase();
  atomic_store(&shown_lines, 0);
  pthread_mutex_unlock(&mutex);
}

void flowsystem_place_cursor(void) {
  pthread_mutex_lock(&mutex);
  if (atomic_load(&shown_lines) > 0) {
    char text[MOVE_SIZE];
    size_t length = put_return(text);
    // Some terminals forget the place when they return to it.
    length += put(text + length, SAVE_PLACE, sizeof SAVE_PLACE - 1);
    write_all(text, length);
  }
  pthread_mutex_unlock(&mutex);
}

bool flowsystem_is_status_shown(void) { return atomic_load(&shown_lines) > 0; }

bool flowsystem_is_stdout_piped(void) {
  struct stat out;
  return fstat(STDOUT_FILENO, &out) == 0 && (S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode));
}

void flowsystem_note_output(bool to_error, bool ends_line) {
  if (to_error || isatty(STDOUT_FILENO))
    atomic_store(&output_end, ends_line ? AT_START : WITHIN_LINE);
}

void flowsystem_begin_line(void) {
  int end = UNKNOWN;
  if (atomic_load(&guests) > 0 || !atomic_compare_exchange_strong(&output_end, &end, AT_START))
    return;
  // As many spaces as there are columns remain in an empty line, and move on to the next one otherwise.
  int columns, rows;
  if (!flowsystem_status_size(&columns, &rows)) return;
  static const char SPACES[] = "                                ";
  for (int rest = columns; rest > 0; rest -= (int)sizeof SPACES - 1)
    write_all(SPACES, (size_t)rest < sizeof SPACES - 1 ? (size_t)rest : sizeof SPACES - 1);
  write_all("\r\x1b[K", 4);
}

bool flowsystem_takes_output(void) {
  struct pollfd terminal = {.fd = STDERR_FILENO, .events = POLLOUT};
  return poll(&terminal, 1, 0) != 0;
}

bool flowsystem_takes_lines(void) {
  if (flowsystem_has_terminal()) return true;
  return atomic_load(&output_end) != WITHIN_LINE && atomic_load(&guests) == 0;
}

void flowsystem_lend_terminal(bool begins) {
  if (begins) flowsystem_hide_status();
  if (!begins) atomic_store(&output_end, UNKNOWN);
  atomic_fetch_add(&guests, begins ? 1 : -1);
}

void flowsystem_abandon_status(void) {
  if (atomic_load(&shown_lines) > 0) erase();
  atomic_store(&shown_lines, 0);
}

bool flowsystem_status_size(int *columns, int *rows) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return false;
  *columns = size.ws_col;
  *rows = size.ws_row;
  return size.ws_col > 0 && size.ws_row > 0;
}

// The modes of the terminal, which the line editor changes while it has the terminal.

/// Whether the editor has the terminal; the modes before, and those of the editor.
static volatile sig_atomic_t has_terminal;
static struct termios modes_before, modes_of_editor;

/// Whether the terminal distinguishes pasted text from keys for the editor.
static bool marks_pastes;
static const char paste_on[] = "\033[?2004h", paste_off[] = "\033[?2004l";

void flowsystem_write_plainly(const char *bytes, size_t count) {
  int problem = errno;
  if (write(STDOUT_FILENO, bytes, count) < 0) errno = problem;
}

void flowsystem_use_paste_marks(bool uses) { marks_pastes = uses; }

void flowsystem_request_paste_marks(bool requests) {
  if (!marks_pastes) return;
  if (requests) flowsystem_write_plainly(paste_on, sizeof paste_on - 1);
  else flowsystem_write_plainly(paste_off, sizeof paste_off - 1);
}

bool flowsystem_has_terminal(void) { return has_terminal != 0; }

void flowsystem_take_terminal(void) {
  tcgetattr(STDIN_FILENO, &modes_before);
  modes_of_editor = modes_before;
  has_terminal = 1;
}

void flowsystem_adopt_modes(void) {
  tcgetattr(STDIN_FILENO, &modes_of_editor);
  // Otherwise the terminal may discard output right after a Ctrl-C.
  modes_of_editor.c_lflag |= NOFLSH;
  tcsetattr(STDIN_FILENO, TCSANOW, &modes_of_editor);
}

void flowsystem_return_terminal(void) { has_terminal = 0; }

void flowsystem_restore_terminal(void) {
  if (!has_terminal) return;
  flowsystem_request_paste_marks(false);
  tcsetattr(STDIN_FILENO, TCSANOW, &modes_before);
}

bool flowsystem_retake_terminal(void) {
  if (!has_terminal) return false;
  tcsetattr(STDIN_FILENO, TCSANOW, &modes_of_editor);
  flowsystem_request_paste_marks(true);
  return true;
}

void flowsystem_terminal_size(int *columns, int *rows) {
  struct winsize size;
  bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  *columns = is_known && size.ws_col > 0 ? size.ws_col : 80;
  *rows = is_known && size.ws_row > 0 ? size.ws_row : 24;
}
