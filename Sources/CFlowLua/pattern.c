// The functions find, match, gmatch and gsub of the library `string`, for scripts that aren't trusted: a pattern such as
// ('a?'):rep(30) .. ('a'):rep(30) takes hours on a text of 30 letters, and Lua's own matcher can't be asked to stop. This
// one matches the same, with the same errors; the tests compare both.
#include <ctype.h>

#include "paced.h"

enum { ESCAPE = '%', DEEPEST = 200, MOST_CAPTURES = 32, OPEN = -1, POSITION = -2 };

/// A match of a pattern, or the attempt of one.
typedef struct matcher {
  lua_State *L;
  const char *source, *source_end, *pattern_end;
  pace pace;
  int depth;
  int count;  // of captures, closed ones and open ones
  struct {
    const char *start;
    ptrdiff_t length;  // or OPEN, or POSITION
  } captures[MOST_CAPTURES];
} matcher;

void flowlua_rest(pace *pace) {
  pace->left = pace->each;
  lua_State *L = pace->L;
  flowlua_let_signals_in();
  if (!flowlua_has_hook(L)) return;
  flowlua_charge_instructions(state_of(L), pace->each);
  luaL_checkstack(L, 4, NULL);
  // Its instruction calls the hook, which stops this function as it stops the comparison of a table.sort.
  lua_pushvalue(L, pace->rest);
  lua_call(L, 0, 0);
}

static const char *match(matcher *m, const char *s, const char *p);

static void prepare(
    matcher *m, lua_State *L, const char *s, size_t length, const char *p_end, int rest) {
  m->L = L;
  m->source = s;
  m->source_end = s + length;
  m->pattern_end = p_end;
  m->pace = begin_pace(L, rest, PACE);
}

/// Begins an attempt at another place.
static const char *attempt(matcher *m, const char *s, const char *p) {
  m->depth = 0;
  m->count = 0;
  count_step(&m->pace);
  return match(m, s, p);
}

static unsigned char byte_at(const char *s) { return (unsigned char)*s; }

// MARK: - Single characters

/// The end of the item that begins at `p`, without what repeats it.
static const char *item_end(matcher *m, const char *p) {
  char first = *p++;
  if (first == ESCAPE) {
    if (p == m->pattern_end) luaL_error(m->L, "malformed pattern (ends with '%%')");
    return p + 1;
  }
  if (first != '[') return p;
  if (*p == '^') p++;
  // A bracket at the beginning is a member.
  do {
    count_step(&m->pace);
    if (p == m->pattern_end) luaL_error(m->L, "malformed pattern (missing ']')");
    if (*p++ == ESCAPE && p < m->pattern_end) p++;
  } while (*p != ']');
  return p + 1;
}

/// Whether a character is of the class that stands after an escape.
static bool is_of_class(int c, int class) {
  bool is_member;
  switch (tolower(class)) {
  case 'a': is_member = isalpha(c); break;
  case 'c': is_member = iscntrl(c); break;
  case 'd': is_member = isdigit(c); break;
  case 'g': is_member = isgraph(c); break;
  case 'l': is_member = islower(c); break;
  case 'p': is_member = ispunct(c); break;
  case 's': is_member = isspace(c); break;
  case 'u': is_member = isupper(c); break;
  case 'w': is_member = isalnum(c); break;
  case 'x': is_member = isxdigit(c); break;
  case 'z': is_member = c == 0; break;
  default: return class == c;
  }
  return islower(class) ? is_member : !is_member;
}

/// Whether a character is in the set from the bracket at `p` to the one at `last`.
static bool is_in_set(matcher *m, int c, const char *p, const char *last) {
  bool found = true;
  if (p[1] == '^') {
    found = false;
    p++;
  }
  while (++p < last) {
    count_step(&m->pace);
    if (*p == ESCAPE) {
      p++;
      if (is_of_class(c, byte_at(p))) return found;
    } else if (p[1] == '-' && p + 2 < last) {
      if (byte_at(p) <= c && c <= byte_at(p + 2)) return found;
      p += 2;
    } else if (byte_at(p) == c) {
      return found;
    }
  }
  return !found;
}

/// Whether the item from `p` to `end` matches the character at `s`.
static bool matches_one(matcher *m, const char *s, const char *p, const char *end) {
  if (s >= m->source_end) return false;
  int c = byte_at(s);
  switch (*p) {
  case '.': return true;
  case ESCAPE: return is_of_class(c, byte_at(p + 1));
  case '[': return is_in_set(m, c, p, end - 1);
  default: return byte_at(p) == c;
  }
}

// MARK: - Items

