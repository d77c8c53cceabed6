// The temporary files and folders of the process, kept where a signal handler can find and remove them; and how a folder
// is removed without any memory.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

// MARK: - Folders

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

static void empty_folder(removal *removal, int folder, int depth);

static void remove_entry(removal *removal, int folder, const char *name, int depth) {
  if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return;
  if (unlinkat(folder, name, 0) == 0) return;
  // A program has made the folder read-only.
  if (errno == EACCES && fchmod(folder, 0700) == 0 && unlinkat(folder, name, 0) == 0) return;
  if (unlinkat(folder, name, AT_REMOVEDIR) == 0) return;
  int inner = open_folder(folder, name);
  if (inner >= 0 && depth < DEEPEST) empty_folder(removal, inner, depth + 1);
  else if (inner >= 0) close(inner);
  if (unlinkat(folder, name, AT_REMOVEDIR) != 0 && depth >= DEEPEST) move_up(removal, folder, name);
}

/// Removes all that is in a folder. By descriptors: what the script has started may still run, and replace a folder by a
/// link to another one. It takes the descriptor.
static void empty_folder(removal *removal, int folder, int depth) {
  _Alignas(struct dirent64) char entries[4096];
  ssize_t count;
  while ((count = getdents64(folder, entries, sizeof entries)) > 0)
    for (ssize_t place = 0; place < count;) {
      const struct dirent64 *each = (const struct dirent64 *)(entries + place);
      place += each->d_reclen;
      remove_entry(removal, folder, each->d_name, depth);
    }
  close(folder);
}

/// How many seconds a folder is emptied for into which a program that has outlived the script still writes. The end of
/// the script waits for that.
enum { PATIENCE = 3 };

void flowsystem_remove_folder(int folder, const char *path) {
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

// MARK: - Files and folders that the process has made

struct flowsystem_temporary {
  /// NULL for none. Who takes the path out is the only one to use it.
  _Atomic(char *) path;
  bool is_folder;
  /// All of them, which are never freed, so that a handler can walk them at any time.
  flowsystem_temporary *next;
  flowsystem_temporary *next_free;
};

static _Atomic(flowsystem_temporary *) first;
static flowsystem_temporary *first_free;
/// The process that has made them: a forked one has none.
static _Atomic(pid_t) owner;

flowsystem_temporary *flowsystem_note_temporary(const char *path, bool is_folder) {
  char *copy = flowsystem_copy_text(path, strlen(path));
  flowsystem_temporary *noted = first_free;
  if (copy != NULL && noted == NULL) {
    noted = flowsystem_zeroed(sizeof *noted);
    if (noted != NULL) {
      noted->next = atomic_load(&first);
      atomic_store(&first, noted);
    }
  } else if (copy != NULL) {
    first_free = noted->next_free;
  }
  if (copy == NULL || noted == NULL) {
    free(copy);
    return NULL;
  }
  atomic_store(&owner, getpid());
  noted->is_folder = is_folder;
  atomic_store(&noted->path, copy);
  return noted;
}

void flowsystem_forget_temporary(flowsystem_temporary *noted) {
  if (noted == NULL) return;
  free(atomic_exchange(&noted->path, NULL));
  noted->next_free = first_free;
  first_free = noted;
}

void flowsystem_remove_temporaries(void) {
  if (getpid() != atomic_load(&owner)) return;
  for (flowsystem_temporary *each = atomic_load(&first); each != NULL; each = each->next) {
    // It isn't freed: the allocator may have been interrupted.
    const char *path = atomic_exchange(&each->path, NULL);
    if (path == NULL) continue;
    if (!each->is_folder) {
      unlink(path);
      continue;
    }
    int folder = open_folder(AT_FDCWD, path);
    if (folder < 0) continue;
    flowsystem_remove_folder(folder, path);
    close(folder);
  }
}
