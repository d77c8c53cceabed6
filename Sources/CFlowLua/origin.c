// Where in a script something was called.
//
// By the API the line of a call is found by a walk over the function's code, and each time again. So this
// file looks into liblua's own frames, which tell at which instruction a function is: the line is then
// remembered. Frames are only read, and only when some that are made for the purpose look as expected;
// else all goes by the API.
#include <stdio.h>

#include "internal.h"

// MARK: - Frames

/// The beginning of the frame of a function (`CallInfo` in liblua).
typedef struct frame_layout {
  const struct { const void *function; } * base;
  void *top;
  void *previous, *next;
  /// In a Lua function: the next instruction.
  const uint32_t *instruction;
} frame_layout;

/// The observations of `note_frame`.
typedef struct frame_notes {
  int count;
  bool is_as_expected;
  const uint32_t *instructions[2];
} frame_notes;

/// Looks at the frame of its caller. Upvalue: the notes. [-, +0, -]
static int note_frame(lua_State *L) {
  frame_notes *notes = lua_touserdata(L, lua_upvalueindex(1));
  lua_Debug info;
  if (notes->count == 2 || !lua_getstack(L, 1, &info)) return 0;
  lua_getinfo(L, "f", &info);
  const frame_layout *frame = (const void *)info.i_ci;
  if (frame->base->function != lua_topointer(L, -1)) notes->is_as_expected = false;
  notes->instructions[notes->count++] = frame->instruction;
  return 0;
}

static int call_noting(lua_State *L, void *argument) {
  frame_notes *notes = argument;
  static const char code[] = "local note = ... note() note()";
  notes->is_as_expected = lua_version(L) == 504;
  if (!notes->is_as_expected) return 0;
  if (luaL_loadbufferx(L, code, sizeof code - 1, "=", "t") != LUA_OK) return lua_error(L);
  lua_pushlightuserdata(L, notes);
  lua_pushcclosure(L, note_frame, 1);
  lua_callk(L, 1, 0, 0, NULL);
  return 0;
}

static void learn_frames(flowlua_state *state, lua_State *L) {
  if ((state->withheld & FLOWLUA_FRAME_LAYOUT) != 0) state->frames = LAYOUT_OTHER;
  if (state->frames != LAYOUT_UNKNOWN || flowlua_has_hook(L)) return;
  frame_notes notes = {0};
  int32_t status = flowlua_protect(state, call_noting, &notes);
  // Another time, when there is memory.
  if (status != LUA_OK) return flowlua_discard_error(state, status);
  // Each call takes two instructions.
  bool is_expected = notes.is_as_expected && notes.count == 2
      && notes.instructions[1] - notes.instructions[0] == 2;
  state->frames = is_expected ? LAYOUT_EXPECTED : LAYOUT_OTHER;
}

static const void *frame_function(const lua_Debug *frame) {
  return ((const frame_layout *)(const void *)frame->i_ci)->base->function;
}

static const void *frame_instruction(const lua_Debug *frame) {
  return ((const frame_layout *)(const void *)frame->i_ci)->instruction;
}

// MARK: - Origins

int32_t flowlua_where(lua_State *L, int32_t level, char *buffer, int32_t capacity) {
  lua_Debug frame;
  if (capacity < 1) return 0;
  buffer[0] = '\0';
  for (; lua_getstack(L, level, &frame); level++) {
    // With "Sl" lua_getinfo pushes nothing and allocates nothing.
    lua_getinfo(L, "Sl", &frame);
    if (frame.currentline > 0) {
      int length =
          snprintf(buffer, (size_t)capacity, "%s:%d: ", frame.short_src, frame.currentline);
      return length < capacity ? length : capacity - 1;
    }
  }
  return 0;
}