/// `%bxy` after the b.
static const char *match_balance(matcher *m, const char *s, const char *p) {
  if (p >= m->pattern_end - 1) luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
  if (*s != *p) return NULL;
  char open = p[0], close = p[1];
  for (int depth = 1; ++s < m->source_end;) {
    count_step(&m->pace);
    if (*s == close) {
      if (--depth == 0) return s + 1;
    } else if (*s == open) {
      depth++;
    }
  }
  return NULL;
}

/// As often as possible, at first.
static const char *match_longest(matcher *m, const char *s, const char *p, const char *end) {
  ptrdiff_t count = 0;
  while (matches_one(m, s + count, p, end)) {
    count_step(&m->pace);
    count++;
  }
  for (; count >= 0; count--) {
    count_step(&m->pace);
    const char *found = match(m, s + count, end + 1);
    if (found != NULL) return found;
  }
  return NULL;
}

/// As rarely as possible, at first.
static const char *match_shortest(matcher *m, const char *s, const char *p, const char *end) {
  for (;; s++) {
    count_step(&m->pace);
    const char *found = match(m, s, end + 1);
    if (found != NULL) return found;
    if (!matches_one(m, s, p, end)) return NULL;
  }
}

static const char *open_capture(matcher *m, const char *s, const char *p, ptrdiff_t what) {
  if (m->count >= MOST_CAPTURES) luaL_error(m->L, "too many captures");
  m->captures[m->count].start = s;
  m->captures[m->count].length = what;
  m->count++;
  const char *found = match(m, s, p);
  if (found == NULL) m->count--;
  return found;
}

static const char *close_capture(matcher *m, const char *s, const char *p) {
  int last = m->count - 1;
  while (last >= 0 && m->captures[last].length != OPEN) last--;
  if (last < 0) luaL_error(m->L, "invalid pattern capture");
  m->captures[last].length = s - m->captures[last].start;
  const char *found = match(m, s, p);
  if (found == NULL) m->captures[last].length = OPEN;
  return found;
}

/// The text of an earlier capture, by its digit.
static const char *match_capture(matcher *m, const char *s, char digit) {
  int index = digit - '1';
  if (index < 0 || index >= m->count || m->captures[index].length == OPEN)
    luaL_error(m->L, "invalid capture index %%%d", index + 1);
  size_t length = (size_t)m->captures[index].length;
  if ((size_t)(m->source_end - s) < length) return NULL;
  count_steps(&m->pace, steps_of(length));
  return memcmp(m->captures[index].start, s, length) == 0 ? s + length : NULL;
}

/// Whether a set begins to match between the last character and the next one: `%f[set]`, at the bracket.
static bool is_frontier(matcher *m, const char *s, const char *p, const char *end) {
  int before = s == m->source ? '\0' : byte_at(s - 1);
  return !is_in_set(m, before, p, end - 1) && is_in_set(m, byte_at(s), p, end - 1);
}

/// Matches what is left of the pattern at `s`; the end of the match, or NULL.
static const char *match_rest(matcher *m, const char *s, const char *p) {
  while (p != m->pattern_end) {
    count_step(&m->pace);
    switch (*p) {
    case '(':
      return p[1] == ')' ? open_capture(m, s, p + 2, POSITION) : open_capture(m, s, p + 1, OPEN);
    case ')': return close_capture(m, s, p + 1);
    case '$':
      if (p + 1 == m->pattern_end) return s == m->source_end ? s : NULL;
      break;
    case ESCAPE:
      if (p[1] == 'b') {
        s = match_balance(m, s, p + 2);
        if (s == NULL) return NULL;
        p += 4;
        continue;
      }
      if (p[1] == 'f') {
        p += 2;
        if (*p != '[') luaL_error(m->L, "missing '[' after '%%f' in pattern");
        const char *end = item_end(m, p);
        if (!is_frontier(m, s, p, end)) return NULL;
        p = end;
        continue;
      }
      if (isdigit(byte_at(p + 1))) {
        s = match_capture(m, s, p[1]);
        if (s == NULL) return NULL;
        p += 2;
        continue;
      }
      break;
    default: break;
    }
    const char *end = item_end(m, p);
    bool is_one = matches_one(m, s, p, end);
    switch (*end) {
    case '*':
      if (is_one) return match_longest(m, s, p, end);
      p = end + 1;
      continue;
    case '+': return is_one ? match_longest(m, s + 1, p, end) : NULL;
    case '-':
      if (is_one) return match_shortest(m, s, p, end);
      p = end + 1;
      continue;
    case '?':
      if (is_one) {
        const char *found = match(m, s + 1, end + 1);
        if (found != NULL) return found;
      }
      p = end + 1;
      continue;
    default:
      if (!is_one) return NULL;
      s++;
      p = end;
    }
  }
  return s;
}

