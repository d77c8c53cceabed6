#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/// Moves a descriptor away from the number of a standard stream, where it would collide with the
/// child's.
static int above_streams(int fd) {
  if (fd < 0 || fd > 2) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  int problem = errno;
  close(fd);
  errno = problem;
  return moved;
}

/// Makes a pipe of which this process keeps `ends[kept]`, non-blocking. Returns 0 or an errno.
static int make_pipe(int ends[2], int kept) {
  if (pipe2(ends, O_CLOEXEC) != 0) {
    ends[0] = ends[1] = -1;
    return errno;
  }
  for (int i = 0; i < 2; i++) {
    ends[i] = above_streams(ends[i]);
    if (ends[i] < 0) return errno;
  }
  return fcntl(ends[kept], F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
}

static void close_all(int pipes[3][2]) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 2; j++)
      if (pipes[i][j] >= 0) close(pipes[i][j]);
}

/// Whether so many descriptors are open that soon none would be left. The lowest free number is
/// always used next, so a high number indicates that.
///
/// However high the limit is, it counts as no more than PLENTY: a program that starts gets a copy
/// of all descriptors and closes it, and 20,000 of them make that ten times as slow.
static bool is_near_limit(int fd) {
  enum { RESERVE = 16, PLENTY = 6144 };
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  rlim_t most = limit.rlim_cur < PLENTY ? limit.rlim_cur : PLENTY;
  return (rlim_t)fd + RESERVE >= most;
}

