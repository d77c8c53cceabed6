// A file that grows by whole lines, written on a thread of its own: neither a disk nor the reader of a
// pipe keeps the program waiting.
//
// A process that is killed within write(2) leaves a part of what it wrote, as the kernel copies page by
// page: of 341 processes that were killed while they wrote, 12 left a part of a line. Readers ignore a last line
// without an end, and the next process begins a line of its own.
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/// At most so much waits to be written; of what exceeds it nothing is kept.
#define LIMIT ((size_t)32 << 20)
/// The thread writes when so much waits, or when the oldest line has waited for this time.
#define BATCH ((size_t)64 << 10)
#define DELAY_NS 50000000

struct flowsystem_line_file {
  /// Guards all that follows up to `path`.
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  char *queue;
  size_t count;
  size_t room;
  /// How many lines haven't been written, and how many of them never will be.
  uint64_t waiting;
  uint64_t dropped;
  /// Why nothing more is taken; 0 as long as it is.
  int problem;
  bool ends;
  bool has_ended;
  bool has_thread;

  // The rest is the thread's.
  pthread_t thread;
  char *path;
  int fd;
  bool is_file;
  bool is_terminal;
};

/// The time after a number of nanoseconds.
static struct timespec time_after(int64_t nanoseconds) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  int64_t sum = (int64_t)time.tv_nsec + nanoseconds % 1000000000;
  time.tv_sec += (time_t)(nanoseconds / 1000000000 + sum / 1000000000);
  time.tv_nsec = (long)(sum % 1000000000);
  return time;
}

/// Removes the part of a line that was written before the disk was full, if it is the end of the file.
static void remove_partial_line(int fd, size_t count) {
  struct stat status;
  off_t end = lseek(fd, 0, SEEK_CUR);
  if (count == 0 || end < (off_t)count || fstat(fd, &status) != 0) return;
  // A failure leaves the part there.
  if (status.st_size == end && ftruncate(fd, end - (off_t)count) != 0) errno = 0;
}

/// Writes all bytes; returns how many were written, with errno set when these aren't all.
static size_t write_all(int fd, const char *bytes, size_t count) {
  size_t done = 0;
  while (done < count) {
    ssize_t written = write(fd, bytes + done, count - done);
    if (written > 0) {
      done += (size_t)written;
    } else if (written < 0 && errno == EAGAIN) {
      struct pollfd ready = {.fd = fd, .events = POLLOUT};
      poll(&ready, 1, -1);
    } else if (written == 0 || errno != EINTR) {
      if (written == 0) errno = EIO;
      break;
    }
  }
  return done;
}

static uint64_t count_lines(const char *bytes, size_t count) {
  uint64_t lines = 0;
  for (size_t at = 0; at < count; at++) lines += bytes[at] == '\n';
  return lines;
}

/// Writes whole lines; returns 0 or an errno, and sets how many bytes of whole lines were written.
static int write_lines(flowsystem_line_file *file, const char *bytes, size_t count, size_t *whole) {
  if (file->is_terminal) flowsystem_hide_status();
  size_t done = write_all(file->fd, bytes, count);
  *whole = done;
  if (done == count) return 0;
  int problem = errno;
  size_t part = 0;
  while (part < done && bytes[done - part - 1] != '\n') part++;
  *whole -= part;
  if (file->is_file) remove_partial_line(file->fd, part);
  return problem;
}

/// Writes the queue that was taken, in pieces of whole lines. Bytes that a pipe takes at once aren't mixed with the
/// output of other programs.
static int write_queue(flowsystem_line_file *file, const char *bytes, size_t count) {
  size_t most = file->is_file ? (size_t)256 << 10 : PIPE_BUF;
  while (count > 0) {
    size_t piece = count;
    if (piece > most) {
      const char *end = memrchr(bytes, '\n', most);
      if (end == NULL) end = memchr(bytes, '\n', count);
      if (end != NULL) piece = (size_t)(end - bytes) + 1;
    }
    size_t whole = 0;
    int problem = write_lines(file, bytes, piece, &whole);
    uint64_t lines = count_lines(bytes, whole);
    pthread_mutex_lock(&file->mutex);
    file->waiting -= lines < file->waiting ? lines : file->waiting;
    pthread_mutex_unlock(&file->mutex);
    if (problem != 0) return problem;
    bytes += piece;
    count -= piece;
  }
  return 0;
}

/// Waits for lines and takes them; returns NULL at the end. Called with the lock held.
static char *take_queue(flowsystem_line_file *file, size_t *count) {
  while (file->count == 0 && !file->ends) pthread_cond_wait(&file->changed, &file->mutex);
  struct timespec until = time_after(DELAY_NS);
  while (file->count < BATCH && !file->ends
         && pthread_cond_timedwait(&file->changed, &file->mutex, &until) == 0) {
  }
  char *queue = file->queue;
  *count = file->count;
  if (*count == 0) return NULL;
  file->queue = NULL;
  file->count = 0;
  file->room = 0;
  return queue;
}

