// What Lua leaves to its host when the system gives no more memory.
//
// Lua survives an allocation that fails, Swift doesn't. So a state stops a few MiB before the end: when
// it has grown by a step, it asks the system for a reserve, and gives it back at once. What can't be
// had then is refused, and the script gets "not enough memory" while its host has enough to continue.
#include <malloc.h>
#include <sys/mman.h>

#include "internal.h"

enum {
  /// What the host needs to handle an error of a script and to continue, with room for its own stack.
  RESERVE = 4 << 20,
  /// How far a state grows between two looks. Each thread may have a state: a few of them are less than
  /// the reserve.
  STEP = 512 << 10,
  /// How much less a state may hold after it was refused memory, before it looks again.
  SLACK = 64 << 10,
};

/// Whether the system would give so much.
static bool is_to_be_had(size_t size) {
  void *probe = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return false;
  munmap(probe, size);
  return true;
}

bool flowlua_reserve_exists(void) { return is_to_be_had(RESERVE); }

bool flowlua_takes_reserve(flowlua_state *state, size_t held, size_t size) {
  size_t more = size - held, wanted = state->memory_used + more;
  if (more > PTRDIFF_MAX - RESERVE) return true;
  if (is_to_be_had(more + RESERVE)) {
    state->looks_from = wanted + STEP;
    return false;
  }
  // What malloc has taken from the system it keeps, mostly: after a collection the memory is there.
  // Twice the reserve, as it is in pieces. It takes long to find out, so the next look is far away.
  size_t spare = mallinfo2().fordblks;
  if (spare / 2 > RESERVE && more < spare - 2 * RESERVE) {
    size_t distance = (spare - 2 * RESERVE - more) / 4;
    state->looks_from = wanted + (distance > STEP ? distance : STEP);
    return false;
  }
  // What Lua collects now is its own again, a bit less than all: were it none, each small block that
  // handling the error takes would be refused, and make Lua collect everything once more.
  state->looks_from = state->memory_used > SLACK ? state->memory_used - SLACK : 0;
  return true;
}

void flowlua_note_collection(flowlua_state *state) {
  size_t next = state->memory_used + STEP;
  if (state->looks_from > next) state->looks_from = next;
}
