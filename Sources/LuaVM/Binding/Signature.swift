/// Reads the arguments of one call by their types. Its errors name the function and the argument.
// Inlinable, as all generic code between a script and a bound closure: without its types it would take
// several times as long.
@usableFromInline
package struct Signature {
  @usableFromInline let label: String
  @usableFromInline let call: LuaCall
  /// The next argument.
  @usableFromInline var next: Int
  /// How many arguments the script doesn't count.
  @usableFromInline var hidden: Int

  /// Reads the arguments of a call, after those that the script doesn't count; `label` names the
  /// function in messages.
  @usableFromInline
  package init(_ label: String, of call: LuaCall, hidden: Int = 0) {
    self.label = label
    self.call = call
    self.hidden = hidden
    next = hidden + 1
  }

  /// The next argument.
  @inlinable
  package mutating func argument<Value: LuaValueConvertible>(_ type: Value.Type) throws -> Value {
    let index = next
    next += 1
    do { return try type.fromArgument(index, of: call) } catch let error as LuaConversionError {
      throw wrongArgument(index, error)
    }
  }

  /// The next argument, as `read` makes it of the value.
  package mutating func argument<Value>(
    _ read: (LuaValue) throws(LuaConversionError) -> Value
  ) throws -> Value {
    let index = next
    next += 1
    let value = try call.value(index)
    do throws(LuaConversionError) { return try read(value) } catch {
      throw wrongArgument(index, error)
    }
  }

  /// The object that a method is called on: the first argument, which doesn't count in messages.
  @inlinable
  package mutating func object<Object: LuaObject>(_ type: Object.Type = Object.self) throws
    -> Object
  {
    next = 2
    hidden = 1
    do { return try type.fromArgument(1, of: call) } catch let error as LuaConversionError {
      throw wrongObject(error)
    }
  }

  /// The value that a property gets.
  @inlinable
  func newValue<Value: LuaValueConvertible>(_ type: Value.Type = Value.self) throws -> Value {
    do { return try type.fromArgument(3, of: call) } catch let error as LuaConversionError {
      throw wrongValue(error)
    }
  }

  /// Runs `body` with the object that a method is called on. If it is a structure, the script's is replaced
  /// afterwards.
  @inlinable
  mutating func withObject<Object: LuaObject, Result>(
    _ body: (inout Object) throws -> Result
  ) throws -> Result {
    var object: Object = try object()
    // Not in place: the code may use the object by Lua.
    let result = try body(&object)
    if let box = call.anyObject(1)?.object as? ValueBox<Object> { box.value = object }
    return result
  }

  // MARK: Errors

  @usableFromInline
  func wrongArgument(_ index: Int, _ error: LuaConversionError) -> LuaError {
    LuaError(
      .argument, "bad argument #\(index - hidden) to '\(label)' (\(error.description))")
  }

  @usableFromInline
  func wrongObject(_ error: LuaConversionError) -> LuaError {
    LuaError(.argument, "calling '\(label)' on bad self (\(error.description))")
  }

  @usableFromInline
  func wrongValue(_ error: LuaConversionError) -> LuaError {
    LuaError(.argument, "bad value for '\(label)' (\(error.description))")
  }
}

/// A result of a Swift closure that is bound for Lua: a convertible value, or several as
/// `LuaResults`.
///
/// ```swift
/// func bind(_ name: String, _ body: @escaping (Double) throws -> some LuaResult) throws {
///   try vm.setGlobal(name, .reference(vm.makeFunction(name, body)))
/// }
/// try bind("sqrt") { $0.squareRoot() }
/// ```
public protocol LuaResult {
  /// Adds it to the results of a call.
  ///
  /// - Parameter call: The call.
  /// - Throws: An error that is raised in the script.
  func addResult(to call: LuaCall) throws
}

/// Several results of a Swift closure that is bound for Lua.
///
/// ```swift
/// let points = LuaClass<Point>("Point") {
///   $0.method("polar") { p in LuaResults(hypot(p.x, p.y), atan2(p.y, p.x)) }
/// }
/// ```
// Packs of results can't be inferred from a closure that returns one value or none.
public struct LuaResults: LuaResult {
  @usableFromInline
  let add: (LuaCall) throws -> Void

  /// These results, in this order.
  @inlinable
  public init<each Result: LuaResult>(_ results: repeat each Result) {
    add = { call in repeat try (each results).addResult(to: call) }
  }

  public func addResult(to call: LuaCall) throws { try add(call) }
}

/// The result of a closure that returns nothing.
@usableFromInline
struct NoResult: LuaResult {
  @usableFromInline
  init() {}

  @usableFromInline
  func addResult(to call: LuaCall) {}
}
