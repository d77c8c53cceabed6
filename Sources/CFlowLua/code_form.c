// The parts that the encoder writes in forms of code only (code_codec.c): objects of the host, globals and modules that
// functions name, and tables whose keys have no order.
#include "codec.h"

static void put_text(lua_State *L, flowlua_buffer *out, const char *bytes, size_t count) {
  flowlua_put_number(L, out, count);
  flowlua_put(L, out, bytes, count);
}

/// [-0, +0, m]
static void put_type_name(encoder *e, lua_State *L) {
  flowlua_require_room(L, 8, "a value");
  size_t count = 0;
  const char *name = flowlua_type_name(e->state, L, -1, &count);
  put_text(L, e->out, name, count);
}

bool flowlua_encode_foreign(encoder *e, lua_State *L) {
  put_byte(L, e->out, TAG_FOREIGN);
  put_type_name(e, L);
  return true;
}

bool flowlua_encode_host_object(encoder *e, lua_State *L) {
  uint32_t index;
  if (flowlua_meet(e, L, &index)) {
    put_byte(L, e->out, TAG_HOST);
  } else {
    put_byte(L, e->out, TAG_KNOWN);
    flowlua_put_number(L, e->out, index);
  }
  return true;
}

/// Writes what an object holds, which is on top. [-0, +0, m]
static bool encode_content(encoder *e, lua_State *L) {
  part_start start = begin_part(e);
  if (!flowlua_encode_top(e, L)) return false;
  if (e->parts != NULL) flowlua_list_part(e, L, FLOWLUA_PART_CONTENT, "", 0, start);
  return true;
}

bool flowlua_encode_host_body(encoder *e, lua_State *L) {
  put_type_name(e, L);
  int32_t mark = flowlua_mark_at(e->state, L, -1);
  if (mark != 0) {
    flowlua_put_number(L, e->out, (uint64_t)mark);
    lua_getiuservalue(L, -1, 1);
    return encode_content(e, L);
  }
  object_block *block = flowlua_block_at(e->state, L, -1);
  flowlua_value value = {0};
  int32_t answer = 0;
  if (block != NULL && block->pointer != NULL)
    answer = e->state->callbacks.describe_object(e->state, block->pointer, &value);
  if (answer < 0) flowlua_raise_memory(L);
  put_byte(L, e->out, (uint8_t)answer);
  if (answer == 0) return true;
  flowlua_push_plain(L, e->state, &value);
  return encode_content(e, L);
}

// MARK: - Globals

/// Pushes what a global counts with. The command line isn't the script's code but for the words after the
/// script, as those before say where it and the program are. The name is on top. [-0, +1, m]
static void push_global(lua_State *L) {
  const char *name = lua_tolstring(L, -1, NULL);
  lua_pushglobaltable(L);
  lua_pushvalue(L, -2);
  lua_rawget(L, -2);
  lua_replace(L, -2);
  if (strcmp(name, "arg") != 0 || lua_type(L, -1) != LUA_TTABLE) return;
  lua_createtable(L, 0, 0);
  for (lua_Integer i = 1; lua_rawgeti(L, -2, i) != LUA_TNIL; i++) lua_rawseti(L, -2, i);
  lua_settop(L, -2);
  lua_replace(L, -2);
}

bool flowlua_encode_global(encoder *e, lua_State *L) {
  int name = lua_gettop(L);
  lua_pushvalue(L, name);
  bool is_seen = lua_rawget(L, e->seen_globals) != LUA_TNIL;
  lua_settop(L, name);
  if (!is_seen) {
    lua_pushvalue(L, name);
    lua_pushboolean(L, true);
    lua_rawset(L, e->seen_globals);
    push_global(L);
    if (lua_type(L, -1) != LUA_TNIL) {
      size_t count;
      const char *bytes = lua_tolstring(L, name, &count);
      put_byte(L, e->out, TAG_STRING);
      put_text(L, e->out, bytes, count);
      part_start start = begin_part(e);
      if (!flowlua_encode_top(e, L)) return false;
      if (e->parts != NULL) flowlua_list_part(e, L, FLOWLUA_PART_GLOBAL, bytes, count, start);
    }
  }
  lua_settop(L, name - 1);
  return true;
}

/// Whether a list has a string. [-0, +0, -]
static bool has_string(lua_State *L, int list, const char *string) {
  int top = lua_gettop(L);
  bool is_found = false;
  lua_Integer last = (lua_Integer)lua_rawlen(L, list);
  for (lua_Integer i = 1; !is_found && i <= last; i++) {
    is_found =
        lua_rawgeti(L, list, i) == LUA_TSTRING && strcmp(lua_tolstring(L, -1, NULL), string) == 0;
    lua_settop(L, top);
  }
  return is_found;
}

