// Output that nobody reads: once a signal has requested the end of the process, it doesn't keep the process from ending.
//
// A pipe that is full, and a terminal after Ctrl-S, block the thread that writes, so that no cleanup would run. Nothing but
// a signal ends such a write. The streams of C keep the rest of what they have, so the descriptor has to change too.
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

/// Ends the writes of the other threads, as the timer's signal ends that of this one.
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
  // Not that of the C library, which may allocate memory.
  if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) != 0) return;
  has_timer = true;
  look_after(patience);
}
