// Files: copying within the kernel, names of errors, and changes in folders.
#include "CFlowSystem.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

ptrdiff_t flowsystem_copy_range(int from, int to, size_t count) {
  ptrdiff_t copied = copy_file_range(from, NULL, to, NULL, count, 0);
  if (copied >= 0) return copied;
  if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP && errno != EBADF)
    return copied;
  // Between some file systems the kernel copies nothing.
  char bytes[1 << 14];
  ssize_t count_read = read(from, bytes, count < sizeof bytes ? count : sizeof bytes);
  for (ssize_t done = 0; done < count_read;) {
    ssize_t written = write(to, bytes + done, (size_t)(count_read - done));
    if (written > 0) done += written;
    else if (errno != EINTR) return -1;
  }
  return count_read;
}

bool flowsystem_next_part(int fd, int64_t place, int64_t *start, int64_t *end) {
  off_t found = lseek(fd, (off_t)place, SEEK_DATA);
  if (found < 0 && errno == ENXIO) return false;
  *start = found < 0 ? place : found;
  // A file system that doesn't know holes has one part.
  *end = found < 0 ? -1 : lseek(fd, found, SEEK_HOLE);
  return true;
}

void flowsystem_copy_attributes(const char *from, int to, bool with_access) {
  char names[4096], value[4096];
  ssize_t size = listxattr(from, names, sizeof names);
  for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1) {
    const char *name = names + at;
    // These are said of the content: what a program may do, and digests.
    if (strcmp(name, "security.capability") == 0 || strcmp(name, "security.ima") == 0
        || strcmp(name, "security.evm") == 0)
      continue;
    if (!with_access && strcmp(name, "system.posix_acl_access") == 0) continue;
    ssize_t count = getxattr(from, name, value, sizeof value);
    if (count >= 0) fsetxattr(to, name, value, (size_t)count, 0);
  }
}

int64_t flowsystem_file_system(const char *path) {
  struct statfs status;
  // The type is a signed number on some machines, and the list has unsigned ones of 32 bits.
  return statfs(path, &status) == 0 ? (int64_t)(uint32_t)status.f_type : -1;
}

const char *flowsystem_error_name(int number) { return strerrorname_np(number); }

bool flowsystem_has_descriptors(void) {
  int descriptor = eventfd(0, EFD_CLOEXEC);
  if (descriptor < 0) return errno != EMFILE && errno != ENFILE;
  close(descriptor);
  return true;
}

int flowsystem_inotify(void) { return inotify_init1(IN_NONBLOCK | IN_CLOEXEC); }

int flowsystem_watch_folder(int inotify, const char *path, bool follows) {
  uint32_t mask = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO
      | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;
  return inotify_add_watch(inotify, path, follows ? mask : mask | IN_DONT_FOLLOW);
}

void flowsystem_unwatch_folder(int inotify, int watch) { inotify_rm_watch(inotify, watch); }

static uint32_t kinds_of(uint32_t mask) {
  static const struct {
    uint32_t mask, kind;
  } table[] = {
      {IN_CREATE, FLOWSYSTEM_CREATED},
      {IN_MODIFY | IN_CLOSE_WRITE, FLOWSYSTEM_CHANGED},
      {IN_DELETE, FLOWSYSTEM_REMOVED},
      {IN_MOVED_FROM, FLOWSYSTEM_MOVED_FROM},
      {IN_MOVED_TO, FLOWSYSTEM_MOVED_TO},
      {IN_ISDIR, FLOWSYSTEM_FOLDER},
      {IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT, FLOWSYSTEM_GONE},
      {IN_IGNORED, FLOWSYSTEM_ENDED},
      {IN_Q_OVERFLOW, FLOWSYSTEM_OVERFLOW},
  };
  uint32_t kinds = 0;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (mask & table[i].mask) kinds |= table[i].kind;
  }
  return kinds;
}

bool flowsystem_next_file_event(
    const uint8_t *bytes, size_t count, size_t *offset, flowsystem_file_event *event) {
  struct inotify_event raw;
  if (*offset > count || count - *offset < sizeof raw) return false;
  memcpy(&raw, bytes + *offset, sizeof raw);
  if (raw.len > count - *offset - sizeof raw) return false;
  const uint8_t *name = bytes + *offset + sizeof raw;
  *event = (flowsystem_file_event){
      .watch = raw.wd,
      .kinds = kinds_of(raw.mask),
      .cookie = raw.cookie,
      .name = name,
      // It is padded with NUL bytes.
      .name_length = strnlen((const char *)name, raw.len),
  };
  *offset += sizeof raw + raw.len;
  return true;
}
