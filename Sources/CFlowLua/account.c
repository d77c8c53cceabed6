// Accounts: the memory of parts of a state's code, such as the requests of a host.
//
// While an account is in use, each block that is allocated, or grows, counts in it until it is freed, whichever code
// frees it. The blocks are in an index by their addresses; a state without accounts has none.
#include <stdlib.h>

#include "internal.h"

struct flowlua_account {
  size_t limit;
  size_t used;
  size_t block_count;
  bool has_refused;
  bool is_released;
};

struct counted_block {
  const void *block;  // NULL: free
  flowlua_account *account;
  size_t size;  // at most the size of the block
};

flowlua_account *flowlua_make_account(size_t limit) {
  flowlua_account *account = flowlua_zeroed_own(sizeof *account);
  if (account != NULL) account->limit = limit;
  return account;
}

static void free_if_over(flowlua_account *account) {
  if (account->is_released && account->block_count == 0) free(account);
}

void flowlua_release_account(flowlua_account *account) {
  account->is_released = true;
  free_if_over(account);
}

size_t flowlua_account_used(const flowlua_account *account) { return account->used; }

bool flowlua_account_has_refused(const flowlua_account *account) { return account->has_refused; }

void flowlua_use_account(flowlua_state *state, flowlua_account *account) {
  state->account = account;
  if (account == NULL) return;
  // The blocks that come, and those that go.
  be_watchful(state);
  state->noted_sizes = UINT64_MAX;
}

// MARK: - The index: open addressing, without gaps in a row

enum { FIRST_CAPACITY = 256 };

static size_t home_of(const flowlua_state *state, const void *block) {
  uint64_t hash = ((uint64_t)(uintptr_t)block >> 4) * 0x9E3779B97F4A7C15u;
  return (size_t)(hash >> 32) & (state->counted_capacity - 1);
}

/// The place of a block, or the one where it belongs.
static size_t place_of(const flowlua_state *state, const void *block) {
  size_t place = home_of(state, block);
  while (state->counted[place].block != NULL && state->counted[place].block != block)
    place = (place + 1) & (state->counted_capacity - 1);
  return place;
}

/// Gives the index so many places; false without memory. It is a part of the state's memory.
static bool set_capacity(flowlua_state *state, size_t capacity) {
  counted_block *made = flowlua_zeroed_own(capacity * sizeof *made);
  if (made == NULL) return false;
  counted_block *old = state->counted;
  size_t old_capacity = state->counted_capacity;
  state->counted = made;
  state->counted_capacity = capacity;
  state->memory_used += capacity * sizeof *made - old_capacity * sizeof *made;
  for (size_t i = 0; i < old_capacity; i++)
    if (old[i].block != NULL) made[place_of(state, old[i].block)] = old[i];
  free(old);
  return true;
}

/// Makes room for one more; false without memory.
static bool make_place(flowlua_state *state) {
  if (state->counted_count + 1 <= state->counted_capacity / 4 * 3) return true;
  return set_capacity(
      state, state->counted_capacity == 0 ? FIRST_CAPACITY : state->counted_capacity * 2);
}

static void add_block(
    flowlua_state *state, const void *block, flowlua_account *account, size_t size) {
  size_t place = place_of(state, block);
  state->counted[place] = (counted_block){block, account, size};
  state->counted_count += 1;
  account->block_count += 1;
  account->used += size;
}

/// Removes the block at a place; those after it move up.
static void remove_at(flowlua_state *state, size_t place) {
  size_t mask = state->counted_capacity - 1;
  flowlua_account *account = state->counted[place].account;
  account->used -= state->counted[place].size;
  account->block_count -= 1;
  state->counted_count -= 1;
  for (size_t next = (place + 1) & mask; state->counted[next].block != NULL;
       next = (next + 1) & mask) {
    size_t home = home_of(state, state->counted[next].block);
    if (((next - home) & mask) < ((next - place) & mask)) continue;
    state->counted[place] = state->counted[next];
    place = next;
  }
  state->counted[place].block = NULL;
  free_if_over(account);
}

// MARK: - For the allocator

bool flowlua_account_allows(flowlua_state *state, size_t more) {
  flowlua_account *account = state->account;
  bool fits = account->used <= account->limit && more <= account->limit - account->used;
  return fits && make_place(state);
}

void flowlua_note_refusal(flowlua_account *account, bool is_own) { account->has_refused = is_own; }

void flowlua_count_resized(
    flowlua_state *state, const void *before, size_t held, const void *block, size_t size) {
  size_t more = size > held ? size - held : 0;
  flowlua_account *account = more > 0 ? state->account : NULL;
  size_t counted = 0;
  if (before != NULL && state->counted_count > 0) {
    size_t place = place_of(state, before);
    if (state->counted[place].block != NULL) {
      counted = state->counted[place].size;
      // The account in use when it grows has all of it from now on.
      if (account == NULL) account = state->counted[place].account;
      else counted += more;
      // Not freed with its last block: that follows.
      account->block_count += 1;
      remove_at(state, place);
      account->block_count -= 1;
      add_block(state, block, account, counted < size ? counted : size);
      return;
    }
  }
  if (account != NULL) add_block(state, block, account, more);
}

void flowlua_uncount_block(flowlua_state *state, const void *block) {
  size_t place = place_of(state, block);
  if (state->counted[place].block == NULL) return;
  remove_at(state, place);
  // Without memory for a smaller index, the large one stays.
  if (state->counted_capacity > FIRST_CAPACITY
      && state->counted_count < state->counted_capacity / 8)
    set_capacity(state, state->counted_capacity / 2);
}
