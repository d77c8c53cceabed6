// The three standard streams of a program, from its start to its end; files and numbers as C writes
// them.
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void flowsystem_keep_statuses(void) {
  struct sigaction action;
  if (sigaction(SIGCHLD, NULL, &action) != 0 || action.sa_handler != SIG_IGN) return;
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, NULL);
}

/// Lets writes wait for the reader again: a program that has the same pipe or terminal may have made it refuse what it
/// can't take at once, for all of them. Opened once more, it is this process's own.
static void let_wait(int fd) {
  int flags = fcntl(fd, F_GETFL);
  struct stat status;
  if (flags < 0 || (flags & O_NONBLOCK) == 0 || fstat(fd, &status) != 0) return;
  if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return;
  const char *path = fd == STDOUT_FILENO ? "/proc/self/fd/1" : "/proc/self/fd/2";
  // Without O_NONBLOCK a FIFO that nobody reads would block here.
  int own = open(path, (flags & (O_ACCMODE | O_APPEND)) | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (own < 0) return;
  if (fcntl(own, F_SETFL, flags & ~O_NONBLOCK) == 0) dup2(own, fd);
  close(own);
}

void flowsystem_hold_streams(void) {
  let_wait(STDOUT_FILENO);
  let_wait(STDERR_FILENO);
  for (int fd = 0; fd <= 2; fd++) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. It is opened in the wrong direction: reading or writing
    // fails as if the stream were still closed.
    open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

static const char *name_of_program = "flowlua";

const char *flowsystem_program(void) { return name_of_program; }

/// Writes what is left of the output; returns the status.
static int flush_output(int status) {
  bool has_failed = ferror(stdout) != 0;
  errno = 0;
  if (fflush(stdout) != 0) has_failed = true;
  if (!has_failed || status != 0) return status;
  if (errno != 0)
    fprintf(stderr, "%s: can't write to stdout: %s\n", name_of_program, strerror(errno));
  else fprintf(stderr, "%s: can't write to stdout\n", name_of_program);
  return EXIT_FAILURE;
}

static flowsystem_last_work last_work;

/// The sanitizer of addresses would look for leaks later.
extern void __lsan_do_leak_check(void) __attribute__((weak));

/// The last function of a process that exits. Other threads may still work: it ends here, before any library that they
/// use is taken apart.
static void end_process(int status, void *unused) {
  (void)unused;
  status = flush_output(status);
  // As at any exit, without the locks that another thread may have while it waits for input.
  fcloseall();
  status = last_work(status);
  if (__lsan_do_leak_check) __lsan_do_leak_check();
  _exit(status);
}

void flowsystem_end_at_exit(const char *program, flowsystem_last_work work) {
  if (program != NULL) name_of_program = program;
  last_work = work;
  on_exit(end_process, NULL);
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
  // Whatever the locale of the script: servers, programs and readers of logs don't know it.
  const char *point = nl_langinfo(RADIXCHAR);
  char *found = strcmp(point, ".") != 0 ? strstr(buffer, point) : NULL;
  if (found != NULL) {
    *found = '.';
    length -= (int)strlen(point) - 1;
    memmove(found + 1, found + strlen(point), strlen(found + strlen(point)) + 1);
  }
  return (size_t)length < size ? (size_t)length : size - 1;
}

void flowsystem_write_whole_lines(void) { setvbuf(stdout, NULL, _IOLBF, (size_t)1 << 16); }

void flowsystem_write(const void *bytes, size_t count, bool to_error) {
  FILE *stream = to_error ? stderr : stdout;
  flowsystem_hide_status();
  if (count > 0) fwrite(bytes, 1, count, stream);
  fflush(stream);
}
