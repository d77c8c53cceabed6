internal import FlowEngine
@_spi(Scripting) package import LuaVM

extension ScriptHost {
  /// The parts that the scripts of a host can use, besides the libraries of their Lua state, which
  /// `LuaConfiguration` has. Workers of the host have the same restrictions.
  ///
  /// A function that isn't allowed raises an error that names it and the host. Whether scripts can start
  /// programs is a setting of the state, `LuaConfiguration.allowsPrograms`, because Lua's own libraries
  /// can start some, too.
  public struct Configuration: Sendable {
    /// Whether ops and continuations can run in workers. Where it is false, or `workerLimit` is 0,
    /// making one that would is an error.
    public var allowsWorkers: Bool
    /// Whether scripts can read and write files by `flow`, standard input included: `flow.fs`,
    /// `flow.read`, the functions of `flow.json`, `flow.csv`, runs and requests that take a path.
    public var allowsFiles: Bool
    /// Whether scripts can send requests with `flow.http`.
    public var allowsRequests: Bool
    /// The ops of flowlua that `flow.ops` has. Those that need files, requests or programs need the
    /// permission for them as well.
    public var builtInOps: BuiltInOps

    /// A configuration; without arguments everything is allowed.
    public init(
      allowsWorkers: Bool = true, allowsFiles: Bool = true, allowsRequests: Bool = true,
      builtInOps: BuiltInOps = .all
    ) {
      self.allowsWorkers = allowsWorkers
      self.allowsFiles = allowsFiles
      self.allowsRequests = allowsRequests
      self.builtInOps = builtInOps
    }
  }

  /// The ops in `flow.ops` that are part of flowlua.
  public struct BuiltInOps: OptionSet, Sendable {
    /// The bits of the ops.
    public let rawValue: UInt8

    /// The ops with these bits.
    public init(rawValue: UInt8) {
      self.rawValue = rawValue
    }

    /// `PrintOp`, which logs a message.
    public static let print = BuiltInOps(rawValue: 1)
    /// `SleepOp`, which waits.
    public static let sleep = BuiltInOps(rawValue: 2)
    /// `ReadFileOp`, which reads a file.
    public static let readFile = BuiltInOps(rawValue: 4)
    /// `WriteFileOp`, which writes a file.
    public static let writeFile = BuiltInOps(rawValue: 8)
    /// `HTTPOp`, which sends a request.
    public static let http = BuiltInOps(rawValue: 16)
    /// `ExecOp`, which runs a program.
    public static let exec = BuiltInOps(rawValue: 32)
    /// Those that reach nothing outside of the script.
    public static let safe: BuiltInOps = [.print, .sleep]
    /// All of them.
    public static let all: BuiltInOps = [.safe, .readFile, .writeFile, .http, .exec]

    /// Their names, which scripts use.
    static let names: [(op: BuiltInOps, name: ByteString)] = [
      (.print, "PrintOp"), (.sleep, "SleepOp"), (.readFile, "ReadFileOp"),
      (.writeFile, "WriteFileOp"), (.http, "HTTPOp"), (.exec, "ExecOp"),
    ]
  }

  /// The effects of functions of the API outside of the script.
  package enum Effect: String { case files, requests, programs }

  /// Whether the host allows an effect.
  func allows(_ effect: Effect) -> Bool {
    switch effect {
    case .files: configuration.allowsFiles
    case .requests: configuration.allowsRequests
    case .programs: vm.configuration.allowsPrograms
    }
  }

  /// Refuses a function whose effect the host doesn't allow.
  package func checkAllowed(_ effect: Effect, _ call: LuaCall, _ function: String) throws {
    if allows(effect) { return }
    throw usage(
      call, "bad use of '\(function)' (the host of the script allows no \(effect.rawValue))")
  }

  /// Refuses a function as `checkAllowed` does, and while flows are only checked.
  func check(_ effect: Effect, _ call: LuaCall, _ function: String) throws {
    try checkAllowed(effect, call, function)
    try refuseWhileChecking(call, function)
  }

  /// The name of the module itself among its parts: in messages, `flow` is the name of its flows.
  static let modulePart: String = "module"

  /// Whether the host allows what a function of the module, or of a part of it, does.
  func allows(_ name: String, of part: String) -> Bool {
    switch (part, name) {
    case ("fs", _), (Self.modulePart, "fs"), (Self.modulePart, "read"),
      ("json", "read"),
      ("json", "write"):
      allows(.files)
    case ("http", _), (Self.modulePart, "http"): allows(.requests)
    case (Self.modulePart, "exec"): allows(.programs)
    default: true
    }
  }

  /// The ops of flowlua that the registry has.
  var availableOps: BuiltInOps {
    var ops = configuration.builtInOps
    if !allows(.files) { ops.subtract([.readFile, .writeFile]) }
    if !allows(.requests) { ops.remove(.http) }
    if !allows(.programs) { ops.remove(.exec) }
    return ops
  }

  /// The reason why nothing can run in workers; nil if it can.
  var problemOfWorkers: String? {
    if !configuration.allowsWorkers { return "the host of the script allows no workers" }
    return workerLimit > 0
      ? nil : "the host of the script has workerLimit 0, so that there are no workers"
  }
}
