/// The reach of scripts outside of their state: by Lua's own libraries, and by `flow` in a script host and its workers.
///
/// ```swift
/// let vm = try LuaVM(configuration: LuaConfiguration(permissions: [.requests, .workers]))
/// ```
///
/// A function without its permission raises an error that names it: `os.execute isn't allowed by the host of the script`.
/// The libraries `io`, `debug` and `package` don't exist without theirs.
public struct LuaPermissions: OptionSet, Sendable {
  /// The bits of the permissions.
  public let rawValue: UInt8

  /// The permissions with these bits.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// Files, standard input and the environment: the library `io`, all of `os`, `dofile` and `loadfile`; `flow.fs`, `flow.read`,
  /// `ReadFileOp`, `WriteFileOp`, and paths in `flow.json`, `flow.csv`, `flow.http` and views of runs.
  public static let files = LuaPermissions(rawValue: 1)
  /// HTTP requests: `flow.http` and `HTTPOp`.
  public static let requests = LuaPermissions(rawValue: 2)
  /// Programs: `flow.exec` and `ExecOp`, and with `files` also `io.popen` and `os.execute`. A program can do all that the process
  /// can.
  public static let programs = LuaPermissions(rawValue: 4)
  /// Workers: ops and continuations with `thread = "worker"`.
  public static let workers = LuaPermissions(rawValue: 8)
  /// Modules in Lua, which `require` looks for in files.
  public static let modules = LuaPermissions(rawValue: 16)
  /// Modules in C, `debug` and `string.dump`. A module in C can do all that the process can.
  public static let unsafeLibraries = LuaPermissions(rawValue: 32)

  /// None, for scripts of others.
  public static let restricted: LuaPermissions = []
  /// All, for scripts that may do what the process may.
  public static let trusted: LuaPermissions = [
    .files, .requests, .programs, .workers, .modules, .unsafeLibraries,
  ]

  /// The standard libraries that they open.
  var libraries: LuaLibraries {
    var libraries = LuaLibraries.safe
    if contains(.files) { libraries.formUnion([.base, .io, .os]) }
    if contains(.modules) { libraries.formUnion(.luaModules) }
    if contains(.unsafeLibraries) { libraries.formUnion([.string, .package, .debug]) }
    return libraries
  }
}