/// The number, from 1, of the name of a source; 0 when there is no memory for it.
static uint32_t source_number(flowlua_state *state, const char *name) {
  for (uint32_t i = 0; i < state->source_count; i++) {
    if (strcmp(state->sources[i], name) == 0) return i + 1;
  }
  if (state->source_count == state->source_capacity) {
    uint32_t capacity = state->source_capacity == 0 ? 8 : state->source_capacity * 2;
    // Chunks made of ever new texts would fill the memory.
    if (capacity > MOST_SOURCES) return 0;
    char(*grown)[LUA_IDSIZE] = flowlua_resize_own(state->sources, capacity * sizeof *grown);
    if (grown == NULL) return 0;
    state->sources = grown;
    state->source_capacity = capacity;
  }
  snprintf(state->sources[state->source_count], LUA_IDSIZE, "%s", name);
  return ++state->source_count;
}

/// The origin of a call from a frame, if it was found before; else 0.
static uint64_t remembered_origin(const flowlua_state *state, const lua_Debug *frame) {
  // A function that was freed isn't found, even if another one has its address: see allocator.c.
  if (state->frames != LAYOUT_EXPECTED || frame_function(frame) != state->origin_function) return 0;
  const void *instruction = frame_instruction(frame);
  for (int i = 0; i < KNOWN_ORIGINS; i++) {
    if (state->origins[i].instruction == instruction) return state->origins[i].origin;
  }
  return 0;
}

/// Finds the origin of a call from a frame, and remembers it; 0 for a function of C. [-0, +0, -]
static uint64_t find_origin(flowlua_state *state, lua_State *L, lua_Debug *frame) {
  // First, as it may have a finalizer run that comes here.
  if (state->frames == LAYOUT_UNKNOWN) learn_frames(state, L);
  // Like flowlua_where, but for the function, for which a C function has room.
  lua_getinfo(L, "fl", frame);
  const void *function = lua_topointer(L, -1);
  lua_settop(L, -2);
  if (frame->currentline <= 0) return 0;
  if (function != state->origin_function) {
    lua_getinfo(L, "S", frame);
    state->last_source = source_number(state, frame->short_src);
    state->origin_function = function;
    // Whatever its size.
    state->noted_sizes = UINT64_MAX;
    memset(state->origins, 0, sizeof state->origins);
  }
  uint64_t origin = (uint64_t)state->last_source << 32 | (uint32_t)frame->currentline;
  if (state->frames == LAYOUT_EXPECTED) {
    state->origins[state->next_origin] = (known_origin){frame_instruction(frame), origin};
    state->next_origin = (state->next_origin + 1) % KNOWN_ORIGINS;
  }
  return origin;
}

uint64_t flowlua_origin(flowlua_state *state, lua_State *L) {
  lua_Debug frame;
  for (int level = 1; level < 10 && lua_getstack(L, level, &frame); level++) {
    uint64_t origin = remembered_origin(state, &frame);
    if (origin == 0) origin = find_origin(state, L, &frame);
    if (origin != 0) return origin;
  }
  return 0;
}

int32_t flowlua_origin_text(
    const flowlua_state *state, uint64_t origin, char *buffer, int32_t capacity) {
  uint32_t source = (uint32_t)(origin >> 32);
  const char *name = source > 0 && source <= state->source_count ? state->sources[source - 1] : "?";
  int length = snprintf(buffer, (size_t)capacity, "%s:%u", name, (uint32_t)origin);
  return length < capacity ? length : capacity - 1;
}

// MARK: - Functions

typedef struct function_place {
  int32_t function;
  char *buffer;
  int32_t capacity;
  int32_t length;
} function_place;

static int find_function(lua_State *L, void *argument) {
  function_place *place = argument;
  lua_Debug info;
  flowlua_push_reference(state_of(L), L, place->function);
  lua_getinfo(L, ">S", &info);
  int length = info.linedefined > 0
      ? snprintf(
          place->buffer, (size_t)place->capacity, "%s:%d: ", info.short_src, info.linedefined)
      : 0;
  place->length = length < place->capacity ? length : place->capacity - 1;
  return 0;
}

int32_t flowlua_where_defined(
    flowlua_state *state, int32_t function, char *buffer, int32_t capacity) {
  if (capacity < 1) return 0;
  buffer[0] = '\0';
  function_place place = {function, buffer, capacity, 0};
  int32_t status = flowlua_protect(state, find_function, &place);
  if (status == LUA_OK) return place.length;
  flowlua_discard_error(state, status);
  return 0;
}
