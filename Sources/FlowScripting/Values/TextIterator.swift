internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// An iterator of scripts over a text or a file, such as `csv.rows` returns: a `for` loop calls it, and closes
/// it at its end.
protocol TextIterator: AnyObject {
  /// The next results, the first of them nil at the end. May wait.
  func next(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer

  /// Releases the text or file.
  func close()

  /// The script's function for lines or rows with a problem, which are left out then.
  var onError: LuaReference? { get }
}

extension TextIterator {
  /// Reports the problem of a line or row, whose text this is, to the script's function; throws it if there is none.
  func report(_ problem: any Error, text: ByteString, _ host: ScriptHost) throws {
    guard let onError, case .reference(let table)? = (problem as? LuaError)?.value else {
      throw problem
    }
    try host.vm.set(.string(text), "text", in: table)
    _ = try host.vm.call(onError, [.reference(table)])
  }
}

extension ScriptHost {
  /// Makes the type of such iterators; `name` is what scripts see of it, as `csv.rows`.
  func defineIterator<Iterator: TextIterator>(
    _ name: String, of iterator: Iterator.Type
  ) throws -> LuaObjectType<Iterator> {
    try vm.defineObjectType(
      name, of: iterator, methods: [:],
      metamethods: { type in
        bind([
          "__call": BoundMethod { host, call in
            guard let iterator = call.object(1, type) else {
              throw host.usage(
                call, "bad argument #1 to '__call' (\(name) expected, got \(call.typeName(1)))")
            }
            return try iterator.next(host, call)
          },
          "__close": BoundMethod { _, call in
            call.object(1, type)?.close()
            return call.answer()
          },
        ])
      })
  }
}