static const char *match(matcher *m, const char *s, const char *p) {
  if (m->depth++ == DEEPEST) luaL_error(m->L, "pattern too complex");
  const char *end = match_rest(m, s, p);
  m->depth--;
  return end;
}

// MARK: - Results

/// A capture, or the whole match for the first one of a pattern without any: its start and its length, or POSITION, whose
/// number is pushed. [-0, +(0|1), e]
static ptrdiff_t capture(
    matcher *m, int index, const char *s, const char *end, const char **start) {
  if (index >= m->count) {
    if (index != 0) luaL_error(m->L, "invalid capture index %%%d", index + 1);
    *start = s;
    return end - s;
  }
  ptrdiff_t length = m->captures[index].length;
  *start = m->captures[index].start;
  if (length == OPEN) luaL_error(m->L, "unfinished capture");
  if (length == POSITION) lua_pushinteger(m->L, (*start - m->source) + 1);
  return length;
}

static void push_capture(matcher *m, int index, const char *s, const char *end) {
  const char *start;
  ptrdiff_t length = capture(m, index, s, end, &start);
  if (length != POSITION) lua_pushlstring(m->L, start, (size_t)length);
}

/// Pushes all captures, or the whole match if there is none and `s` isn't NULL; returns how many.
static int push_captures(matcher *m, const char *s, const char *end) {
  int count = m->count == 0 && s != NULL ? 1 : m->count;
  luaL_checkstack(m->L, count, "too many captures");
  for (int i = 0; i < count; i++) push_capture(m, i, s, end);
  return count;
}

/// Where a search begins, from 0 on; negative numbers count from the end.
static size_t start_of(lua_State *L, int argument, size_t length) {
  lua_Integer place = luaL_optinteger(L, argument, 1);
  if (place > 0) return (size_t)place - 1;
  if (place == 0 || place < -(lua_Integer)length) return 0;
  return length + (size_t)place;
}

static int find_or_match(lua_State *L, bool finds) {
  size_t length, pattern_length;
  const char *s = luaL_checklstring(L, 1, &length);
  const char *p = luaL_checklstring(L, 2, &pattern_length);
  size_t start = start_of(L, 3, length);
  if (start > length) {
    luaL_pushfail(L);
    return 1;
  }
  bool is_plain = finds && lua_toboolean(L, 4);
  if (finds && !is_plain) {
    is_plain = true;
    for (size_t i = 0; i < pattern_length; i++)
      if (p[i] != '\0' && strchr("^$*+?.([%-", p[i]) != NULL) is_plain = false;
  }
  if (is_plain) {
    // In linear time.
    const char *found =
        pattern_length == 0 ? s + start : memmem(s + start, length - start, p, pattern_length);
    if (found == NULL) {
      luaL_pushfail(L);
      return 1;
    }
    lua_pushinteger(L, found - s + 1);
    lua_pushinteger(L, (found - s) + (lua_Integer)pattern_length);
    return 2;
  }
  matcher m;
  prepare(&m, L, s, length, p + pattern_length, lua_upvalueindex(1));
  bool is_anchored = *p == '^';
  if (is_anchored) p++;
  const char *from = s + start;
  do {
    const char *end = attempt(&m, from, p);
    if (end == NULL) continue;
    if (!finds) return push_captures(&m, from, end);
    lua_pushinteger(L, from - s + 1);
    lua_pushinteger(L, end - s);
    return push_captures(&m, NULL, NULL) + 2;
  } while (from++ < m.source_end && !is_anchored);
  luaL_pushfail(L);
  return 1;
}

static int string_find(lua_State *L) { return find_or_match(L, true); }
static int string_match(lua_State *L) { return find_or_match(L, false); }

// MARK: - All matches

/// The matcher itself is made for each step: code that runs within one may call the same iterator.
typedef struct iteration {
  const char *source, *source_end, *pattern_end;
  const char *from, *pattern, *last;
} iteration;

/// Upvalues: the text and the pattern, which are kept, the iteration, and the function that does nothing.
static int next_match(lua_State *L) {
  iteration *all = lua_touserdata(L, lua_upvalueindex(3));
  matcher m;
  prepare(
      &m, L, all->source, (size_t)(all->source_end - all->source), all->pattern_end,
      lua_upvalueindex(4));
  for (const char *from = all->from; from <= m.source_end; from++) {
    const char *end = attempt(&m, from, all->pattern);
    if (end == NULL || end == all->last) continue;
    all->from = all->last = end;
    return push_captures(&m, from, end);
  }
  return 0;
}

