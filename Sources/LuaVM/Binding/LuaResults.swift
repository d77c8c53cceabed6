/// What a Swift closure that is bound for Lua can return: a convertible value, or several as
/// `LuaResults`.
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

/// What a closure without a result returns.
@usableFromInline
struct NoResult: LuaResult {
  @usableFromInline
  init() {}

  @usableFromInline
  func addResult(to call: LuaCall) {}
}
