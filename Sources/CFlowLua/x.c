#include <lua.h>
int flowlua_probe(void); int flowlua_probe(void){return LUA_VERSION_NUM;}