static int string_gmatch(lua_State *L) {
  size_t length, pattern_length;
  const char *s = luaL_checklstring(L, 1, &length);
  const char *p = luaL_checklstring(L, 2, &pattern_length);
  size_t start = start_of(L, 3, length);
  lua_settop(L, 2);
  iteration *all = lua_newuserdatauv(L, sizeof *all, 0);
  *all = (iteration){
      .source = s,
      .source_end = s + length,
      .pattern_end = p + pattern_length,
      .from = s + (start > length ? length + 1 : start),
      .pattern = p,
      .last = NULL};
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushcclosure(L, next_match, 4);
  return 1;
}

// MARK: - Replacing

/// Adds the replacement text, argument 3, with the captures that it names.
static void add_text(matcher *m, luaL_Buffer *buffer, const char *s, const char *end) {
  size_t length;
  const char *text = lua_tolstring(m->L, 3, &length);
  const char *text_end = text + length;
  for (const char *p; (p = memchr(text, ESCAPE, (size_t)(text_end - text))) != NULL; text = p + 1) {
    luaL_addlstring(buffer, text, (size_t)(p - text));
    p++;
    count_step(&m->pace);
    if (*p == ESCAPE) {
      luaL_addchar(buffer, *p);
    } else if (*p == '0') {
      luaL_addlstring(buffer, s, (size_t)(end - s));
    } else if (isdigit(byte_at(p))) {
      const char *start;
      ptrdiff_t found = capture(m, *p - '1', s, end, &start);
      if (found == POSITION) luaL_addvalue(buffer);
      else luaL_addlstring(buffer, start, (size_t)found);
    } else {
      luaL_error(m->L, "invalid use of '%c' in replacement string", ESCAPE);
    }
  }
  luaL_addlstring(buffer, text, (size_t)(text_end - text));
}

/// Adds what replaces a match; returns whether it isn't the match itself.
static bool add_replacement(
    matcher *m, luaL_Buffer *buffer, const char *s, const char *end, int kind) {
  lua_State *L = m->L;
  if (kind == LUA_TFUNCTION) {
    lua_pushvalue(L, 3);
    int count = push_captures(m, s, end);
    lua_call(L, count, 1);
  } else if (kind == LUA_TTABLE) {
    push_capture(m, 0, s, end);
    lua_gettable(L, 3);
  } else {
    add_text(m, buffer, s, end);
    return true;
  }
  if (!lua_toboolean(L, -1)) {
    lua_settop(L, -2);
    luaL_addlstring(buffer, s, (size_t)(end - s));
    return false;
  }
  if (!lua_isstring(L, -1)) luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
  luaL_addvalue(buffer);
  return true;
}

static int string_gsub(lua_State *L) {
  size_t length, pattern_length;
  const char *s = luaL_checklstring(L, 1, &length);
  const char *p = luaL_checklstring(L, 2, &pattern_length);
  int kind = lua_type(L, 3);
  lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)length + 1);
  luaL_argexpected(
      L, kind == LUA_TNUMBER || kind == LUA_TSTRING || kind == LUA_TFUNCTION || kind == LUA_TTABLE,
      3, "string/function/table");
  matcher m;
  prepare(&m, L, s, length, p + pattern_length, lua_upvalueindex(1));
  bool is_anchored = *p == '^';
  if (is_anchored) p++;
  luaL_Buffer buffer;
  luaL_buffinit(L, &buffer);
  lua_Integer count = 0;
  bool has_changed = false;
  for (const char *last = NULL; count < most;) {
    const char *end = attempt(&m, s, p);
    if (end != NULL && end != last) {
      count++;
      has_changed |= add_replacement(&m, &buffer, s, end, kind);
      s = last = end;
    } else if (s < m.source_end) {
      luaL_addchar(&buffer, *s);
      s++;
    } else {
      break;
    }
    if (is_anchored) break;
  }
  if (has_changed) {
    luaL_addlstring(&buffer, s, (size_t)(m.source_end - s));
    luaL_pushresult(&buffer);
  } else {
    lua_pushvalue(L, 1);
  }
  lua_pushinteger(L, count);
  return 2;
}

void flowlua_add_patterns(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"find", string_find},
      {"match", string_match},
      {"gmatch", string_gmatch},
      {"gsub", string_gsub},
      {NULL, NULL},
  };
  for (const luaL_Reg *each = functions; each->name != NULL; each++) {
    lua_pushvalue(L, -2);
    lua_pushcclosure(L, each->func, 1);
    lua_setfield(L, -2, each->name);
  }
}
