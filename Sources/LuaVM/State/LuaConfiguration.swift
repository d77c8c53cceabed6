internal import CFlowLua

/// The settings of a Lua state. Every state of flowlua comes from `LuaVM(configuration:)` and a
/// configuration.
///
/// ```swift
/// let configuration = LuaConfiguration(
///   permissions: .restricted, memoryLimit: 64 << 20, output: .discarded)
/// let vm = try LuaVM(configuration: configuration)
/// ```
public struct LuaConfiguration: Sendable {
  /// The most bytes that the state may use, with the logs and values that a script host holds for its
  /// scripts, and with the states of its workers; nil for no limit. A script that needs more gets Lua's own "not enough memory", which it can
  /// catch.
  public var memoryLimit: Int?

  /// The number of instructions of Lua that the code of the state may execute in total; nil for no limit. When they
  /// are used up, all code ends with an error of code `instructions`, which no script can catch for longer
  /// than one instruction: no `pcall`, message handler or `__close` continues. `LuaVM.instructionLimit` can be
  /// set again.
  ///
  /// They are counted in steps: each coroutine that begins uses up 128 at once. A function of C counts as the one
  /// instruction that calls it, however long it takes, but for those of `string` and `table` in restricted states, which
  /// count their steps; and the code of finalizers (`__gc`) isn't counted at all:
  /// set `allowsFinalizers` to false. Counting makes Lua code take about twice as long.
  public var instructionLimit: Int?

  /// The reach of scripts outside of the state; all by default.
  public let permissions: LuaPermissions

  /// The standard libraries that scripts have; by default those of the permissions.
  package var libraries: LuaLibraries

  /// Whether the collector runs in generational mode, like the stand-alone interpreter's.
  package var generationalCollector: Bool

  /// Whether the standard libraries ignore environment variables such as `LUA_PATH`; by default unless scripts have all
  /// permissions.
  package var ignoresEnvironment: Bool

  /// Whether `load`, `loadfile`, `dofile`, `require` and `LuaVM.load` accept bytecode. Lua 5.4 doesn't check
  /// bytecode: a wrong one can end or take over the process. False by default; `flowlua` sets it, as
  /// scripts of the stand-alone interpreter may rely on it.
  public var loadsBytecode: Bool

  /// Whether `os.exit` raises an error instead of ending the process. True by default; `flowlua` sets it to
  /// false.
  public var refusesExit: Bool

  /// Whether the metatables of scripts may have finalizers, `__gc`, which nothing can stop or count. By
  /// default only with all permissions; where it is false, `setmetatable` with such a metatable raises an error.
  public var allowsFinalizers: Bool

  /// The destination of what scripts print. A program that runs scripts of others sets it: otherwise they can
  /// write any amount to its own output, also without any permission.
  public var output: LuaOutput

  /// Functions around the use of the terminal by scripts; the same in every state of the process. Without effect
  /// where `output` isn't standard output.
  package var outputGuard: LuaOutputGuard?

  /// The memory that the state shares with others, if it has a limit of its own.
  package var memoryBudget: LuaMemoryBudget?

  /// Whether the state is a worker's, whose `os.exit` says so.
  package var isWorker = false

  /// For tests of running out of memory: the allocation of the state that fails once, together with
  /// Lua's second attempt at it, counted from 1.
  package var failingAllocation: UInt64 = 0

  /// For tests of the fallbacks: the mechanisms that the state doesn't use.
  package var withheld: LuaMechanisms = []

  /// A configuration; without arguments the stand-alone interpreter's, except that scripts can't
  /// load bytecode or end the process. See each property.
  ///
  /// With `generationalCollector` the collector runs in generational mode, like the stand-alone interpreter's. With
  /// `ignoresEnvironment`, the default unless scripts have all permissions, the standard libraries ignore environment
  /// variables such as `LUA_PATH`.
  public init(
    permissions: LuaPermissions = .trusted, memoryLimit: Int? = nil, instructionLimit: Int? = nil,
    loadsBytecode: Bool = false, refusesExit: Bool = true, allowsFinalizers: Bool? = nil,
    generationalCollector: Bool = true, ignoresEnvironment: Bool? = nil,
    output: LuaOutput = .standardOutput
  ) {
    self.permissions = permissions
    libraries = permissions.libraries
    self.memoryLimit = memoryLimit
    self.instructionLimit = instructionLimit
    self.loadsBytecode = loadsBytecode
    self.refusesExit = refusesExit
    self.allowsFinalizers = allowsFinalizers ?? (permissions == .trusted)
    self.generationalCollector = generationalCollector
    self.ignoresEnvironment = ignoresEnvironment ?? (permissions != .trusted)
    self.output = output
  }

  /// A configuration for tests of single libraries, with all permissions.
  package init(
    libraries: LuaLibraries, allowsFinalizers: Bool? = nil, output: LuaOutput = .standardOutput
  ) {
    self.init(allowsFinalizers: allowsFinalizers, output: output)
    self.libraries = libraries
  }
}