static void *write_until_end(void *context) {
  flowsystem_line_file *file = context;
  int problem = 0;
  // A pipe with a name has to wait for its reader.
  if (file->fd < 0) {
    do file->fd = open(file->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    while (file->fd < 0 && errno == EINTR);
    if (file->fd < 0) problem = errno;
  }
  pthread_mutex_lock(&file->mutex);
  size_t count = 0;
  char *queue = NULL;
  while (problem == 0 && (queue = take_queue(file, &count)) != NULL) {
    pthread_mutex_unlock(&file->mutex);
    problem = write_queue(file, queue, count);
    free(queue);
    pthread_mutex_lock(&file->mutex);
  }
  if (problem != 0) {
    file->problem = problem;
    file->count = 0;
  }
  file->has_ended = true;
  pthread_cond_broadcast(&file->changed);
  pthread_mutex_unlock(&file->mutex);
  return NULL;
}

/// Makes room for a line; returns 0 or an errno. Called with the lock held.
static int make_room(flowsystem_line_file *file, size_t count) {
  if (count > LIMIT || file->count > LIMIT - count) return ENOBUFS;
  if (file->room - file->count >= count) return 0;
  size_t room = file->room == 0 ? 4096 : file->room;
  while (room - file->count < count) room *= 2;
  char *queue = flowsystem_resize(file->queue, room);
  if (queue == NULL) return ENOMEM;
  file->queue = queue;
  file->room = room;
  return 0;
}

/// Queues a line; returns 0 or an errno. Called with the lock held.
static int queue_line(flowsystem_line_file *file, const char *line, size_t count) {
  int problem = make_room(file, count);
  if (problem != 0) return problem;
  memcpy(file->queue + file->count, line, count);
  file->count += count;
  file->waiting++;
  return 0;
}

/// Starts the thread, unless it was started; returns 0 or an errno. Called with the lock held.
///
/// It starts with the first line, not when the file is opened: a process enters a sandbox after that, while it
/// has one thread.
static int start_thread(flowsystem_line_file *file) {
  if (file->has_thread) return 0;
  // Signals are for the threads of the program; a pipe without a reader is an error here.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int problem = pthread_create(&file->thread, NULL, write_until_end, file);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  file->has_thread = problem == 0;
  return problem;
}

/// Opens the file; returns 0 or an errno.
static int open_file(flowsystem_line_file *file, const char *path) {
  struct stat status;
  if (path == NULL) {
    file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    file->is_terminal = isatty(STDOUT_FILENO) != 0;
  } else {
    // A pipe with a name is opened by the thread.
    if (stat(path, &status) == 0 && S_ISFIFO(status.st_mode)) {
      file->path = flowsystem_copy_text(path, strlen(path));
      return file->path == NULL ? ENOMEM : 0;
    }
    file->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
  }
  if (file->fd < 0) return errno;
  if (fstat(file->fd, &status) != 0) return errno;
  file->is_file = S_ISREG(status.st_mode);
  if (path != NULL && isatty(file->fd) != 0) file->is_terminal = true;
  if (path == NULL || !file->is_file || status.st_size == 0) return 0;
  // The last line of an earlier process may be incomplete: lines begin after it.
  int reader = open(path, O_RDONLY | O_CLOEXEC);
  char last = '\n';
  if (reader >= 0 && pread(reader, &last, 1, status.st_size - 1) == 1 && last != '\n')
    queue_line(file, "\n", 1);
  if (reader >= 0) close(reader);
  return 0;
}

/// Frees the file, whose thread has ended or never was.
static void release(flowsystem_line_file *file) {
  if (file->fd >= 0) close(file->fd);
  pthread_cond_destroy(&file->changed);
  pthread_mutex_destroy(&file->mutex);
  free(file->queue);
  free(file->path);
  free(file);
}

flowsystem_line_file *flowsystem_line_file_open(const char *path) {
  flowsystem_line_file *file = flowsystem_zeroed(sizeof *file);
  if (file == NULL) {
    errno = ENOMEM;
    return NULL;
  }
  file->fd = -1;
  pthread_mutex_init(&file->mutex, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&file->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  int problem = open_file(file, path);
  if (problem == 0) return file;
  release(file);
  errno = problem;
  return NULL;
}

int flowsystem_line_file_append(flowsystem_line_file *file, const char *line, size_t count) {
  pthread_mutex_lock(&file->mutex);
  int problem = file->problem;
  bool was_small = file->count < BATCH;
  bool was_empty = file->count == 0;
  if (problem == 0) problem = start_thread(file);
  if (problem == 0) problem = queue_line(file, line, count);
  if (problem == 0) {
    if (was_empty || (was_small && file->count >= BATCH)) pthread_cond_signal(&file->changed);
  } else {
    // Lines after a line that was dropped are dropped too: no reader sees a gap.
    file->problem = problem;
    file->dropped++;
  }
  pthread_mutex_unlock(&file->mutex);
  return problem;
}

uint64_t flowsystem_line_file_close(flowsystem_line_file *file, int64_t timeout_ns, int *problem) {
  struct timespec until = time_after(timeout_ns);
  pthread_mutex_lock(&file->mutex);
  file->ends = true;
  // It also opens a pipe with a name, whose reader waits for that.
  if (start_thread(file) != 0) file->has_ended = true;
  pthread_cond_broadcast(&file->changed);
  while (!file->has_ended && pthread_cond_timedwait(&file->changed, &file->mutex, &until) == 0) {
  }
  uint64_t lost = file->dropped + file->waiting;
  bool has_ended = file->has_ended;
  *problem = file->problem;
  pthread_mutex_unlock(&file->mutex);
  // A thread that waits for a reader still uses the file; it ends with the process.
  if (!has_ended) return lost;
  if (file->has_thread) pthread_join(file->thread, NULL);
  release(file);
  return lost;
}
