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

  /// Whether that is the end of the process.
  public var isAskedToEnd: Bool { flowlua_has_requested(host, UInt8(FLOWLUA_TERMINATE)) }

  /// Takes the request for an interruption; false when there is none.
  public func takeInterruption() -> Bool {
    flowlua_take_request(host, UInt8(FLOWLUA_INTERRUPT))
  }

  /// Takes the request for the end of the process; false when there is none.
  public func takeTermination() -> Bool {
    flowlua_take_request(host, UInt8(FLOWLUA_TERMINATE))
  }

  /// Takes the request of another thread to be attended to; false when there is none.
  public func takeAttention() -> Bool { flowlua_take_request(host, UInt8(FLOWLUA_ATTEND)) }

  /// How other threads get the attention of this state while it is busy.
  public var attention: LuaAttention { LuaAttention(host: host) }

  /// Lets other threads' calls for attention through to this one, the owner.
  public func acceptAttention() {
    checkOwner()
    flowlua_take_signal(host)
  }

  /// Whether a coroutine of the scheduler is executing, below whatever runs now.
  public var runsScheduledCoroutine: Bool { flowlua_runs_scheduled(host) }
}

/// Has a state that may be busy call `onAttention`; see `LuaVM.attention`.
// Unchecked: C's part of it is made for any thread, while the state object lives.
public struct LuaAttention: @unchecked Sendable {
  fileprivate let host: OpaquePointer

  /// Calls for attention, from any thread. The state object must live. A call can come just before
  /// Lua code begins, and is then not heard before it waits or ends: who needs to be heard calls again.
  public func call() { flowlua_call_attention(host) }
}
