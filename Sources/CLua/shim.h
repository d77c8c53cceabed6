// The C API of Debian's liblua5.4-dev, as one module.
#ifndef FLOWLUA_CLUA_SHIM_H
#define FLOWLUA_CLUA_SHIM_H
#include <lua.h>
#include <lauxlib.h>
#include <lualib.h>
#endif
