internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// An iterator of scripts over a text or a file, such as `csv.rows` returns: a `for` loop calls it, and closes
/// it at its end.
protocol TextIterator: AnyObject {
  /// The next results, the first of them nil at the end. May wait.
  func next(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer

  /// Releases the text or file.
  func close()
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
