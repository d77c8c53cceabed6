// The folder of a sandbox, which is removed when the process ends.
//
// The process itself can't remove it: for that it would need the permission to remove folders beside it. So a child
// process does, which is made before and waits for the end of a pipe. It needs no more memory than the pages that both
// change.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/// The end of the pipe that closes with this process, and the child.
static int lifeline = -1;
static pid_t remover;
/// The process whose child that is: a forked process has none.
static pid_t remover_owner;

/// Opens a folder in another one, also one that the script has made inaccessible to itself; -1 for anything else.
static int open_folder(int parent, const char *name) {
  const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int fd = openat(parent, name, O_RDONLY | flags);
  if (fd >= 0 || errno != EACCES) return fd;
  int place = openat(parent, name, O_PATH | flags);
  if (place < 0) return -1;
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", place);
  chmod(path, 0700);
  close(place);
  return openat(parent, name, O_RDONLY | flags);
}

/// How many folders are open at a time: few, as the process may have been limited to a few descriptors.
enum { DEEPEST = 6 };

/// The folder itself, and how many have been moved to it.
typedef struct {
  int top;
  unsigned moved;
} removal;

/// Moves a folder that is deep in others to the top, to be emptied from there.
static void move_up(removal *removal, int parent, const char *name) {
  char place[32];
  snprintf(place, sizeof place, ".%u", removal->moved + 1);
  if (renameat(parent, name, removal->top, place) == 0) removal->moved += 1;
}

/// Removes all that is in a folder. By descriptors: what the script has started may still run, and replace a folder by a
/// link to another one. It takes the descriptor.
static void empty_folder(removal *removal, int folder, int depth) {
  DIR *entries = fdopendir(folder);
  if (entries == NULL) {
    close(folder);
    return;
  }
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
    if (unlinkat(folder, name, 0) == 0 || unlinkat(folder, name, AT_REMOVEDIR) == 0) continue;
    int inner = open_folder(folder, name);
    if (inner >= 0 && depth < DEEPEST) empty_folder(removal, inner, depth + 1);
    else if (inner >= 0) close(inner);
    if (unlinkat(folder, name, AT_REMOVEDIR) != 0 && depth >= DEEPEST)
      move_up(removal, folder, name);
  }
  closedir(entries);
}

/// How many seconds a folder is emptied for into which a program that has outlived the script still writes. The end of
/// the script waits for that.
enum { PATIENCE = 3 };

static void remove_folder(int folder, const char *path) {
  removal removal = {.top = folder, .moved = 0};
  time_t end = time(NULL) + PATIENCE;
  while (rmdir(path) != 0 && errno == ENOTEMPTY && time(NULL) <= end) {
    unsigned moved = removal.moved;
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copy < 0) return;
    empty_folder(&removal, copy, 0);
    if (removal.moved != moved) continue;
    struct timespec pause = {.tv_nsec = 1000000};
    nanosleep(&pause, NULL);
  }
}

/// In the child, which has the folder as its descriptor 1.
static void remove_left_folder(const void *path) { remove_folder(1, path); }

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