extension LuaConfiguration {
  /// A state for scripts that share the process with others: only what reaches nothing outside of the state, text
  /// instead of bytecode, and no finalizers.
  ///
  /// ```swift
  /// var configuration = LuaConfiguration.restricted
  /// configuration.memoryLimit = 64 << 20
  /// configuration.instructionLimit = 1_000_000_000
  /// let vm = try LuaVM(configuration: configuration)
  /// ```
  ///
  /// The functions of `string` and `table` stop as other code does, also within a pattern match.
  ///
  /// Each state has its own library tables, globals and metatable of strings: what a script changes in them,
  /// no script of another state sees. It has no limit of memory or instructions, and `print` and `warn` write to the
  /// output of the process, unless the program sets that. It holds against accidents and curious scripts; against
  /// enemies use a process.
  public static var restricted: LuaConfiguration {
    LuaConfiguration(permissions: .restricted)
  }
}

/// Mechanisms that rely on more than Lua's library promises. Each checks itself before it is used, and has
/// a fallback.
package struct LuaMechanisms: OptionSet, Sendable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// Every resume of a coroutine passes through flowlua. There is no fallback: without it, no state can be
  /// made.
  package static let interposedResume = LuaMechanisms(
    rawValue: UInt32(FLOWLUA_INTERPOSED_RESUME))
  /// Lists of numbers are read from the library's own tables; otherwise by its API.
  package static let tableLayout = LuaMechanisms(rawValue: UInt32(FLOWLUA_TABLE_LAYOUT))
  /// The allocator reports freed objects; otherwise finalizers do.
  package static let freedObjects = LuaMechanisms(rawValue: UInt32(FLOWLUA_FREED_OBJECTS))
  /// Small blocks of a large state come from pages of their own; otherwise from `malloc`.
  package static let blockPool = LuaMechanisms(rawValue: UInt32(FLOWLUA_BLOCK_POOL))
  /// The line of a call is cached by the instruction in the caller's frame; otherwise it is looked up.
  package static let frameLayout = LuaMechanisms(rawValue: UInt32(FLOWLUA_FRAME_LAYOUT))
  /// The lines of a function aren't a part of its code form; otherwise they are.
  package static let dumpLayout = LuaMechanisms(rawValue: UInt32(FLOWLUA_DUMP_LAYOUT))
}

/// Functions that `print`, `io.write` and similar functions call around their use of the terminal, to
/// remove a status line. They are called on the thread that runs the script.
package struct LuaOutputGuard: Sendable {
  /// Called before each use.
  package let hide: @convention(c) @Sendable () -> Void
  /// Called after each use, with whether the cursor is then at the start of a line.
  package let wrote: @convention(c) @Sendable (_ endsLine: Bool) -> Void
  /// Whether stdout is a terminal, too; otherwise only the use of stderr counts.
  package let includesStdout: Bool

  /// A guard of the terminal with these two functions.
  package init(
    hide: @escaping @convention(c) @Sendable () -> Void,
    wrote: @escaping @convention(c) @Sendable (_ endsLine: Bool) -> Void,
    includesStdout: Bool = true
  ) {
    self.hide = hide
    self.wrote = wrote
    self.includesStdout = includesStdout
  }
}

/// Memory that several states share, each on a thread of its own: what they hold together, with what is held
/// outside of them for their scripts, stays within one limit.
///
/// A state with a limit of its own takes part. It takes room in steps of 64 KiB and returns the rest.
/// So the states together have taken at most a few steps more than they hold.
// Unchecked: the C side is atomic.
package final class LuaMemoryBudget: @unchecked Sendable {
  let budget: OpaquePointer

  /// Makes a budget; a limit of nil is none. The result is nil when there is no memory for it.
  package init?(limit: Int?) {
    guard let made = flowlua_make_budget(max(0, limit ?? 0)) else { return nil }
    budget = made
  }

  deinit { flowlua_release_budget(budget) }

  /// The most bytes that the states may hold together; nil for no limit.
  package var limit: Int? {
    get {
      let limit = flowlua_budget_limit(budget)
      return limit == 0 ? nil : limit
    }
    set { flowlua_set_budget_limit(budget, max(0, newValue ?? 0)) }
  }

  /// The bytes that the states have taken.
  package var taken: Int { flowlua_budget_taken(budget) }
}

/// The destination of the output of a state's scripts: of `print`, `io.write`, `warn`, and of `write` of `io.stdout`
/// and `io.stderr`. The states of workers have their host's, and so have the programs that scripts start by
/// `flow.exec` and `ExecOp` with `tee` or without `capture`.
///
/// Not included are the output of programs that `os.execute` and `io.popen` start, which share the process's, and
/// what C libraries and files such as `/dev/stdout` write.
///
/// ```swift
/// let configuration = LuaConfiguration(output: .handler { bytes in print("script: \(bytes)") })
/// let vm = try LuaVM(configuration: configuration)
/// ```
public enum LuaOutput: Sendable {
  /// Standard output of the process; for warnings and `io.stderr` its standard error.
  case standardOutput
  /// Nowhere.
  case discarded
  /// A function. It gets the bytes of one call: a line with its line feed from `print`, anything from `write`.
  ///
  /// It is called on the thread of the script, which waits for it; with workers on several threads at a
  /// time. It may not use the state.
  case handler(@Sendable (ByteString) -> Void)

  /// The function that gets the output; nil for the process's.
  package var destination: (@Sendable (ByteString) -> Void)? {
    switch self {
    case .standardOutput: nil
    case .discarded: { _ in }
    case .handler(let handler): handler
    }
  }
}
