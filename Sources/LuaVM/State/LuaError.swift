/// An error of a Lua state.
///
/// ```swift
/// do {
///   _ = try vm.call(vm.load("error 'no space'", name: "job.lua"))
/// } catch let error as LuaError {
///   print(error.code == .runtime, error)
/// }
/// ```
public struct LuaError: Error, CustomStringConvertible {
  /// The kind of a failure.
  ///
  /// ```swift
  /// do {
  ///   _ = try vm.call(function)
  /// } catch let error as LuaError where error.code == .memory || error.code == .instructions {
  ///   print("the script has used up its limit")
  /// }
  /// ```
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    enum Kind: String {
      case runtime, syntax, file, memory, instructions, overflow, argument, closed, library,
        timeout, stopped
    }
    let kind: Kind

    /// A script raised a value.
    public static let runtime = Code(kind: .runtime)
    /// A chunk has a syntax error.
    public static let syntax = Code(kind: .syntax)
    /// A script can't be read.
    public static let file = Code(kind: .file)
    /// Memory ran out, or the state reached its limit.
    public static let memory = Code(kind: .memory)
    /// The state has executed as many instructions as it may.
    public static let instructions = Code(kind: .instructions)
    /// The stack is full.
    public static let overflow = Code(kind: .overflow)
    /// A function of the host was misused.
    public static let argument = Code(kind: .argument)
    /// The state is closed.
    public static let closed = Code(kind: .closed)
    /// The program is linked with a Lua library that can't be used.
    public static let library = Code(kind: .library)
    /// A call was stopped at its deadline.
    public static let timeout = Code(kind: .timeout)
    /// A call with a deadline was stopped before that, with the code that it is part of.
    public static let stopped = Code(kind: .stopped)

    /// The code's name.
    public var description: String { kind.rawValue }
  }

  /// The kind of failure.
  public let code: Code
  /// The message, as bytes, since a script may have written it.
  public let message: ByteString
  /// The raised value with its identity; nil for a failure of the host itself.
  public let value: LuaValue?

  /// The byte in the line that the message begins with, from 1, at which a syntax error was found; nil for other errors, and if
  /// it isn't known.
  public internal(set) var column: Int?

  /// A failure with a message. Thrown in a function that Lua called, it is raised as a string.
  public init(_ code: Code, _ message: some FlowText) {
    self.code = code
    self.message = message.byteString
    self.value = nil
  }

  /// A failure with a Lua value. Thrown in a function that Lua called, that value is raised.
  public init(_ code: Code = .runtime, value: LuaValue, message: some FlowText) {
    self.code = code
    self.message = message.byteString
    self.value = value
  }

  /// The message.
  public var description: String { message.description }
}

// The value inside is bound to its state, which checks the thread at every use.
extension LuaValue: @unchecked Sendable {}

extension LuaVM {
  /// Lua's message for lack of memory.
  package static let memoryError: ByteString = "not enough memory"
}

/// Carries a Swift error through Lua: the contents of a userdata of the failure type.
final class LuaFailureBox {
  let error: any Error

  init(_ error: any Error) {
    self.error = error
  }
}
