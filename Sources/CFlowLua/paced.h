// Loops of C functions that scripts call with lengths of their choice: they look from time to time whether they are to stop.
#ifndef CFLOWLUA_PACED_H
#define CFLOWLUA_PACED_H

#include "internal.h"

/// A loop.
typedef struct pace {
  lua_State *L;
  int rest;       // the index of a function of Lua that does nothing
  uint32_t each;  // how many steps are made without a look
  uint32_t left;
} pace;

/// Steps without a look: some microseconds, and few of those that may call a metamethod in C, which takes any time.
enum { PACE = 4096, SLOW_PACE = 1 };

static inline pace begin_pace(lua_State *L, int rest, uint32_t each) {
  return (pace){.L = L, .rest = rest, .each = each, .left = each};
}

/// Looks whether the code is to stop, and counts the steps as instructions. [-0, +0, e]
void flowlua_rest(pace *pace);

static inline void count_steps(pace *pace, size_t count) {
  if (count < pace->left) pace->left -= (uint32_t)count;
  else flowlua_rest(pace);
}

static inline void count_step(pace *pace) { count_steps(pace, 1); }

/// How many steps a look at so many bytes is.
static inline size_t steps_of(size_t bytes) { return 1 + (bytes >> 6); }

/// Wraps a function in C at an index, from which `load` reads pieces, so that the reading stops as other code does: nothing
/// in a state without paced functions. [-0, +0, m]
void flowlua_pace_reader(lua_State *L, int index);

/// Replaces functions of `string` and `table` that could execute for any time by such that stop as other code does.
/// [-0, +0, m]
void flowlua_install_paced(lua_State *L, uint32_t libraries);

/// Adds find, match, gmatch and gsub to the table on top; below it stands the function that does nothing. [-0, +0, m]
void flowlua_add_patterns(lua_State *L);

#endif
