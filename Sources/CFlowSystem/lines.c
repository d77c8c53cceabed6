// Lines of stdin, without an editor.
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool flowsystem_has_input(void) {
  if (stdin->_IO_read_ptr < stdin->_IO_read_end) return true;
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  return poll(&input, 1, 0) > 0;
}

char *flowsystem_read_line(size_t *count) {
  char *line = NULL;
  size_t length = 0, capacity = 0;
  flockfile(stdin);
  // After an error, a signal for example, nothing more is read.
  for (int byte = 0; byte != '\n' && !ferror_unlocked(stdin);) {
    byte = getc_unlocked(stdin);
    if (byte == EOF) break;
    if (length == capacity) {
      capacity = capacity == 0 ? 128 : capacity * 2;
      char *grown = flowsystem_resize(line, capacity);
      // A part of a line must not run as if it was the whole.
      if (grown == NULL) flowsystem_exit_without_memory();
      line = grown;
    }
    line[length++] = (char)byte;
  }
  funlockfile(stdin);
  *count = length;
  return line;
}

bool flowsystem_lock_input(void) { return ftrylockfile(stdin) == 0; }

void flowsystem_unlock_input(void) { funlockfile(stdin); }

const void *flowsystem_input_bytes(size_t *count) {
  *count = (size_t)(stdin->_IO_read_end - stdin->_IO_read_ptr);
  return stdin->_IO_read_ptr;
}

void flowsystem_take_input(size_t count) { stdin->_IO_read_ptr += count; }

int flowsystem_fill_input(void) {
  if (stdin->_IO_read_ptr < stdin->_IO_read_end) return FLOWSYSTEM_INPUT_READY;
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  if (poll(&input, 1, 0) == 0) return FLOWSYSTEM_INPUT_LATER;
  // As io.read does: a terminal may continue after its end.
  clearerr_unlocked(stdin);
  int byte = getc_unlocked(stdin);
  if (byte != EOF) {
    // The byte that was just read: it stays where it is.
    ungetc(byte, stdin);
    return FLOWSYSTEM_INPUT_READY;
  }
  if (!ferror_unlocked(stdin)) return FLOWSYSTEM_INPUT_END;
  return errno == EAGAIN || errno == EINTR ? FLOWSYSTEM_INPUT_LATER : errno;
}
