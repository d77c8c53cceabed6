// A line at the bottom of the terminal that shows progress, and makes way for all other output.
#include "internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

// Guards all of these, except when a signal handler reads the first.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_shown;
/// Whether the output ends within a line, which a status line would overwrite.
static atomic_bool is_line_open;
/// How many other programs use the terminal as this process does.
static atomic_int guests;

static const char ERASE[] = "\r\x1b[K";

/// Writes all of it to stderr, bypassing its stream.
static void write_all(const char *bytes, size_t count) {
  while (count > 0) {
    ssize_t written = write(STDERR_FILENO, bytes, count);
    if (written <= 0) return;
    bytes += written;
    count -= (size_t)written;
  }
}

bool flowsystem_show_status(const char *text, size_t count) {
  if (atomic_load(&is_line_open) || atomic_load(&guests) > 0) return false;
  // A job in the background shows nothing.
  if (tcgetpgrp(STDERR_FILENO) != getpgrp()) return false;
  // Buffered output appears before the line.
  fflush(stdout);
  char line[1024];
  if (count > sizeof line - sizeof ERASE) count = sizeof line - sizeof ERASE;
  memcpy(line, ERASE, sizeof ERASE - 1);
  memcpy(line + sizeof ERASE - 1, text, count);
  pthread_mutex_lock(&mutex);
  atomic_store(&is_shown, true);
  write_all(line, sizeof ERASE - 1 + count);
  pthread_mutex_unlock(&mutex);
  return true;
}

void flowsystem_hide_status(void) {
  // Most output occurs while there is no line.
  if (!atomic_load(&is_shown)) return;
  pthread_mutex_lock(&mutex);
  if (atomic_exchange(&is_shown, false)) write_all(ERASE, sizeof ERASE - 1);
  pthread_mutex_unlock(&mutex);
}

void flowsystem_note_output(bool ends_line) { atomic_store(&is_line_open, !ends_line); }

void flowsystem_lend_terminal(bool begins) {
  if (begins) flowsystem_hide_status();
  atomic_fetch_add(&guests, begins ? 1 : -1);
}

void flowsystem_abandon_status(void) {
  if (atomic_exchange(&is_shown, false)) write_all(ERASE, sizeof ERASE - 1);
}

int flowsystem_terminal_columns(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}