int flowsystem_open_stream(const char *path, bool writing) {
  int flags = writing ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
  // Without O_NONBLOCK a FIFO would block this process until another opens its other end.
  int fd = above_streams(open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  if (fd < 0) return -1;
  int status = fcntl(fd, F_GETFL);
  if (status >= 0 && fcntl(fd, F_SETFL, status & ~O_NONBLOCK) == 0) return fd;
  int problem = errno;
  close(fd);
  errno = problem;
  return -1;
}

/// Whether the program reads the terminal of this process, whose group it then has to share.
static bool shares_terminal(const flowsystem_spawn_request *request) {
  return request->streams[0] == FLOWSYSTEM_INHERIT && isatty(STDIN_FILENO);
}

/// Whether the program writes to outputs of this process.
static bool shares_output(const flowsystem_spawn_request *request) {
  return request->streams[1] == FLOWSYSTEM_INHERIT || request->streams[2] == FLOWSYSTEM_INHERIT;
}

/// Sets one stream of the program.
static int add_stream(
    posix_spawn_file_actions_t *actions, const flowsystem_spawn_request *request, int i,
    int pipes[3][2]) {
  int stream = request->streams[i];
  if (stream == FLOWSYSTEM_INHERIT) return 0;
  if (stream == FLOWSYSTEM_NOTHING)
    return posix_spawn_file_actions_addopen(
        actions, i, "/dev/null", i == 0 ? O_RDONLY : O_WRONLY, 0);
  int fd = stream == FLOWSYSTEM_PIPE ? pipes[i][i == 0 ? 0 : 1] : stream;
  return posix_spawn_file_actions_adddup2(actions, fd, i);
}

static const char *value_of(char *const *environment, const char *name) {
  size_t count = strlen(name);
  for (; *environment != NULL; environment++)
    if (strncmp(*environment, name, count) == 0 && (*environment)[count] == '=')
      return *environment + count + 1;
  return NULL;
}

/// Stores the path of a program that is found on the PATH of its own environment, which differs from this
/// process's. false when there is none.
static bool find_program(const flowsystem_spawn_request *request, const char *path, char *found) {
  for (const char *at = path;; at++) {
    size_t count = strcspn(at, ":");
    // Relative to the folder in which the program starts; an empty part is that folder.
    const char *folder = *at != '/' && request->cwd != NULL ? request->cwd : "";
    int length = snprintf(
        found, PATH_MAX, "%s%s%.*s%s%s", folder, *folder != '\0' ? "/" : "", (int)count, at,
        count > 0 ? "/" : "./", request->argv[0]);
    struct stat status;
    if (length > 0 && length < PATH_MAX && stat(found, &status) == 0 && S_ISREG(status.st_mode)
        && access(found, X_OK) == 0) {
      // The system resolves it after the change of the folder.
      if (*folder != '\0' && *folder != '/')
        memmove(found, found + strlen(folder) + 1, (size_t)length - strlen(folder));
      return true;
    }
    at += count;
    if (*at == '\0') return false;
  }
}

static int spawn(const flowsystem_spawn_request *request, int pipes[3][2], pid_t *pid) {
  const char *program = request->argv[0];
  char found[PATH_MAX];
  const char *path = request->environment != NULL ? value_of(request->environment, "PATH") : NULL;
  const char *own = value_of(environ, "PATH");
  if (path != NULL && strchr(program, '/') == NULL && (own == NULL || strcmp(path, own) != 0)) {
    if (!find_program(request, path, found)) return ENOENT;
    program = found;
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  int problem = posix_spawn_file_actions_init(&actions);
  if (problem != 0) return problem;
  problem = posix_spawnattr_init(&attributes);
  if (problem != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return problem;
  }
  sigset_t none, all;
  sigemptyset(&none);
  // Not sigfillset, which omits two signals of the C library: those would then be ignored.
  memset(&all, 0xff, sizeof all);
  // The signals that this process ignores or blocks don't concern the program, SIGPIPE included.
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (!shares_terminal(request)) flags |= POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(&attributes, (short)flags);
  for (int i = 0; i <= 2 && problem == 0; i++) problem = add_stream(&actions, request, i, pipes);
  // Files that other code opened without close-on-exec, as the C library's `fopen` does, are closed
  // here too.
  if (problem == 0) problem = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  if (problem == 0 && request->cwd != NULL)
    problem = posix_spawn_file_actions_addchdir_np(&actions, request->cwd);
  if (problem == 0)
    problem = posix_spawnp(
        pid, program, &actions, &attributes, request->argv,
        request->environment != NULL ? request->environment : environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return problem;
}

/// Whether a program with these pipes would use up the last descriptors.
static bool uses_reserve(const flowsystem_spawn_request *request, int pipes[3][2]) {
  if (!request->keeps_reserve) return false;
  int highest = -1;
  for (int i = 0; i < 3; i++) {
    if (request->streams[i] > highest) highest = request->streams[i];
    for (int j = 0; j < 2; j++)
      if (pipes[i][j] > highest) highest = pipes[i][j];
  }
  if (highest >= 0) return is_near_limit(highest);
  int next = fcntl(0, F_DUPFD_CLOEXEC, 3);
  if (next < 0) return errno == EMFILE;
  close(next);
  return is_near_limit(next);
}

/// Starts the program and opens its descriptor; it is among the groups before any signal can
/// arrive.
static int begin(
    const flowsystem_spawn_request *request, int pipes[3][2], flowsystem_spawned *spawned) {
  spawned->group = flowsystem_prepare_group();
  if (spawned->group == NULL) return ENOMEM;
  sigset_t before;
  flowsystem_hold_ending_signals(&before);
  int problem = spawn(request, pipes, &spawned->pid);
  spawned->target = shares_terminal(request) ? spawned->pid : -spawned->pid;
  if (problem == 0) flowsystem_enter_group(spawned->group, spawned->target);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (problem != 0) {
    flowsystem_release_group(spawned->group);
    return problem;
  }
  // The child's ends are closed first: they make room for the process's own descriptor.
  for (int i = 0; i < 3; i++) {
    int *end = &pipes[i][i == 0 ? 0 : 1];
    if (*end >= 0) close(*end);
    *end = -1;
  }
  spawned->pidfd = (int)syscall(SYS_pidfd_open, spawned->pid, 0);
  if (spawned->pidfd >= 0) return 0;
  problem = errno;
  kill(spawned->target, SIGKILL);
  int status;
  flowsystem_reap(spawned->pid, spawned->group, &status);
  return problem;
}

int flowsystem_spawn(const flowsystem_spawn_request *request, flowsystem_spawned *spawned) {
  int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
  int problem = 0;
  for (int i = 0; i <= 2 && problem == 0; i++)
    if (request->streams[i] == FLOWSYSTEM_PIPE) problem = make_pipe(pipes[i], i == 0 ? 1 : 0);
  if (problem == 0 && uses_reserve(request, pipes)) problem = EMFILE;
  // The program continues to read a file where this process has stopped; see fflush(3).
  if (request->streams[0] == FLOWSYSTEM_INHERIT) fflush(stdin);
  // Earlier output appears before the program's output.
  bool shares = shares_output(request);
  if (shares) {
    fflush(NULL);
    flowsystem_lend_terminal(true);
  }
  if (problem == 0) problem = begin(request, pipes, spawned);
  if (problem != 0) {
    if (shares) flowsystem_lend_terminal(false);
    close_all(pipes);
    return problem;
  }
  spawned->streams[0] = pipes[0][1];
  spawned->streams[1] = pipes[1][0];
  spawned->streams[2] = pipes[2][0];
  return 0;
}

bool flowsystem_reap(int pid, flowsystem_group *group, int *status) {
  // Released first, so that no signal reaches another process that has got the number.
  flowsystem_release_group(group);
  int raw, reaped;
  do reaped = waitpid(pid, &raw, 0);
  while (reaped < 0 && errno == EINTR);
  if (reaped < 0) return false;
  *status = WIFSIGNALED(raw) ? -WTERMSIG(raw) : WEXITSTATUS(raw);
  return true;
}

ptrdiff_t flowsystem_write_quietly(int fd, const void *bytes, size_t count) {
  // SIGPIPE of a write is sent to the writing thread, so it can be removed again right here.
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  ssize_t written = write(fd, bytes, count);
  int problem = errno;
  if (written < 0 && problem == EPIPE && !was_pending) {
    struct timespec none = {0};
    while (sigtimedwait(&pipe_signal, NULL, &none) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = problem;
  return written;
}
