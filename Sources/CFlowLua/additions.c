// Things that a function may use without referring to them: fields that a script has added to libraries, such as those of
// `string` for the methods of texts, and metatables that all values of a type have.
//
// As with globals, a function may use each field whose name is among its string constants. Functions are only
// looked through when there is such a field.
#include "codec.h"

/// Stack indices.
typedef struct additions {
  int added;  // from the name of each field to a list of its values, one for each library
  int named;  // a list of the string constants of functions; also from each to true
} additions;

/// Notes the fields that a script has added to the library on top. [-0, +0, m]
static void note_added(encoder *e, lua_State *L, const additions *known, const char *library) {
  int table = lua_gettop(L), field = table + 1;
  lua_pushnil(L);
  while (lua_next(L, table)) {
    if (!lua_iscfunction(L, -1) && lua_type(L, field) == LUA_TSTRING
        && flowlua_is_added(e->state, L, library, lua_tolstring(L, field, NULL))) {
      lua_pushvalue(L, field);
      if (lua_rawget(L, known->added) != LUA_TTABLE) {
        lua_settop(L, field + 1);
        lua_createtable(L, 1, 0);
        lua_pushvalue(L, field);
        lua_pushvalue(L, -2);
        lua_rawset(L, known->added);
      }
      lua_pushvalue(L, field + 1);
      lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
    lua_settop(L, field);
  }
  lua_settop(L, table);
}

/// Adds a name to the list, unless it is there. It is on top. [-1, +0, m]
static void add_name(lua_State *L, const additions *known) {
  int name = lua_gettop(L);
  lua_pushvalue(L, name);
  if (lua_rawget(L, known->named) == LUA_TNIL) {
    lua_pushvalue(L, name);
    lua_pushboolean(L, true);
    lua_rawset(L, known->named);
    lua_pushvalue(L, name);
    lua_rawseti(L, known->named, (lua_Integer)lua_rawlen(L, known->named) + 1);
  }
  lua_settop(L, name - 1);
}

/// Adds the constants of a function; without knowing them, the names of all fields. [-0, +0, m]
static void add_names(encoder *e, lua_State *L, const additions *known, uint32_t function) {
  int top = lua_gettop(L);
  size_t code = e->objects[function].named_at;
  if (e->out->bytes[code] != TAG_FUNCTION) return;
  code += 1;
  uint32_t length;
  memcpy(&length, e->out->bytes + code, sizeof length);
  lua_Integer first = 1, last;
  if (flowlua_push_constants(e, L, code + sizeof length, length)) {
    last = (lua_Integer)lua_rawlen(L, -1);
  } else {
    first = 0;
    last = flowlua_push_sorted_keys(L, known->added, 0) - 1;
  }
  int list = lua_gettop(L);
  for (lua_Integer i = first; i <= last; i++) {
    lua_rawgeti(L, list, i);
    add_name(L, known);
  }
  lua_settop(L, top);
}

/// Writes what functions may mean by a name, which is on top. [-0, +0, m]
static bool encode_named(encoder *e, lua_State *L, const additions *known) {
  int name = lua_gettop(L);
  lua_pushvalue(L, name);
  if (lua_rawget(L, known->added) == LUA_TTABLE) {
    int values = name + 1;
    lua_pushvalue(L, name);
    lua_pushnil(L);
    lua_rawset(L, known->added);
    lua_pushvalue(L, name);
    put_byte(L, e->out, TAG_FIELD);
    if (!flowlua_encode_top(e, L)) return false;
    for (lua_Integer i = 1; lua_rawgeti(L, values, i) != LUA_TNIL; i++) {
      if (!flowlua_encode_top(e, L)) return false;
      lua_settop(L, values);
    }
  }
  lua_settop(L, name);
  if (!e->reaches_globals) return true;
  lua_pushvalue(L, name);
  return flowlua_encode_global(e, L);
}

/// Whether all values of the table on top are functions of C, or the value at an index. [-0, +0, -]
static bool has_only_functions(lua_State *L, int other) {
  int table = lua_gettop(L);
  bool result = true;
  lua_pushnil(L);
  while (result && lua_next(L, table)) {
    result = lua_iscfunction(L, -1) || lua_rawequal(L, -1, other);
    lua_settop(L, table + 1);
  }
  lua_settop(L, table);
  return result;
}

/// Pushes a value of each type whose values have one metatable. [-0, +7, -]
static void push_samples(lua_State *L) {
  lua_pushnil(L);
  lua_pushboolean(L, false);
  lua_pushinteger(L, 0);
  lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
  lua_pushlightuserdata(L, NULL);
  lua_pushcfunction(L, lua_error);
  lua_pushliteral(L, "");
}

/// Pushes the metatable of a sample, if a script has given it one, or changed it; false without. The library
/// `string`, or nil, is below the samples. [-0, +(0|1), m]
static bool push_changed(lua_State *L, int library, int sample) {
  if (!lua_getmetatable(L, sample)) return false;
  if (lua_type(L, sample) != LUA_TSTRING || !has_only_functions(L, library)) return true;
  lua_pushliteral(L, "__index");
  lua_rawget(L, -2);
  bool is_standard = lua_rawequal(L, -1, library);
  lua_settop(L, is_standard ? -3 : -2);
  return !is_standard;
}

/// Writes the metatables of types that scripts have given one, or changed it. The library `string`, or nil, is
/// on top. [-0, +0, m]
static bool encode_type_metatables(encoder *e, lua_State *L) {
  int library = lua_gettop(L);
  push_samples(L);
  int last = lua_gettop(L);
  for (int sample = library + 1; sample <= last; sample++) {
    if (!push_changed(L, library, sample)) continue;
    put_byte(L, e->out, TAG_TYPED);
    put_byte(L, e->out, (uint8_t)lua_type(L, sample));
    if (!flowlua_encode_top(e, L)) return false;
    lua_settop(L, last);
  }
  lua_settop(L, library);
  return true;
}

/// Pushes the library `string`, or nil. [-0, +1, m]
static void push_string_library(lua_State *L) {
  int top = lua_gettop(L);
  lua_pushstring(L, LUA_LOADED_TABLE);
  if (lua_rawget(L, LUA_REGISTRYINDEX) == LUA_TTABLE) {
    lua_pushliteral(L, LUA_STRLIBNAME);
    if (lua_rawget(L, top + 1) == LUA_TTABLE) return lua_replace(L, top + 1);
  }
  lua_settop(L, top);
  lua_pushnil(L);
}

/// Whether a script has added fields to a library that was met. [-0, +0, m]
static bool has_added(encoder *e, lua_State *L) {
  int top = lua_gettop(L), library = top + 1;
  bool result = false;
  if (lua_type(L, e->reached) != LUA_TTABLE) return false;
  for (lua_Integer i = 1; !result && lua_rawgeti(L, e->reached, i) == LUA_TTABLE; i++) {
    lua_pushvalue(L, library);
    lua_rawget(L, e->reached);
    lua_pushnil(L);
    while (!result && lua_next(L, library)) {
      result = !lua_iscfunction(L, -1) && lua_type(L, -2) == LUA_TSTRING
          && flowlua_is_added(
              e->state, L, lua_tolstring(L, library + 1, NULL), lua_tolstring(L, -2, NULL));
      lua_settop(L, library + 2);
    }
    lua_settop(L, top);
  }
  lua_settop(L, top);
  return result;
}

/// Whether nothing was added, as for nearly every script: seen without making a table. The library `string`, or
/// nil, is on top. [-0, +0, m]
static bool has_none(encoder *e, lua_State *L) {
  int library = lua_gettop(L);
  if (e->reaches_globals || lua_type(L, library) != LUA_TTABLE || !has_only_functions(L, library)
      || has_added(e, L))
    return false;
  push_samples(L);
  bool result = true;
  int last = lua_gettop(L);
  for (int sample = library + 1; result && sample <= last; sample++)
    result = !push_changed(L, library, sample);
  lua_settop(L, library);
  return result;
}

// Each value written may refer to more functions and libraries, until there is nothing new. Each function is
// looked through once, and all names again only after a new library, of which there are few.
bool flowlua_encode_additions(encoder *e, lua_State *L) {
  int top = lua_gettop(L), library = top + 3;
  const additions known = {.added = top + 1, .named = top + 2};
  flowlua_require_room(L, LUA_MINSTACK, "a value");
  push_string_library(L);
  if (has_none(e, L)) {
    lua_settop(L, top);
    return true;
  }
  flowlua_require_room(L, LUA_MINSTACK + FLOWLUA_PILE, "a value");
  lua_createtable(L, 0, 0);
  lua_createtable(L, 0, 0);
  lua_rotate(L, top + 1, -1);
  if (lua_type(L, library) == LUA_TTABLE) note_added(e, L, &known, LUA_STRLIBNAME);
  if (!encode_type_metatables(e, L) || !flowlua_encode_bodies(e, L)) return false;
  lua_Integer libraries = 0, names = 0;
  uint32_t functions = 0;
  bool had_globals = false;
  while (true) {
    while (lua_type(L, e->reached) == LUA_TTABLE
           && lua_rawgeti(L, e->reached, libraries + 1) == LUA_TTABLE) {
      libraries += 1;
      names = 0;
      if (!lua_rawequal(L, -1, library)) {
        lua_pushvalue(L, -1);
        lua_rawget(L, e->reached);
        lua_insert(L, -2);
        note_added(e, L, &known, lua_tolstring(L, -2, NULL));
      }
      lua_settop(L, library);
    }
    lua_settop(L, library);
    lua_pushnil(L);
    bool has_added = lua_next(L, known.added) != 0;
    lua_settop(L, library);
    if (!has_added && !e->reaches_globals) break;
    if (e->reaches_globals && !had_globals) {
      had_globals = true;
      names = 0;
      if (!flowlua_encode_globals_metatable(e, L)) return false;
    }
    for (; functions < e->count; functions++) add_names(e, L, &known, functions);
    if (names == (lua_Integer)lua_rawlen(L, known.named)) break;
    while (lua_rawgeti(L, known.named, names + 1) != LUA_TNIL) {
      names += 1;
      if (!encode_named(e, L, &known)) return false;
      lua_settop(L, library);
    }
    lua_settop(L, library);
    if (!flowlua_encode_bodies(e, L)) return false;
  }
  lua_settop(L, top);
  return true;
}
