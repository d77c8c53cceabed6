// Functions from one state into another, and what has changed of them since.
#include "codec.h"

typedef struct packing {
  encoder e;
  int32_t function;
  const uint8_t *before;  // what was packed, to compare with; NULL when packing
  size_t before_count;
  bool is_changed;
} packing;

/// Says which upvalue the first difference is in. [-0, +0, m]
static void name_change(packing *what, lua_State *L) {
  encoder *e = &what->e;
  size_t shorter = what->before_count < e->out->count ? what->before_count : e->out->count;
  size_t offset = 0;
  while (offset < shorter && what->before[offset] == e->out->bytes[offset]) offset++;
  what->is_changed = true;
  if (e->count == 0) return;
  // Up to there both are the same, and so is what leads there. How large a table is stands where it
  // was first named.
  uint32_t object = e->count - 1;
  while (object > 0 && e->objects[object].body > offset) object -= 1;
  while (object != NO_OBJECT) {
    flowlua_push_met(e, L, object);
    if (lua_type(L, -1) == LUA_TFUNCTION) {
      flowlua_name_upvalue(e, L, object, offset);
      return;
    }
    lua_settop(L, -2);
    offset = e->objects[object].named_at;
    object = e->objects[object].parent;
  }
}

static int pack(lua_State *L) {
  packing *what = lua_touserdata(L, 1);
  encoder *e = &what->e;
  lua_settop(L, 0);
  flowlua_require_room(L, LUA_MINSTACK + FLOWLUA_PILE, "a function");
  lua_pushnil(L);
  lua_createtable(L, 0, 0);
  lua_pushnil(L);
  e->root = 1;
  e->queue = 2;
  e->names = 3;
  flowlua_put(L, e->out, flowlua_code_header, sizeof flowlua_code_header);
  flowlua_push_reference(e->state, L, what->function);
  // One that had no name has none now.
  const size_t root = sizeof flowlua_code_header;
  bool had_code = what->before_count > root && what->before[root] == TAG_FUNCTION;
  bool done = had_code ? flowlua_encode_function(e, L, false) : flowlua_encode_top(e, L);
  lua_settop(L, 3);
  done = done && flowlua_encode_bodies(e, L);
  if (what->before == NULL || !done) return 0;
  if (e->out->count != what->before_count
      || memcmp(e->out->bytes, what->before, what->before_count) != 0)
    name_change(what, L);
  return 0;
}

static int32_t pack_protected(packing *what) {
  flowlua_state *state = what->e.state;
  lua_State *L = state->running;
  what->e.is_code = true;
  int32_t status = flowlua_make_room(state, L, LUA_MINSTACK);
  if (status == LUA_OK) {
    lua_pushcfunction(L, pack);
    lua_pushlightuserdata(L, what);
    status = lua_pcall(L, 1, 0, 0);
  }
  flowlua_encoder_close(&what->e);
  return status;
}

int32_t flowlua_pack(
    flowlua_state *state, int32_t function, flowlua_buffer *buffer, flowlua_encode_error *error) {
  packing what = {.function = function};
  size_t start = buffer->count;
  flowlua_encoder_open(&what.e, state, buffer, error);
  int32_t status = pack_protected(&what);
  if (status == LUA_OK && what.e.has_failed) status = FLOWLUA_NOT_ENCODED;
  if (status != LUA_OK) buffer->count = start;
  return status;
}

int32_t flowlua_find_change(
    flowlua_state *state, int32_t function, const uint8_t *bytes, size_t size,
    flowlua_encode_error *change) {
  packing what = {.function = function, .before = bytes, .before_count = size};
  flowlua_buffer now = {0};
  *change = (flowlua_encode_error){.type = LUA_TNONE};
  flowlua_encoder_open(&what.e, state, &now, change);
  int32_t status = pack_protected(&what);
  flowlua_buffer_free(&now);
  // Code with a value that can't travel any more has changed as well.
  if (status == LUA_OK && (what.is_changed || what.e.has_failed)) return FLOWLUA_CHANGED;
  return status;
}

int32_t flowlua_unpack(
    flowlua_state *state, const uint8_t *bytes, size_t size, const char **problem) {
  flowlua_reader r;
  flowlua_reader_open(&r, state, bytes, size, true);
  int32_t status = flowlua_decode_protected(&r, state->running, 1);
  *problem = r.problem;
  return status;
}

// The form in which the code of ops is compared with the code of an earlier process: the encoder's bytes,
// with what can't travel written as what is known of it. Nobody reads it back. After all that the code refers to
// comes what it may use without that (additions.c).

/// The version, and whether moved lines count, as the forms can't be equal otherwise.
static const uint8_t form_header[] = {'F', 'K', 1};

typedef struct forming {
  encoder e;
  int32_t value;
  int32_t arguments;
} forming;

static int form(lua_State *L) {
  forming *what = lua_touserdata(L, 1);
  encoder *e = &what->e;
  lua_settop(L, 0);
  flowlua_require_room(L, LUA_MINSTACK + FLOWLUA_PILE, "a function");
  lua_pushnil(L);
  lua_createtable(L, 0, 0);
  lua_pushnil(L);
  lua_createtable(L, 0, 0);
  lua_pushnil(L);
  e->root = 1;
  e->queue = 2;
  e->names = 3;
  e->seen_globals = 4;
  e->reached = 5;
  flowlua_put(L, e->out, form_header, sizeof form_header);
  put_byte(L, e->out, flowlua_knows_dumps(e, L));
  flowlua_put_number(L, e->out, (uint64_t)lua_version(L));
  const int32_t values[] = {what->value, what->arguments};
  for (int i = 0; i < 2; i++) {
    if (values[i] == 0) lua_pushnil(L);
    else flowlua_push_reference(e->state, L, values[i]);
    part_start start = begin_part(e);
    if (!flowlua_encode_top(e, L)) return 0;
    if (e->parts != NULL)
      flowlua_list_part(e, L, i == 0 ? FLOWLUA_PART_ROOT : FLOWLUA_PART_ARGUMENTS, "", 0, start);
    lua_settop(L, 5);
  }
  if (flowlua_encode_bodies(e, L)) e->finish(e, L);
  return 0;
}

int32_t flowlua_code_form(
    flowlua_state *state, int32_t value, int32_t arguments, flowlua_buffer *buffer,
    flowlua_buffer *parts) {
  forming what = {.value = value, .arguments = arguments};
  flowlua_encode_error error;
  size_t start = buffer->count;
  lua_State *L = state->running;
  int32_t status = flowlua_make_room(state, L, LUA_MINSTACK);
  if (status != LUA_OK) return status;
  flowlua_encoder_open(&what.e, state, buffer, &error);
  what.e.is_code = what.e.is_form = true;
  what.e.parts = parts;
  what.e.finish = flowlua_encode_additions;
  lua_pushcfunction(L, form);
  lua_pushlightuserdata(L, &what);
  status = lua_pcall(L, 1, 0, 0);
  flowlua_encoder_close(&what.e);
  if (status != LUA_OK) buffer->count = start;
  return status;
}
