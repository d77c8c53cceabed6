/// How a Lua state is made. Every state of flowlua comes from `LuaVM(configuration:)` and one of
/// these.
public struct LuaConfiguration: Sendable {
  /// The most bytes that the state may hold; nil for no limit. A script that needs more meets
  /// Lua's own "not enough memory", which it can catch.
  public var memoryLimit: Int?

  /// Whether the standard libraries are opened.
  public var standardLibraries: Bool

  /// Whether the collector runs in generational mode, as in the stand-alone interpreter.
  public var generationalCollector: Bool

  /// Whether the standard libraries leave environment variables such as `LUA_PATH` alone.
  public var ignoresEnvironment: Bool

  /// What is done around the use of the terminal by scripts; the same in every state of the process.
  public var outputGuard: LuaOutputGuard?

  /// Whether `os.exit` raises: in states beside that of the program.
  public var refusesExit = false

  /// For tests of running out of memory: the allocation of the state that fails once, with
  /// Lua's second try at it, counted from 1.
  package var failingAllocation: UInt64 = 0

  /// A configuration; without arguments that of the stand-alone interpreter.
  public init(
    memoryLimit: Int? = nil, standardLibraries: Bool = true, generationalCollector: Bool = true,
    ignoresEnvironment: Bool = false
  ) {
    self.memoryLimit = memoryLimit
    self.standardLibraries = standardLibraries
    self.generationalCollector = generationalCollector
    self.ignoresEnvironment = ignoresEnvironment
  }
}

/// What is done around the use of the terminal by `print`, `io.write` and their kin, on the thread that
/// runs the script: a line of status makes way.
public struct LuaOutputGuard: Sendable {
  /// Called before it.
  public let hide: @convention(c) @Sendable () -> Void
  /// Called with whether the terminal's line is at its end then.
  public let wrote: @convention(c) @Sendable (_ endsLine: Bool) -> Void

  /// A guard of these two functions.
  public init(
    hide: @escaping @convention(c) @Sendable () -> Void,
    wrote: @escaping @convention(c) @Sendable (_ endsLine: Bool) -> Void
  ) {
    self.hide = hide
    self.wrote = wrote
  }
}
