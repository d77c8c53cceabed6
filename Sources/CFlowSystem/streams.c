// The three standard streams of a program, from its start to its end; files and numbers as C writes
// them.
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void flowsystem_hold_streams(void) {
  for (int fd = 0; fd <= 2; fd++) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. It is opened in the wrong direction: reading or writing
    // fails as if the stream were still closed.
    open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

static const char *name_of_program = "flowlua";

const char *flowsystem_program(void) { return name_of_program; }

/// The last function of a process that exits.
static void check_output(int status, void *unused) {
  (void)unused;
  bool has_failed = ferror(stdout) != 0;
  errno = 0;
  if (fflush(stdout) != 0) has_failed = true;
  if (!has_failed || status != 0) return;
  if (errno != 0)
    fprintf(stderr, "%s: can't write to stdout: %s\n", name_of_program, strerror(errno));
  else fprintf(stderr, "%s: can't write to stdout\n", name_of_program);
  _exit(EXIT_FAILURE);
}

void flowsystem_check_output_at_exit(const char *program) {
  if (program != NULL) name_of_program = program;
  on_exit(check_output, NULL);
}

bool flowsystem_write_file(const char *path, const void *bytes, size_t count) {
  FILE *file = fopen(path, "we");
  if (file == NULL) return false;
  bool ok = fwrite(bytes, 1, count, file) == count;
  int problem = errno;
  if (fclose(file) != 0 && ok) return false;
  errno = problem;
  return ok;
}

size_t flowsystem_format_g(char *buffer, size_t size, int precision, double number) {
  int length = snprintf(buffer, size, "%.*g", precision, number);
  if (length < 0) return 0;
  return (size_t)length < size ? (size_t)length : size - 1;
}

void flowsystem_write_whole_lines(void) { setvbuf(stdout, NULL, _IOLBF, (size_t)1 << 16); }

void flowsystem_write(const void *bytes, size_t count, bool to_error) {
  FILE *stream = to_error ? stderr : stdout;
  flowsystem_hide_status();
  if (count > 0) fwrite(bytes, 1, count, stream);
  fflush(stream);
}
