-- The annotations of the module flow, for editors that find them among rocks:
-- `luarocks make` in the folder of this file.
rockspec_format = "3.0"
package = "flowlua-annotations"
version = "@ROCK@-1"
source = { url = "file://@PREFIX@/share/flowlua" }
description = {
  summary = "Annotations of flowlua's module 'flow' for the Lua language server",
  license = "MIT",
}
build = { type = "builtin", modules = {}, copy_directories = { "library" } }
