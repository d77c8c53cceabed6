// Limits of the process's resources that the system enforces, and its end when one is exceeded.
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

static int limit_resource(__rlimit_resource_t resource, rlim_t soft, rlim_t hard) {
  struct rlimit present;
  if (getrlimit(resource, &present) != 0) return errno;
  struct rlimit wanted = {
      .rlim_cur = soft < present.rlim_max ? soft : present.rlim_max,
      .rlim_max = hard < present.rlim_max ? hard : present.rlim_max};
  return setrlimit(resource, &wanted) == 0 ? 0 : errno;
}

int flowsystem_close_from(int first) {
  if (syscall(__NR_close_range, (unsigned)first, ~0u, 0u) == 0) return 0;
  // A container may refuse the call.
  struct rlimit present;
  if (getrlimit(RLIMIT_NOFILE, &present) != 0) return errno;
  if (present.rlim_max > 1 << 20) return ENOSYS;
  for (int fd = first; fd < (int)present.rlim_max; fd++) close(fd);
  return 0;
}

uint64_t flowsystem_most_files(void) {
  struct rlimit present;
  return getrlimit(RLIMIT_NOFILE, &present) == 0 ? present.rlim_max : 0;
}

int flowsystem_limit_files(uint64_t count) {
  struct rlimit present;
  if (getrlimit(RLIMIT_NOFILE, &present) != 0) return errno;
  if (count > present.rlim_max) return EPERM;
  return limit_resource(RLIMIT_NOFILE, count, count);
}

/// The process notices by itself. Not SIG_IGN, which children would inherit.
static void ignore_used_up(int number) { (void)number; }

int flowsystem_limit_processor_time(uint64_t seconds, uint64_t grace) {
  struct sigaction action = {.sa_handler = ignore_used_up, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGXCPU, &action, NULL) != 0) return errno;
  rlim_t hard = seconds > RLIM_INFINITY - grace ? RLIM_INFINITY : seconds + grace;
  return limit_resource(RLIMIT_CPU, seconds, hard);
}

int64_t flowsystem_processor_time(void) {
  struct timespec used;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) return 0;
  return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

/// The message of a process at its end.
typedef struct {
  const void *message;
  size_t size;
  atomic_bool is_said;
} last_words;

static void *say(void *argument) {
  last_words *words = argument;
  flowsystem_restore_terminal();
  flowsystem_abandon_status();
  (void)!write(STDERR_FILENO, words->message, words->size);
  // The buffered output is printed, unless another thread is using the stream.
  if (ftrylockfile(stdout) == 0) {
    fflush_unlocked(stdout);
    funlockfile(stdout);
  }
  atomic_store(&words->is_said, true);
  return NULL;
}

/// How long the end waits for a reader of the output, in milliseconds.
enum { PATIENCE = 500 };

_Noreturn void flowsystem_end_at_once(int status, const void *message, size_t size) {
  last_words words = {message, size, false};
  pthread_t thread;
  // A thread of its own, because nobody may read the output.
  if (pthread_create(&thread, NULL, say, &words) == 0) {
    for (int i = 0; i < PATIENCE && !atomic_load(&words.is_said); i++) {
      struct timespec millisecond = {.tv_nsec = 1000000};
      nanosleep(&millisecond, NULL);
    }
  } else {
    struct pollfd reader = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&reader, 1, 0) == 1) (void)!write(STDERR_FILENO, message, size);
  }
  flowsystem_leave();
  _exit(status);
}

// The use of freed memory by malloc, and the end of the process when there is none.

void flowsystem_keep_freed_memory(void) {
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_TOP_PAD, 256 << 10);
  // Without this, each block of more than 128 KiB would be taken from the system separately.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
}

/// How much stack a script's nested calls may use: Lua allows 200 C calls.
enum { STACK = 1 << 20 };

/// Extends the main thread's stack by this size. The system would extend it on use, which without
/// memory would be a SIGSEGV; only the one page takes memory.
static __attribute__((noinline, no_sanitize("address"))) void extend_stack(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur / 2 < STACK) return;
  volatile char depth[STACK];
  depth[0] = 0;
}

// No part of it needs memory.
_Noreturn void flowsystem_exit_without_memory(void) {
  // Prints the buffered output, unless another thread is using the stream.
  if (ftrylockfile(stdout) == 0) {
    fflush_unlocked(stdout);
    funlockfile(stdout);
  }
  flowsystem_restore_terminal();
  flowsystem_abandon_status();
  static const char sentence[] = ": not enough memory for the program itself\n";
  const char *name = flowsystem_program();
  if (write(STDERR_FILENO, name, strlen(name)) >= 0)
    (void)!write(STDERR_FILENO, sentence, sizeof sentence - 1);
  flowsystem_leave();
  _exit(EXIT_FAILURE);
}

// Swift's runtime, libstdc++ and the code that the Swift compiler makes call malloc at hundreds of places that don't look
// at what it returns, many of them before main. The release program calls these functions instead (`--wrap`, see
// Package.swift), and never continues without memory: a handler of SIGSEGV or SIGILL couldn't distinguish one such fault
// from another. Code that can do without the memory calls the `__real_` functions.

void *__wrap_malloc(size_t size) {
  void *block = __real_malloc(size);
  if (block == NULL) flowsystem_exit_without_memory();
  return block;
}

void *__wrap_calloc(size_t count, size_t size) {
  void *block = __real_calloc(count, size);
  if (block == NULL) flowsystem_exit_without_memory();
  return block;
}

void *__wrap_realloc(void *block, size_t size) {
  void *moved = __real_realloc(block, size);
  // Without a size the block was freed.
  if (moved == NULL && size != 0) flowsystem_exit_without_memory();
  return moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  void *block = __real_aligned_alloc(alignment, size);
  if (block == NULL) flowsystem_exit_without_memory();
  return block;
}

int __wrap_posix_memalign(void **block, size_t alignment, size_t size) {
  if (__real_posix_memalign(block, alignment, size) != 0) flowsystem_exit_without_memory();
  return 0;
}

void flowsystem_end_without_memory(void) {
  extend_stack();
  // A thread's own arena takes 64 MiB of address space and, when there isn't enough, a page for
  // each block, however small: the memory for Swift would be used up before a Lua state noticed.
  struct rlimit space;
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) mallopt(M_ARENA_MAX, 1);
}
