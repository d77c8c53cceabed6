// The modes of the terminal, which the line editor changes while it has the terminal.
#include "internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

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