bool flowlua_encode_globals_metatable(encoder *e, lua_State *L) {
  int top = lua_gettop(L);
  lua_pushglobaltable(L);
  if (lua_getmetatable(L, -1)) {
    lua_pushboolean(L, true);
    if (lua_rawget(L, e->seen_globals) == LUA_TNIL) {
      lua_pushboolean(L, true);
      lua_pushvalue(L, -1);
      lua_rawset(L, e->seen_globals);
      lua_settop(L, top + 2);
      put_byte(L, e->out, TAG_TYPED);
      if (!flowlua_encode_top(e, L)) return false;
    }
  }
  lua_settop(L, top);
  return true;
}

/// Notes a library; writes another module, without a file, as it is in package.loaded, or the function in
/// package.preload that makes it. Its name is on top. [-0, +0, m]
static bool put_loaded(encoder *e, lua_State *L, bool is_library) {
  static const char *const tables[] = {LUA_LOADED_TABLE, LUA_PRELOAD_TABLE};
  int name = lua_gettop(L);
  for (int i = 0; i < 2; i++) {
    lua_pushstring(L, tables[i]);
    if (lua_rawget(L, LUA_REGISTRYINDEX) == LUA_TTABLE) {
      lua_pushvalue(L, name);
      if (lua_rawget(L, -2) != LUA_TNIL) {
        size_t count;
        const char *text = lua_tolstring(L, name, &count);
        i = 2;
        if (is_library) {
          flowlua_note_library(e, L, lua_gettop(L), text, count);
        } else {
          put_byte(L, e->out, TAG_MODULE);
          part_start start = begin_part(e);
          if (!flowlua_encode_top(e, L)) return false;
          if (e->parts != NULL) flowlua_list_part(e, L, FLOWLUA_PART_MODULE, text, count, start);
        }
      }
    }
    lua_settop(L, name);
  }
  return true;
}

/// Writes the modules that a function may require while it runs: those that have the name of one of its
/// constants. The list of constants is on top. [-0, +0, m]
static bool put_required(encoder *e, lua_State *L) {
  int names = lua_gettop(L);
  lua_Integer last = (lua_Integer)lua_rawlen(L, names);
  if (!has_string(L, names, "require")) return true;
  for (lua_Integer i = 1; i <= last; i++) {
    size_t count;
    uint8_t digest[FLOWLUA_MODULE_DIGEST];
    lua_rawgeti(L, names, i);
    const char *name = lua_tolstring(L, -1, &count);
    int32_t form = e->state->callbacks.describe_module(e->state, name, count, digest);
    if (form == FLOWLUA_MODULE_FAILED) flowlua_raise_memory(L);
    if (form == FLOWLUA_MODULE_DIGESTED || form == FLOWLUA_MODULE_UNREADABLE) {
      part_start start = begin_part(e);
      put_byte(L, e->out, TAG_MODULE);
      put_text(L, e->out, name, count);
      put_byte(L, e->out, (uint8_t)form);
      if (form == FLOWLUA_MODULE_DIGESTED) flowlua_put(L, e->out, digest, sizeof digest);
      if (e->parts != NULL) flowlua_list_part(e, L, FLOWLUA_PART_MODULE, name, count, start);
    }
    bool is_library = form == FLOWLUA_MODULE_NAMED;
    if ((is_library || form == FLOWLUA_MODULE_UNKNOWN) && !put_loaded(e, L, is_library))
      return false;
    lua_settop(L, names);
  }
  return true;
}

/// Whether the function on top has the globals as an upvalue. [-0, +0, -]
static bool has_globals(encoder *e, lua_State *L) {
  int function = lua_gettop(L);
  bool is_found = false;
  for (int n = 1; !is_found && lua_getupvalue(L, function, n) != NULL; n++) {
    is_found = lua_type(L, -1) == LUA_TTABLE && flowlua_is_globals(e, L);
    lua_settop(L, function);
  }
  return is_found;
}

