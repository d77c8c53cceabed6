// Names the value that can't leave a state, and the way to it in words.
#include <stdio.h>

#include "codec.h"

/// Puts a text before the path, or an ellipsis if the text doesn't fit.
static void prepend(flowlua_encode_error *error, const char *text) {
  size_t length = strlen(text), present = strlen(error->path);
  const char *cut = "…";
  if (strncmp(error->path, cut, strlen(cut)) == 0) return;
  // There is always room for the mark.
  if (length + strlen(cut) + present + 1 > sizeof error->path) {
    text = cut;
    length = strlen(cut);
  }
  memmove(error->path + length, error->path, present + 1);
  memcpy(error->path, text, length);
}

static bool is_name(const char *bytes, size_t count) {
  if (count == 0 || (bytes[0] >= '0' && bytes[0] <= '9')) return false;
  for (size_t i = 0; i < count; i++) {
    char c = bytes[i];
    bool fits =
        c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!fits) return false;
  }
  return true;
}

void flowlua_format_step(lua_State *L, int key, char *step, size_t size) {
  size_t count = 0;
  const char *bytes = flowlua_bytes(L, key, &count);
  if (bytes != NULL) {
    int shown = count > 48 ? 48 : (int)count;
    bool plain = is_name(bytes, count);
    snprintf(step, size, plain ? ".%.*s%s" : "[\"%.*s%s\"]", shown, bytes, count > 48 ? "…" : "");
  } else if (lua_isinteger(L, key)) {
    snprintf(step, size, "[%lld]", (long long)lua_tointegerx(L, key, NULL));
  } else if (lua_type(L, key) == LUA_TNUMBER) {
    snprintf(step, size, "[%.14g]", lua_tonumberx(L, key, NULL));
  } else if (lua_type(L, key) == LUA_TBOOLEAN) {
    snprintf(step, size, "[%s]", lua_toboolean(L, key) ? "true" : "false");
  } else {
    snprintf(step, size, "[%s]", lua_typename(L, lua_type(L, key)));
  }
}

void flowlua_list_field(encoder *e, lua_State *L, int key, part_start start) {
  char step[72];
  flowlua_format_step(L, key, step, sizeof step);
  flowlua_list_part(e, L, FLOWLUA_PART_FIELD, step, strlen(step), start);
}

/// [-0, +0, -]
static void prepend_key(flowlua_encode_error *error, lua_State *L, int key) {
  char step[72];
  flowlua_format_step(L, key, step, sizeof step);
  prepend(error, step);
}

/// The step that leads from a table to the value on top: found by a search, as only messages need it.
/// [-0, +0, v]
static void prepend_step(encoder *e, lua_State *L, uint32_t table) {
  int value = lua_gettop(L);
  flowlua_push_met(e, L, table);
  lua_pushnil(L);
  while (lua_next(L, value + 1)) {
    if (lua_rawequal(L, -1, value)) {
      prepend_key(e->error, L, value + 2);
      lua_settop(L, value);
      return;
    }
    if (lua_rawequal(L, -2, value)) {
      e->error->is_key = true;
      lua_settop(L, value);
      return;
    }
    lua_settop(L, -2);
  }
  lua_settop(L, value);
}

/// The upvalue of a function in whose bytes an offset lies. The function is on top. [-0, +0, v]
void flowlua_name_upvalue(encoder *e, lua_State *L, uint32_t function, size_t offset) {
  flowlua_encode_error *error = e->error;
  int number = 0;
  for (uint32_t i = 0; i < e->upvalue_count; i++) {
    if (e->upvalues[i].function == function && e->upvalues[i].offset <= offset)
      number = e->upvalues[i].number;
  }
  if (number != 0) {
    const char *name = lua_getupvalue(L, -1, number);
    if (name != NULL) {
      snprintf(error->upvalue, sizeof error->upvalue, "%s", *name == '\0' ? "?" : name);
      lua_settop(L, -2);
    }
  }
  lua_Debug info;
  lua_pushvalue(L, -1);
  // With ">S" it takes the function and allocates nothing.
  lua_getinfo(L, ">S", &info);
  if (info.linedefined > 0) {
    snprintf(error->function, sizeof error->function, "%s:%d", info.short_src, info.linedefined);
  } else {
    snprintf(error->function, sizeof error->function, "%s", info.short_src);
  }
}

bool flowlua_encode_fail(encoder *e, lua_State *L) {
  flowlua_encode_error *error = e->error;
  e->has_failed = true;
  *error = (flowlua_encode_error){.type = lua_type(L, -1)};
  flowlua_require_room(L, 8, "a value");
  size_t length = 0;
  const char *name = flowlua_type_name(e->state, L, -1, &length);
  if (strncmp(name, "FILE*", 5) == 0) name = "file", length = 4;
  if (error->type == LUA_TTHREAD) name = "coroutine", length = 9;
  if (length >= sizeof error->type_name) length = sizeof error->type_name - 1;
  memcpy(error->type_name, name, length);
  size_t offset = e->out->count;
  // From the value up to the root, or to the function that it is an upvalue of.
  lua_pushvalue(L, -1);
  for (uint32_t i = e->current; i != NO_OBJECT; i = e->objects[i].parent) {
    flowlua_push_met(e, L, i);
    if (lua_type(L, -1) == LUA_TFUNCTION) {
      flowlua_name_upvalue(e, L, i, offset);
      lua_settop(L, -2);
      break;
    }
    // The object goes below what it names, and is in turn what the next one names.
    lua_insert(L, -2);
    prepend_step(e, L, i);
    lua_settop(L, -2);
    offset = e->objects[i].named_at;
  }
  lua_settop(L, -2);
  return false;
}
