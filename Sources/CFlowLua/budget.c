// Room that several states share, each on a thread of its own. A state takes room in steps, so that it
// rarely touches what all of them write.
#include <stdlib.h>

#include "internal.h"

struct flowlua_budget {
  _Atomic(size_t) owners;
  /// SIZE_MAX for none.
  _Atomic(size_t) limit;
  /// What the states were granted. It is beyond the limit when the limit has become lower, or when a state
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