// Which globals a function uses isn't known, but each has its name among the function's string constants;
// without these, any may be used. A constant that is no global's name, yet reads like one, does no harm:
// what has that name counts too.
bool flowlua_encode_used_globals(encoder *e, lua_State *L) {
  int function = lua_gettop(L);
  if (has_globals(e, L)) {
    size_t code = e->objects[e->current].named_at + 1;
    uint32_t length;
    memcpy(&length, e->out->bytes + code, sizeof length);
    lua_Integer first = 1, last;
    if (flowlua_push_constants(e, L, code + sizeof length, length)) {
      last = (lua_Integer)lua_rawlen(L, -1);
      if (!put_required(e, L)) return false;
    } else {
      lua_pushglobaltable(L);
      first = 0;
      last = flowlua_push_sorted_keys(L, lua_gettop(L), 0) - 1;
    }
    int names = lua_gettop(L);
    for (lua_Integer i = first; i <= last; i++) {
      if (lua_rawgeti(L, names, i) == LUA_TSTRING && !flowlua_encode_global(e, L)) return false;
      lua_settop(L, names);
    }
    if (!flowlua_encode_globals_metatable(e, L)) return false;
    lua_settop(L, function);
  }
  put_byte(L, e->out, TAG_NIL);
  return true;
}

// MARK: - Entries without an order

/// Writes the values at 1 and 2, with the names at 3. [-3, +0, m]
static int encode_alone(lua_State *L) {
  encoder *e = lua_touserdata(L, 4);
  lua_settop(L, 3);
  flowlua_require_room(L, LUA_MINSTACK + FLOWLUA_PILE, "a value");
  lua_pushnil(L);
  lua_createtable(L, 0, 0);
  lua_createtable(L, 0, 0);
  lua_pushnil(L);
  e->names = 3;
  e->root = 4;
  e->queue = 5;
  e->seen_globals = 6;
  e->reached = 7;
  for (int i = 1; i <= 2; i++) {
    lua_pushvalue(L, i);
    if (!flowlua_encode_top(e, L)) return 0;
    lua_settop(L, 7);
  }
  if (flowlua_encode_bodies(e, L)) e->finish(e, L);
  return 0;
}

/// Pushes the form of an entry by itself. Key and value are on top. [-2, +1, e]
static void push_entry_form(encoder *e, lua_State *L) {
  encoder alone;
  flowlua_encode_error error;
  e->entries.count = 0;
  flowlua_encoder_open(&alone, e->state, &e->entries, &error);
  alone.is_code = alone.is_form = alone.is_nested = true;
  alone.finish = e->finish;
  lua_pushcfunction(L, encode_alone);
  lua_insert(L, -3);
  lua_pushvalue(L, e->names);
  lua_pushlightuserdata(L, &alone);
  int status = lua_pcall(L, 4, 0, 0);
  flowlua_encoder_close(&alone);
  if (status != LUA_OK) lua_error(L);
  lua_pushlstring(L, (const char *)e->entries.bytes, e->entries.count);
}

/// The most entries without an order of one table: each is written by itself, with all that it leads to.
static const int64_t most_unordered = 1000;

// Keys such as functions and objects have an order in each process, but not the same one. So each entry is
// written by itself, and the bytes are sorted; within these it suffices to know how many there are.
bool flowlua_encode_unordered(
    encoder *e, lua_State *L, int table, int keys, int64_t first, int64_t total) {
  int top = lua_gettop(L);
  put_byte(L, e->out, TAG_FOREIGN);
  flowlua_put_number(L, e->out, (uint64_t)(total - first));
  if (e->is_nested) return true;
  flowlua_require_room(L, LUA_MINSTACK, "a value");
  if (total - first > most_unordered) {
    lua_pushfstring(
        L, "a table of it has %I keys that are no numbers, strings or booleans, of at most %I",
        (LUAI_UACINT)(total - first), (LUAI_UACINT)most_unordered);
    lua_error(L);
  }
  flowlua_ensure_names(e, L);
  lua_createtable(L, 0, 0);
  int counts = top + 1;
  for (int64_t i = first; i < total; i++) {
    lua_rawgeti(L, keys, i);
    lua_pushvalue(L, -1);
    lua_rawget(L, table);
    push_entry_form(e, L);
    lua_pushvalue(L, -1);
    lua_rawget(L, counts);
    lua_pushinteger(L, lua_tointegerx(L, -1, NULL) + 1);
    lua_replace(L, -2);
    lua_rawset(L, counts);
  }
  int64_t different = flowlua_push_sorted_keys(L, counts, 0);
  for (int64_t i = 0; i < different; i++) {
    lua_rawgeti(L, counts + 1, i);
    size_t count;
    const char *bytes = lua_tolstring(L, -1, &count);
    put_text(L, e->out, bytes, count);
    lua_rawget(L, counts);
    flowlua_put_number(L, e->out, (uint64_t)lua_tointegerx(L, -1, NULL));
    lua_settop(L, counts + 1);
  }
  lua_settop(L, top);
  return true;
}
