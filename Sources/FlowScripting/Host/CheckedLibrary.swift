package import LuaVM

/// The functions of Lua's own library that change something outside of the script. With `--check` they raise an error, in
/// workers as well, so a script that is only checked deploys, writes and removes nothing.
package enum CheckedLibrary {
  /// Replaces the functions by ones that raise. Files can be read, and `os.execute()` can still
  /// test whether there is a shell.
  package static func install(in vm: LuaVM) throws {
    _ = try vm.call(try vm.load(chunk, name: "=[check]"))
  }

  private static let chunk: ByteString = """
    local error, find, type = error, string.find, type
    local function always() return true end
    local function refuse(library, name, changes)
      local original = library[name]
      library[name] = function(...)
        if changes(...) then error("bad use of '" .. name .. "' (not while checking)", 2) end
        return original(...)
      end
    end
    refuse(io, "open", function(_, mode) return type(mode) == "string" and find(mode, "[wa+]") end)
    refuse(io, "output", function(file) return type(file) == "string" end)
    refuse(io, "popen", always)
    refuse(os, "execute", function(command) return command ~= nil end)
    refuse(os, "remove", always)
    refuse(os, "rename", always)
    refuse(os, "tmpname", always)
    refuse(io, "tmpfile", always)
    """
}
