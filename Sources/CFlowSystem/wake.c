// The loop that signals wake.
#include "internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic(int) wake_descriptor = -1;

void flowsystem_wake_by_signals(int wake) { atomic_store(&wake_descriptor, wake); }

void flowsystem_wake_loop(void) {
  int descriptor = atomic_load(&wake_descriptor);
  uint64_t one = 1;
  // A failure needs no handling: the loop is awake then.
  if (descriptor >= 0 && write(descriptor, &one, sizeof one) < 0) errno = 0;
}
