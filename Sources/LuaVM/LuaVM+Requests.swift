internal import CFlowLua

/// What signals ask of a state: an interruption, or the end of the process.
extension LuaVM {
  /// Asks for something from a signal handler on the owner thread: pass it the state's
  /// `requestContext`.
  public typealias RequestFunction = @convention(c) (UnsafeMutableRawPointer?) -> Void

  /// Has the coroutine that runs raise `interrupted!`, as the stand-alone interpreter does for Ctrl-C.
  /// If none runs, whoever waits has to take the request; see `takeInterruption`.
  public static var interrupter: RequestFunction { flowlua_interrupter() }

  /// Answers whether an interruption was asked for that nobody has taken, also in a signal handler.
  public typealias QuestionFunction = @convention(c) (UnsafeMutableRawPointer?) -> Bool

  /// See `QuestionFunction`.
  public static var interruptionQuestion: QuestionFunction { flowlua_interruption_question() }

  /// Says that the process is to end; see `onTermination` and `takeTermination`.
  public static var terminator: RequestFunction { flowlua_terminator() }

  /// What the functions above take; valid as long as the state object lives.
  public var requestContext: UnsafeMutableRawPointer { UnsafeMutableRawPointer(host) }

  /// Whether something was asked for that nobody has taken.
  public var hasRequest: Bool { flowlua_has_request(host) }

  /// Takes the request for an interruption; false when there is none.
  public func takeInterruption() -> Bool {
    flowlua_take_request(host, UInt8(FLOWLUA_INTERRUPT))
  }

  /// Takes the request for the end of the process; false when there is none.
  public func takeTermination() -> Bool {
    flowlua_take_request(host, UInt8(FLOWLUA_TERMINATE))
  }

  /// Whether a coroutine of the scheduler is executing, below whatever runs now.
  public var runsScheduledCoroutine: Bool { flowlua_runs_scheduled(host) }
}
