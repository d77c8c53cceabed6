// A library to preload: the allocation with the number FAILING_ALLOCATION of the process fails, counted from 1. Its
// children don't have it. At the end the count is written to the file ALLOCATION_COUNT.
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

// The functions of the C library, which stand beneath those of this library.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_long count;
static long failing = -1;
static pid_t process;

__attribute__((constructor)) static void begin(void) {
  const char *number = getenv("FAILING_ALLOCATION");
  process = getpid();
  unsetenv("LD_PRELOAD");
  failing = number != NULL ? atol(number) : 0;
}

static void end(void) {
  const char *name = getenv("ALLOCATION_COUNT");
  FILE *file = name != NULL && getpid() == process ? fopen(name, "w") : NULL;
  if (file == NULL) return;
  fprintf(file, "%ld", (long)count);
  fclose(file);
}

// The program ends by this, without destructors.
void _exit(int status) {
  end();
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

static int fails(void) {
  if (failing < 0 || ++count != failing || getpid() != process) return 0;
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *block, size_t size) { return fails() ? NULL : __libc_realloc(block, size); }
void *aligned_alloc(size_t alignment, size_t size) {
  return fails() ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void **block, size_t alignment, size_t size) {
  *block = aligned_alloc(alignment, size);
  return *block == NULL ? ENOMEM : 0;
}
