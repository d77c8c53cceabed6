// The form in which the code of ops is compared with that of an earlier process: the encoder's bytes,
// with what can't travel written as what is known of it. Nobody reads it back. After all that the code refers to
// comes what it may use without that (additions.c).
#include "codec.h"

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
