// The folder of a sandbox, which is removed when the process ends.
//
// The process itself can't remove it: for that it would need the permission to remove folders beside it. So a child
// process does, which is made before and waits for the end of a pipe. It needs no more memory than the pages that both
// change.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal.h"

/// The end of the pipe that closes with this process, and the child.
static int lifeline = -1;
static pid_t remover;
/// The process whose child that is: a forked process has none.
static pid_t remover_owner;

/// In the child, which has the folder as its descriptor 1.
static void remove_left_folder(const void *path) { flowsystem_remove_folder(1, path); }

/// Waits for the removal, so that nothing is left when the process has ended.
static void end_remover(void) {
  if (lifeline < 0 || getpid() != remover_owner) return;
  (void)!write(lifeline, "", 1);
  close(lifeline);
  lifeline = -1;
  while (waitpid(remover, NULL, 0) < 0 && errno == EINTR) {
  }
}

int flowsystem_remove_at_end(const char *path) {
  // Before any script can replace it.
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return errno;
  remover = flowsystem_leave_process("flowlua-tmp", folder, remove_left_folder, path, &lifeline);
  int problem = errno;
  close(folder);
  if (remover < 0) return problem;
  remover_owner = getpid();
  atexit(end_remover);
  return 0;
}
