// Memory that this target needs for itself, beside Lua's. A test can make one request fail.
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "internal.h"

/// Which request of this thread fails, counted from 1; 0 for none.
static _Thread_local uint64_t failing;

static bool is_to_fail(void) { return failing != 0 && --failing == 0; }

// Like CFlowSystem/allocation.c: for programs whose malloc isn't replaced.
__attribute__((weak)) void *__real_malloc(size_t size) { return malloc(size); }
__attribute__((weak)) void *__real_realloc(void *block, size_t size) {
  return realloc(block, size);
}
__attribute__((weak)) void *__real_calloc(size_t count, size_t size) { return calloc(count, size); }
__attribute__((weak)) void *__real_aligned_alloc(size_t alignment, size_t size) {
  return aligned_alloc(alignment, size);
}

void *flowlua_resize_own(void *block, size_t size) {
  return is_to_fail() ? NULL : __real_realloc(block, size);
}

void *flowlua_zeroed_own(size_t size) { return is_to_fail() ? NULL : __real_calloc(1, size); }

void *flowlua_aligned_own(size_t alignment, size_t size) {
  return is_to_fail() ? NULL : __real_aligned_alloc(alignment, size);
}

char *flowlua_copy_own(const char *text) { return is_to_fail() ? NULL : strdup(text); }

uint64_t flowlua_fail_own_allocation(uint64_t n) {
  uint64_t left = failing;
  failing = n;
  return left;
}

// Room that several states share, each on a thread of its own. A state takes room in steps, so that it
// rarely touches what all of them write.

struct flowlua_budget {
  _Atomic(size_t) owners;
  /// SIZE_MAX for none.
  _Atomic(size_t) limit;
  /// The sum that the states were granted. It is beyond the limit when the limit has become lower, or when a state
  /// came with more than was left.
  _Atomic(size_t) taken;
  /// How often a state didn't get what it needed.
  _Atomic(size_t) refusals;
};

static size_t limit_of(size_t bytes) { return bytes == 0 ? SIZE_MAX : bytes; }

flowlua_budget *flowlua_make_budget(size_t limit) {
  flowlua_budget *budget = flowlua_zeroed_own(sizeof *budget);
  if (budget == NULL) return NULL;
  atomic_init(&budget->owners, 1);
  atomic_init(&budget->limit, limit_of(limit));
  atomic_init(&budget->taken, 0);
  atomic_init(&budget->refusals, 0);
  return budget;
}

void flowlua_retain_budget(flowlua_budget *budget) {
  atomic_fetch_add_explicit(&budget->owners, 1, memory_order_relaxed);
}

void flowlua_release_budget(flowlua_budget *budget) {
  if (atomic_fetch_sub_explicit(&budget->owners, 1, memory_order_acq_rel) == 1) free(budget);
}

void flowlua_set_budget_limit(flowlua_budget *budget, size_t bytes) {
  atomic_store_explicit(&budget->limit, limit_of(bytes), memory_order_relaxed);
}

size_t flowlua_budget_limit(const flowlua_budget *budget) {
  size_t limit = atomic_load_explicit(&budget->limit, memory_order_relaxed);
  return limit == SIZE_MAX ? 0 : limit;
}

size_t flowlua_budget_taken(const flowlua_budget *budget) {
  return atomic_load_explicit(&budget->taken, memory_order_relaxed);
}

size_t flowlua_budget_refusals(const flowlua_budget *budget) {
  return atomic_load_explicit(&budget->refusals, memory_order_relaxed);
}

size_t flowlua_budget_room(const flowlua_budget *budget) {
  size_t limit = atomic_load_explicit(&budget->limit, memory_order_relaxed);
  size_t taken = flowlua_budget_taken(budget);
  return taken < limit ? limit - taken : 0;
}

/// Takes what `most` asks for, or what is left of it, but nothing if that is less than `least`.
static size_t take(flowlua_budget *budget, size_t least, size_t most) {
  size_t taken = flowlua_budget_taken(budget), got;
  do {
    size_t limit = atomic_load_explicit(&budget->limit, memory_order_relaxed);
    size_t room = taken < limit ? limit - taken : 0;
    if (room < least) {
      atomic_fetch_add_explicit(&budget->refusals, 1, memory_order_relaxed);
      return 0;
    }
    got = most < room ? most : room;
  } while (!atomic_compare_exchange_weak_explicit(
      &budget->taken, &taken, taken + got, memory_order_relaxed, memory_order_relaxed));
  return got;
}

size_t flowlua_take_room(flowlua_budget *budget, size_t needed) {
  size_t steps = needed / BUDGET_STEP + 1;
  return take(budget, needed, steps > SIZE_MAX / BUDGET_STEP ? needed : steps * BUDGET_STEP);
}

size_t flowlua_take_rest(flowlua_budget *budget, size_t most) { return take(budget, 0, most); }

void flowlua_take_anyway(flowlua_budget *budget, size_t bytes) {
  atomic_fetch_add_explicit(&budget->taken, bytes, memory_order_relaxed);
}

void flowlua_give_room(flowlua_budget *budget, size_t bytes) {
  atomic_fetch_sub_explicit(&budget->taken, bytes, memory_order_relaxed);
}

// The check that Lua leaves to its host when the system gives no more memory.
//
// Lua survives an allocation that fails, Swift doesn't. So a state stops a few MiB before the end: when
// it has grown by a step, it asks the system for a reserve, and gives it back at once. Memory that can't be had
// then is refused, and the script gets "not enough memory" while its host has enough to continue.

enum {
  /// The memory that the host needs to handle an error of a script and to continue, with room for its own stack.
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
  // malloc mostly keeps the system's memory: after a collection the memory is there.
  // Twice the reserve, as it is in pieces. It takes long to find out, so the next look is far away.
  size_t spare = mallinfo2().fordblks;
  if (spare / 2 > RESERVE && more < spare - 2 * RESERVE) {
    size_t distance = (spare - 2 * RESERVE - more) / 4;
    state->looks_from = wanted + (distance > STEP ? distance : STEP);
    return false;
  }
  // The memory that Lua collects now is its own again, a bit less than all: were it none, each small block that
  // handling the error takes would be refused, and make Lua collect everything once more.
  state->looks_from = state->memory_used > SLACK ? state->memory_used - SLACK : 0;
  return true;
}

void flowlua_note_collection(flowlua_state *state) {
  size_t next = state->memory_used + STEP;
  if (state->looks_from > next) state->looks_from = next;
}

// Room on a stack, and lack of memory as an error.

/// Raises LUA_ERRMEM: first in the allocation, then again after the collection that Lua tries.
/// [-0, +0, m]
void flowlua_raise_memory(lua_State *L) {
  flowlua_state *state = state_of(L);
  be_watchful(state);
  state->silent_failures = 2;
  lua_newuserdatauv(L, 1 << 16, 0);
  // Memory was there all the same (the collector was off): nothing has been raised.
  state->silent_failures = 0;
  lua_settop(L, -2);
  luaL_error(L, "not enough memory");
}

int32_t flowlua_make_room(flowlua_state *state, lua_State *L, int32_t count) {
  state->refused = false;
  if (lua_checkstack(L, count)) return LUA_OK;
  return state->refused ? FLOWLUA_NO_MEMORY : FLOWLUA_NO_ROOM;
}

void flowlua_require_room(lua_State *L, int32_t count, const char *purpose) {
  int32_t room = flowlua_make_room(state_of(L), L, count);
  if (room == FLOWLUA_NO_MEMORY) flowlua_raise_memory(L);
  if (room != LUA_OK) luaL_error(L, "stack overflow (%s)", purpose);
}
