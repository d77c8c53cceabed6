// The three standard streams of a program, from its start to its end; files and numbers as C writes
// them.
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

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

// Output that nobody reads: once a signal has requested the end of the process, it doesn't keep the process from ending.
//
// A pipe that is full, and a terminal after Ctrl-S, block the thread that writes, so that no cleanup would run. Nothing but
// a signal ends such a write. The streams of C keep the rest of what they have, so the descriptor has to change too.

/// Of the timers of a process the one that the least code uses.
enum { LOOK_SIGNAL = SIGVTALRM };

/// How long the reader has, in nanoseconds, and when the threads that write are woken: after the handler has returned.
static const long patience = 1000000000, moment = 1000000;

static int timer;
static bool has_timer;
/// How many of the two streams were released, and whether the threads that write to one of them are still to be woken.
static int released;
static bool must_wake;

static void on_look(int number);

static void look_after(long nanoseconds) {
  struct itimerspec at = {
      .it_value = {.tv_sec = nanoseconds / patience, .tv_nsec = nanoseconds % patience}};
  syscall(SYS_timer_settime, timer, 0, &at, NULL);
}

/// Lets a stream write nowhere if its reader takes nothing.
static bool release(int fd) {
  struct pollfd output = {.fd = fd, .events = POLLOUT};
  if (poll(&output, 1, 0) != 0) return false;
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return false;
  bool ok = dup2(nowhere, fd) == fd;
  close(nowhere);
  return ok;
}

/// Ends the writes of the other threads, as the timer's signal ends this one's.
static void wake_threads(void) {
  int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  struct entry {
    unsigned long long number, offset;
    unsigned short size;
    unsigned char type;
    char name[];
  };
  _Alignas(struct entry) char room[2048];
  for (long count; (count = syscall(SYS_getdents64, folder, room, sizeof room)) > 0;) {
    for (long at = 0; at < count;) {
      const struct entry *entry = (const struct entry *)(room + at);
      at += entry->size;
      int thread = atoi(entry->name);
      if (thread > 0 && thread != getpid()) tgkill(getpid(), thread, LOOK_SIGNAL);
    }
  }
  close(folder);
}

static void set_handler(int flags) {
  struct sigaction action = {.sa_handler = on_look, .sa_flags = flags};
  sigemptyset(&action.sa_mask);
  sigaction(LOOK_SIGNAL, &action, NULL);
}

static void on_look(int number) {
  (void)number;
  if (!flowsystem_is_main_thread()) return;
  int problem = errno;
  int before = released;
  if (release(STDOUT_FILENO)) released++;
  if (release(STDERR_FILENO)) released++;
  if (released > before) {
    must_wake = true;
    // From now on the signal ends a write.
    set_handler(0);
    look_after(moment);
  } else {
    if (must_wake) wake_threads();
    must_wake = false;
    if (released < 2) look_after(patience);
  }
  errno = problem;
}

void flowsystem_release_stuck_streams(void) {
  struct sigaction present;
  // A script's own timer, set through a C module, is left alone.
  if (has_timer || sigaction(LOOK_SIGNAL, NULL, &present) != 0 || present.sa_handler != SIG_DFL)
    return;
  set_handler(SA_RESTART);
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = LOOK_SIGNAL};
  event._sigev_un._tid = getpid();
  // Not the function of the C library, which may allocate memory.
  if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) != 0) return;
  has_timer = true;
  look_after(patience);
}
