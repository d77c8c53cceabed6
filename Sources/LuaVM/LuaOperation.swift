internal import CFlowLua

/// A function that is run over and over, each time as a coroutine of the pool with a fresh handle as
/// its first argument. Everything that can be looked up once is looked up here.
public final class LuaOperation {
  /// How an operation went.
  public enum Progress {
    /// It returned nothing of interest (no userdata); its coroutine is back in the pool.
    case done
    /// It returned a userdata, failed, waits, or was stopped.
    case step(LuaStep)
    /// It couldn't be started: memory ran out, or the state is closed.
    case refused(LuaError)
  }

  /// The function.
  public let function: LuaReference
  private let arguments: LuaReference?
  // Unmanaged: the references keep the state.
  private let vm: Unmanaged<LuaVM>
  private let host: OpaquePointer
  private let functionID: Int32
  private let argumentsID: Int32
  private let argumentCount: Int32

  /// An operation with bound arguments: the first `argumentCount` values of the table `arguments`.
  public init(_ function: LuaReference, arguments: LuaReference? = nil, argumentCount: Int = 0) {
    let vm = function.vm
    self.vm = .passUnretained(vm)
    if let arguments {
      vm.checkHome(arguments)
      if arguments.kind != .table { misuse("an operation's arguments are no table") }
    } else if argumentCount > 0 {
      misuse("an operation has \(argumentCount) arguments but no table of them")
    }
    self.function = function
    self.arguments = arguments
    host = vm.host
    functionID = function.id
    argumentsID = arguments?.id ?? 0
    self.argumentCount = Int32(clamping: argumentCount)
  }

  /// Runs it up to its first wait. Slot and generation go into the handle. With a `deadline` it is
  /// watched from its first instruction on; see `LuaVM.watch`. Owner thread only.
  public func start(
    slot: UInt32, generation: UInt64, deadline: Int64 = 0, grace: Int64 = 0
  ) -> Progress {
    do { try vm._withUnsafeGuaranteedRef { try $0.enter() } } catch {
      return .refused(LuaError(.closed, "the Lua state is closed"))
    }
    var coroutine: OpaquePointer?
    var results: Int32 = 0
    let status = flowlua_perform(
      host, functionID, slot, generation, argumentsID, argumentCount, deadline, grace, &coroutine,
      &results)
    if status == FLOWLUA_DONE { return .done }
    guard let coroutine else { return .refused(LuaError(.memory, "not enough memory")) }
    return vm._withUnsafeGuaranteedRef {
      .step($0.step(LuaCoroutine(raw: coroutine), status, results))
    }
  }
}
