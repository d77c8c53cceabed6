internal import FlowEngine
@_spi(Scripting) public import LuaVM

/// Methods whose arguments and result are `Codable`: tables of a script as structures of Swift, and the other way round.
///
/// ```swift
/// struct Line: Codable { var article: String; var amount: Int }
/// struct Receipt: Codable { var total: Int }
///
/// final class Basket: LuaObject { var lines: [Line] = [] }
///
/// let baskets = LuaClass<Basket>("Basket") {
///   $0.method("add") { (basket: Basket, line: Line) in basket.lines.append(line) }
///   $0.method("receipt") { (basket: Basket) -> Receipt in Receipt(total: basket.lines.count) }
/// }
/// ```
///
/// A script calls `basket:add { article = "tea", amount = 2 }`. A wrong part is an error that names it: `bad argument #1 to
/// 'Basket:add' (amount: integer expected, got string)`. A closure with an
/// `Encodable` result says its type. They need a script host.
extension LuaClass {
  /// Adds a method, for `object:name(…)`.
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - body: Gets the object and the arguments, and returns the result.
  @_disfavoredOverload
  public func method<each Argument: Decodable, Result: Encodable>(
    _ name: String, _ body: @escaping (Object, repeat each Argument) throws -> Result
  ) {
    let label: String = "\(self.name):\(name)"
    method(
      name,
      function: { call in
        var signature = Signature(label, of: call)
        let object: Object = try signature.object()
        let result = try body(object, repeat try signature.decoded((each Argument).self))
        try EncodedResult(result).addResult(to: call)
        return call.answer()
      })
  }

  /// Adds a method without a result whose arguments are decoded.
  @_disfavoredOverload
  public func method<each Argument: Decodable>(
    _ name: String, _ body: @escaping (Object, repeat each Argument) throws -> Void
  ) {
    let label: String = "\(self.name):\(name)"
    method(
      name,
      function: { call in
        var signature = Signature(label, of: call)
        let object: Object = try signature.object()
        try body(object, repeat try signature.decoded((each Argument).self))
        return call.answer()
      })
  }

  /// Adds a method whose code is `async`, with a result that is encoded; see `ScriptHost.makeAsyncFunction`.
  @_disfavoredOverload
  public func asyncMethod<each Argument: Decodable, Result: Encodable>(
    _ name: String, _ body: @escaping (Object, repeat each Argument) async throws -> Result
  ) {
    let label: String = "\(self.name):\(name)"
    method(
      name,
      function: { call in
        var signature = Signature(label, of: call)
        let object: Object = try signature.object()
        let arguments = (repeat try signature.decoded((each Argument).self))
        return try ScriptHost.wait(call) {
          EncodedResult(try await body(object, repeat each arguments))
        }
      })
  }

  /// Adds a method without a result whose code is `async`.
  @_disfavoredOverload
  public func asyncMethod<each Argument: Decodable>(
    _ name: String, _ body: @escaping (Object, repeat each Argument) async throws -> Void
  ) {
    let label: String = "\(self.name):\(name)"
    method(
      name,
      function: { call in
        var signature = Signature(label, of: call)
        let object: Object = try signature.object()
        let arguments = (repeat try signature.decoded((each Argument).self))
        return try ScriptHost.wait(call) {
          try await body(object, repeat each arguments)
          return LuaResults()
        }
      })
  }
}

extension Signature {
  /// The next argument as anything `Decodable`.
  fileprivate mutating func decoded<Content: Decodable>(_ type: Content.Type) throws -> Content {
    try argument { value throws(LuaConversionError) in
      do { return try FlowValue(value).decoded(as: type) } catch {
        throw LuaConversionError(FlowError.from(error).message.description)
      }
    }
  }
}

/// A result that is encoded when the script gets it.
private struct EncodedResult: LuaResult {
  let content: any Encodable

  init(_ content: any Encodable) {
    self.content = content
  }

  func addResult(to call: LuaCall) throws {
    guard let host = call.vm.scheduler as? ScriptHost else {
      throw LuaError(.closed, "results that are Encodable need a script host, which is closed")
    }
    try host.luaValue(FlowValue(encoding: content)).addResult(to: call)
  }
}
