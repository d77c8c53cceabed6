internal import CFlowLua

/// The standard libraries of a Lua state, and safe parts of them.
///
/// A library that isn't in the set doesn't exist: its global is nil. Of a library of which only the safe part
/// is in the set, the other functions raise an error that names them.
package struct LuaLibraries: OptionSet, Sendable {
  /// The bits of the libraries.
  package let rawValue: UInt32

  /// The libraries with these bits.
  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  private init(_ bits: Int...) {
    rawValue = bits.reduce(0) { $0 | UInt32($1) }
  }

  /// No library; not even `print` and `pairs`.
  package static let none: LuaLibraries = []
  /// The basic functions but `dofile` and `loadfile`, which read files.
  package static let safeBase = LuaLibraries(FLOWLUA_LIBRARY_SAFE_BASE)
  /// The basic functions, such as `print`, `pairs` and `load`.
  package static let base = LuaLibraries(FLOWLUA_LIBRARY_SAFE_BASE, FLOWLUA_LIBRARY_BASE)
  /// The library `coroutine`.
  package static let coroutine = LuaLibraries(FLOWLUA_LIBRARY_COROUTINE)
  /// The library `table`.
  package static let table = LuaLibraries(FLOWLUA_LIBRARY_TABLE)
  /// The library `string` but `string.dump`.
  package static let safeString = LuaLibraries(FLOWLUA_LIBRARY_SAFE_STRING)
  /// The library `string`.
  package static let string = LuaLibraries(FLOWLUA_LIBRARY_SAFE_STRING, FLOWLUA_LIBRARY_STRING)
  /// The library `math`.
  package static let math = LuaLibraries(FLOWLUA_LIBRARY_MATH)
  /// The library `utf8`.
  package static let utf8 = LuaLibraries(FLOWLUA_LIBRARY_UTF8)
  /// The functions `clock`, `date`, `difftime` and `time` of the library `os`.
  package static let safeOS = LuaLibraries(FLOWLUA_LIBRARY_SAFE_OS)
  /// The library `os`. Its `exit` and `execute` have settings of their own, too: see
  /// `LuaConfiguration.refusesExit` and `LuaPermissions.programs`.
  package static let os = LuaLibraries(FLOWLUA_LIBRARY_SAFE_OS, FLOWLUA_LIBRARY_OS)
  /// The library `io`. Its `popen` has a setting of its own, too: see `LuaPermissions.programs`.
  package static let io = LuaLibraries(FLOWLUA_LIBRARY_IO)
  /// The function `require`, for what the host has preloaded, such as `flow`, and for the libraries. There is
  /// no table `package`, and no file is searched.
  package static let safePackage = LuaLibraries(FLOWLUA_LIBRARY_SAFE_PACKAGE)
  /// The library `package` for modules that are written in Lua, without C libraries.
  package static let luaModules = LuaLibraries(
    FLOWLUA_LIBRARY_SAFE_PACKAGE, FLOWLUA_LIBRARY_LUA_MODULES)
  /// The library `package`. A C library can do anything that the process can.
  package static let package = LuaLibraries(
    FLOWLUA_LIBRARY_SAFE_PACKAGE, FLOWLUA_LIBRARY_LUA_MODULES, FLOWLUA_LIBRARY_NATIVE_MODULES)
  /// The library `debug`, with which scripts reach everything in their state.
  package static let debug = LuaLibraries(FLOWLUA_LIBRARY_DEBUG)

  /// The libraries that reach nothing outside of the state, except that `print` and `warn` write to the output of
  /// the process, unless `LuaConfiguration.output` says otherwise: the safe parts of the libraries, and those that
  /// are safe as a whole.
  package static let safe: LuaLibraries = [
    .safeBase, .coroutine, .table, .safeString, .math, .utf8, .safeOS, .safePackage,
  ]

  /// All libraries, as the stand-alone interpreter has them.
  package static let all = LuaLibraries(FLOWLUA_ALL_LIBRARIES)
}

extension LuaConfiguration {
  /// The libraries as the C side takes them.
  var libraryBits: UInt32 {
    var bits = libraries.rawValue & UInt32(FLOWLUA_ALL_LIBRARIES)
    if permissions.contains(.programs) { bits |= UInt32(FLOWLUA_LIBRARY_PROGRAMS) }
    return bits
  }

  /// Whether scripts have a function of the standard libraries, such as `os.time`, `file:read` or `print`.
  package func hasFunction(_ name: String) -> Bool {
    if name == "os.exit", refusesExit { return false }
    guard let dot = name.firstIndex(where: { $0 == "." || $0 == ":" }) else {
      return flowlua_has_function(libraryBits, "_G" as String, name)
    }
    return flowlua_has_function(
      libraryBits, String(name[..<dot]), String(name[name.index(after: dot)...]))
  }

  /// The effect of `os.exit`.
  var exits: UInt8 {
    let exits =
      isWorker ? FLOWLUA_EXIT_OF_WORKER : refusesExit ? FLOWLUA_EXIT_REFUSED : FLOWLUA_EXITS
    return UInt8(exits)
  }
}
