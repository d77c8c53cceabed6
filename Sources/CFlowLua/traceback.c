// A stack as text, to the letter as luaL_traceback of liblua 5.4 writes it.
//
// luaL_traceback looks for each function in package.loaded, by a walk with lua_next over all modules: four
// fifths of what a failed op or a cancelled task took. Here the modules are read where Lua keeps them, as
// layout.c explains; that takes a fiftieth, and unlike an index it is never out of date. Where the layout isn't
// known, luaL_traceback writes the text.
#include "layout.h"

enum {
  /// How many levels are shown of a stack that has more than both together.
  INNERMOST_LEVELS = 10,
  OUTERMOST_LEVELS = 11,
  /// Beyond what a C function has: what learning the layout takes.
  LAYOUT_ROOM = 3 * LUA_MINSTACK,
};

/// How a function is found in package.loaded: the keys of its module and of its field; no field when it is the
/// module itself.
typedef struct function_name {
  const string_layout *module;
  const string_layout *field;
} function_name;

static bool holds(const table_node *node, const void *function) {
  // Without a value only the types were written.
  return (node->type & SLOT_TYPE_BITS) == LUA_TFUNCTION && node->value == (uintptr_t)function
      && is_string_slot(node->key_type);
}

/// The first name that a walk with lua_next would meet; false for a function without one. [-0, +0, -]
static bool find_name(const table_layout *loaded, const void *function, function_name *name) {
  const table_node *end = loaded->nodes + node_count(loaded);
  for (const table_node *module = loaded->nodes; module < end; module++) {
    *name = (function_name){module->key.pointer, NULL};
    if (holds(module, function)) return true;
    if (module->type != SLOT_TABLE || !is_string_slot(module->key_type)) continue;
    const table_layout *fields = slot_of(module)->value.pointer;
    const table_node *last = fields->nodes + node_count(fields);
    for (const table_node *field = fields->nodes; field < last; field++) {
      name->field = field->key.pointer;
      if (holds(field, function)) return true;
    }
  }
  return false;
}

/// Adds what luaL_traceback makes of a name: a text of C, which ends at a byte 0, without the module of the
/// globals. Nothing is called between the reading of the keys and the reading of their bytes, so they still exist.
/// [-0, +0, m]
static void add_name(lua_State *L, luaL_Buffer *text, const function_name *name) {
  static const char globals[] = LUA_GNAME ".";
  const char *module = name->module->bytes, *field = name->field != NULL ? name->field->bytes : "";
  bool is_whole = strlen(module) == string_count(name->module);
  const char *dot = name->field != NULL && is_whole ? "." : "";
  if (*dot == '\0') field = "";
  if (*dot != '\0' && strcmp(module, LUA_GNAME) == 0) module = dot = "";
  else if (strncmp(module, globals, sizeof globals - 1) == 0) module += sizeof globals - 1;
  lua_pushfstring(L, "function '%s%s%s'", module, dot, field);
  luaL_addvalue(text);
}

/// Adds how the function of a frame is called; package.loaded is at an index. [-0, +0, m]
static void add_function(lua_State *L, luaL_Buffer *text, int loaded, lua_Debug *frame) {
  function_name name;
  lua_getinfo(L, "f", frame);
  const void *function = lua_topointer(L, -1);
  lua_settop(L, -2);
  if (lua_type(L, loaded) == LUA_TTABLE && find_name(lua_topointer(L, loaded), function, &name)) {
    add_name(L, text, &name);
  } else if (*frame->namewhat != '\0') {
    lua_pushfstring(L, "%s '%s'", frame->namewhat, frame->name);
    luaL_addvalue(text);
  } else if (*frame->what == 'm') {
    luaL_addstring(text, "main chunk");
  } else if (*frame->what != 'C') {
    lua_pushfstring(L, "function <%s:%d>", frame->short_src, frame->linedefined);
    luaL_addvalue(text);
  } else {
    luaL_addstring(text, "?");
  }
}

/// The outermost level of a stack, by binary search.
static int last_level(lua_State *co) {
  lua_Debug frame;
  int low = 1, high = 1;
  while (lua_getstack(co, high, &frame) != 0) {
    low = high;
    high *= 2;
  }
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (lua_getstack(co, middle, &frame) != 0) low = middle + 1;
    else high = middle;
  }
  return high - 1;
}

void flowlua_push_traceback(lua_State *L, lua_State *co, const char *message, int level) {
  // Without room, as after an overflow of the stack, the layout is learnt another time.
  flowlua_state *state = state_of(L);
  if ((state->layout == LAYOUT_UNKNOWN && !lua_checkstack(L, LAYOUT_ROOM))
      || !flowlua_knows_layout(state, L)) {
    luaL_traceback(L, co, message, level);
    return;
  }
  lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  int loaded = lua_gettop(L), last = last_level(co);
  int left = last - level > INNERMOST_LEVELS + OUTERMOST_LEVELS ? INNERMOST_LEVELS : -1;
  luaL_Buffer text;
  lua_Debug frame;
  luaL_buffinit(L, &text);
  if (message != NULL) {
    luaL_addstring(&text, message);
    luaL_addchar(&text, '\n');
  }
  luaL_addstring(&text, "stack traceback:");
  while (lua_getstack(co, level++, &frame) != 0) {
    if (left-- == 0) {
      int skipped = last - level - OUTERMOST_LEVELS + 1;
      lua_pushfstring(L, "\n\t...\t(skipping %d levels)", skipped);
      luaL_addvalue(&text);
      level += skipped;
      continue;
    }
    lua_getinfo(co, "Slnt", &frame);
    if (frame.currentline <= 0) lua_pushfstring(L, "\n\t%s: in ", frame.short_src);
    else lua_pushfstring(L, "\n\t%s:%d: in ", frame.short_src, frame.currentline);
    luaL_addvalue(&text);
    add_function(L, &text, loaded, &frame);
    if (frame.istailcall) luaL_addstring(&text, "\n\t(...tail calls...)");
  }
  luaL_pushresult(&text);
  lua_replace(L, loaded);
}
