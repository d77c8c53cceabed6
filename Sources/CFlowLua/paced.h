// Loops of C functions that scripts call with lengths of their choice: they look from time to time whether they are to stop.
#ifndef CFLOWLUA_PACED_H
#define CFLOWLUA_PACED_H

#include "internal.h"

/// A loop.
typedef struct pace {
  lua_State *L;
  int rest;  // the index of a function of Lua that does nothing
  uint32_t left;
} pace;

/// How many steps are made without a look: some microseconds.
enum { PACE = 4096 };

static inline pace begin_pace(lua_State *L, int rest) {
  return (pace){.L = L, .rest = rest, .left = PACE};
}

/// Looks whether the code is to stop, and counts the steps as instructions. [-0, +0, e]
void flowlua_rest(pace *pace);

static inline void count_step(pace *pace) {
  if (--pace->left == 0) flowlua_rest(pace);
}

/// Replaces functions of `string` and `table` that could execute for any time by such that stop as other code does.
/// [-0, +0, m]
void flowlua_install_paced(lua_State *L, uint32_t libraries);

/// Adds find, match, gmatch and gsub to the table on top; below it stands the function that does nothing. [-0, +0, m]
void flowlua_add_patterns(lua_State *L);

#endif
