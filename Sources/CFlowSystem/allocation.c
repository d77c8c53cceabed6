// Memory that this target needs for itself. A test can make one request fail.
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/// Which request of this thread fails, counted from 1; 0 for none.
static _Thread_local uint64_t failing;

static bool is_to_fail(void) { return failing != 0 && --failing == 0; }

void *flowsystem_resize(void *block, size_t size) {
  return is_to_fail() ? NULL : realloc(block, size);
}

void *flowsystem_zeroed(size_t size) { return is_to_fail() ? NULL : calloc(1, size); }

char *flowsystem_copy_text(const char *text, size_t length) {
  return is_to_fail() ? NULL : strndup(text, length);
}

uint64_t flowsystem_fail_allocation(uint64_t n) {
  uint64_t left = failing;
  failing = n;
  return left;
}
