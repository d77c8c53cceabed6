// Processes that outlive this one, and do what it can't do any more once it is killed. Such a process needs no more memory
// than the pages that both change.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal.h"

/// The child: a terminal's signals are for the process that it waits for.
static _Noreturn void wait_for_end(
    const char *name, int end, int kept, void (*then)(const void *), const void *argument) {
  // Its descriptors would keep the readers of this process's output waiting.
  int low = kept < 0 ? -1 : fcntl(kept, F_DUPFD, 3);
  if (kept >= 0 && low < 0) _exit(EXIT_FAILURE);
  if (dup2(end, 0) < 0 || (kept >= 0 && dup2(low, 1) < 0)) _exit(EXIT_FAILURE);
  flowsystem_close_from(kept < 0 ? 1 : 2);
  // A signal to the group of the process is none for it.
  setpgid(0, 0);
  prctl(PR_SET_NAME, name);
  for (;;) {
    char byte;
    ssize_t count = read(0, &byte, 1);
    // A byte, as other processes may have the other end, too.
    if (count >= 0 || errno != EINTR) break;
  }
  then(argument);
  _exit(EXIT_SUCCESS);
}

pid_t flowsystem_leave_process(
    const char *name, int kept, void (*then)(const void *), const void *argument, int *lifeline) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  sigset_t all, before;
  sigfillset(&all);
  // They stay blocked in the child.
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pid_t child = fork();
  int problem = errno;
  if (child == 0) wait_for_end(name, ends[0], kept, then, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  close(ends[0]);
  if (child < 0) {
    close(ends[1]);
    errno = problem;
    return -1;
  }
  *lifeline = ends[1];
  return child;
}

/// An environment variable of all programs of this process. One that was started in the moment of the end isn't among the
/// groups yet.
static char mark[64];
static pid_t session;

static bool make_mark(void) {
  unsigned long long number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return false;
  session = getsid(0);
  snprintf(mark, sizeof mark, "FLOWLUA_END=%d-%016llx", (int)getpid(), number);
  return setenv("FLOWLUA_END", mark + sizeof "FLOWLUA_END", 1) == 0;
}

static int open_of(pid_t process, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
  return open(path, O_RDONLY | O_CLOEXEC);
}

/// Whether the environment of a process has the mark.
static bool has_mark(pid_t process) {
  int file = open_of(process, "environ");
  if (file < 0) return false;
  // The end of a part stays, as the mark may continue in the next one.
  static char text[16384];
  size_t length = strlen(mark), held = 0;
  bool is_found = false;
  ssize_t count;
  while (!is_found && (count = read(file, text + held, sizeof text - held)) > 0) {
    size_t filled = held + (size_t)count;
    is_found = memmem(text, filled, mark, length) != NULL;
    held = filled < length ? filled : length;
    memmove(text, text + filled - held, held);
  }
  close(file);
  return is_found;
}

/// Whether a process is one of this kind, which has work of its own to do.
static bool is_helper(pid_t process) {
  char name[16] = "";
  int file = open_of(process, "comm");
  if (file < 0) return false;
  ssize_t count = read(file, name, sizeof name - 1);
  close(file);
  return count > 0 && strncmp(name, "flowlua-end\n", (size_t)count) == 0;
}

/// Kills the groups of the session whose leader has the mark. Other threads may have had the allocator's lock when this
/// process was forked, so nothing is allocated.
static void kill_marked(void) {
  int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  static _Alignas(struct dirent64) char entries[16384];
  ssize_t count;
  while ((count = getdents64(folder, entries, sizeof entries)) > 0)
    for (ssize_t place = 0; place < count;) {
      const struct dirent64 *each = (const struct dirent64 *)(entries + place);
      place += each->d_reclen;
      pid_t process = (pid_t)strtol(each->d_name, NULL, 10);
      if (process > 0 && process != getpid() && getpgid(process) == process
          && getsid(process) == session && has_mark(process) && !is_helper(process))
        kill(-process, SIGKILL);
    }
  close(folder);
}

static void kill_programs(const void *unused) {
  (void)unused;
  flowsystem_kill_groups();
  if (mark[0] != '\0') kill_marked();
}

int flowsystem_kill_programs_when_killed(void) {
  if (!make_mark()) return errno;
  // PR_SET_PDEATHSIG would reach a program alone, not its child processes, and posix_spawn can't set it.
  int problem = flowsystem_share_groups();
  if (problem != 0) return problem;
  // It stays open until this process ends.
  int lifeline;
  return flowsystem_leave_process("flowlua-end", -1, kill_programs, NULL, &lifeline) < 0 ? errno
                                                                                         : 0;
}

/// Moves the pipes of the child to its standard streams; its other descriptors would keep the readers of this process's
/// output waiting.
static bool keep_only(int input, int output) {
  int in = fcntl(input, F_DUPFD, 3), out = fcntl(output, F_DUPFD, 3);
  return in >= 0 && out >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(out, 2) >= 0
      && flowsystem_close_from(3) == 0;
}

pid_t flowsystem_begin_helper(const char *name, int *output, int *lifeline) {
  int ends[2], lines[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  if (pipe2(lines, O_CLOEXEC) != 0) {
    int problem = errno;
    close(ends[0]);
    close(ends[1]);
    errno = problem;
    return -1;
  }
  // Output that waits in buffers is written once.
  fflush(NULL);
  pid_t child = fork();
  int problem = errno;
  if (child == 0) {
    if (!keep_only(ends[0], lines[1])) _exit(EXIT_FAILURE);
    // A terminal's signals are for the process that it helps.
    setpgid(0, 0);
    prctl(PR_SET_NAME, name);
    return 0;
  }
  close(ends[0]);
  close(lines[1]);
  *output = lines[0];
  *lifeline = ends[1];
  if (child < 0) {
    close(lines[0]);
    close(ends[1]);
  }
  errno = problem;
  return child;
}

bool flowsystem_end_helper(pid_t helper, int lifeline, int patience) {
  // Other processes may have that end, too, so that closing it isn't enough.
  flowsystem_write_quietly(lifeline, "", 1);
  close(lifeline);
  int descriptor = (int)syscall(SYS_pidfd_open, helper, 0);
  if (descriptor >= 0) {
    struct pollfd end = {.fd = descriptor, .events = POLLIN};
    int ready;
    do ready = poll(&end, 1, patience);
    while (ready < 0 && errno == EINTR);
    close(descriptor);
    // In a sandbox this process may not end others. Without the end of the helper there is nothing to wait for.
    if (ready == 0 && kill(helper, SIGKILL) != 0) return false;
  }
  while (waitpid(helper, NULL, 0) < 0 && errno == EINTR) {
  }
  return true;
}
