@_spi(Scripting) import LuaVM
import Testing

/// Starting functions of scripts: their arguments and first results.
@Suite("Starts of functions")
struct StartTests {
  private static let long = ByteString(String(repeating: "long ", count: 100))

  /// A state with a type of handles, and a function that tells types and texts of its arguments.
  private func describing() throws -> (host: TestHost, function: LuaReference) {
    let host = try TestHost()
    _ = try host.vm.defineHandleType("handle", methods: [:])
    let function = try host.load(
      """
      local texts = {}
      for i = 1, select("#", ...) do
        local v = select(i, ...)
        local isShown = type(v) ~= "userdata" and type(v) ~= "table"
        texts[i] = isShown and #tostring(v) < 9 and tostring(v) or type(v)
      end
      return table.concat(texts, " ")
      """)
    return (host, function)
  }

  private func text(_ outcome: LuaOutcome) -> String {
    guard case .returned(.string(let text), mark: 0) = outcome else { return "\(outcome)" }
    return text.description
  }

  @Test("A function gets bound values, arguments and a handle in order")
  func order() throws {
    let (host, function) = try describing()
    let vm = host.vm
    let bound = try vm.makeTable(values: [.string("x"), .nil, .integer(3), .integer(4)])
    for (handle, before, after) in [
      (LuaCallback.Handle.none, "", ""), (.first, "userdata ", ""), (.last, "", " userdata"),
    ] {
      let plain = LuaCallback(function, handle: handle)
      let callback = LuaCallback(function, bound: (bound, 3), handle: handle)
      func expect(_ outcome: LuaOutcome, _ middle: String) {
        #expect(text(outcome) == before + middle + after)
      }
      expect(plain.start(.nil, nil, slot: 1, generation: 2), "nil")
      expect(plain.start(.integer(1), .number(0.5), slot: 1, generation: 2), "1 0.5")
      expect(plain.start(.string("a"), .boolean(true), slot: 1, generation: 2), "a true")
      expect(
        plain.start(
          [.reference(bound), .string(Self.long), .string(""), .integer(7)], slot: 1, generation: 2),
        "table string  7")
      expect(callback.start(slot: 1, generation: 2), "x nil 3")
      expect(callback.start([.string("a"), .integer(9)], slot: 1, generation: 2), "x nil 3 a 9")
    }
    #expect(vm.stackDepth == 0)
  }

  @Test("More arguments than a stack has room for are refused")
  func manyArguments() throws {
    let (host, function) = try describing()
    let count = try host.load("return select('#', ...)")
    guard
      case .returned(.integer(5000), mark: 0) = host.vm.start(
        count, Array(repeating: .integer(1), count: 5000))
    else {
      Issue.record("5000 expected")
      return
    }
    let outcome = host.vm.start(function, Array(repeating: .integer(1), count: 1_000_000))
    guard case .refused(let error) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect((error as? LuaError)?.code == .overflow)
    #expect(host.vm.stackDepth == 0)
  }

  @Test("A callback knows marks and its arguments, and other starts return values as they are")
  func results() throws {
    let host = try TestHost()
    let vm = host.vm
    let metatable = try vm.makeTable()
    let marker = try vm.makeMarker(7, metatable: metatable)
    let table = try vm.makeTable()
    func expect(
      _ code: String, _ argument: LuaValue, _ expected: String,
      sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      try host.setGlobal("mark", .reference(marker))
      let function = try host.load("local a, b = ... \(code)")
      let outcome = LuaCallback(function).start(.string("first"), argument, slot: 1, generation: 1)
      let shown =
        switch outcome {
        case .returned(.reference(let value), let mark): "\(value.kind.name) \(mark)"
        case .returned(let value, let mark): "\(value) \(mark)"
        case .returnedArgument(let index, let mark): "argument \(index) \(mark)"
        default: "\(outcome)"
        }
      #expect(shown == expected, sourceLocation: sourceLocation)
    }
    try expect("return b", .reference(table), "argument 1 0")
    try expect("return mark(b), 1", .reference(table), "argument 1 7")
    try expect("return {}, b", .reference(table), "table 0")
    try expect("return mark {}", .reference(table), "table 7")
    try expect("return mark(5)", .nil, "5 7")
    try expect("return mark()", .nil, "nil 7")
    try expect("return mark(print)", .nil, "function 7")
    let marking = try host.load("return mark(5)")
    let callback = LuaCallback(marking, result: .value)
    for outcome in [vm.start(marking), callback.start(slot: 1, generation: 1)] {
      guard case .returned(.reference(let value), mark: 0) = outcome else {
        Issue.record("\(outcome)")
        return
      }
      #expect(value.kind == .userdata)
    }
    let before = vm.referenceCount
    let dropped = LuaCallback(try host.load("return {}"), result: .userdata)
    // The number of its type.
    guard case .returned(.integer(5), mark: 0) = dropped.start(slot: 1, generation: 1) else {
      Issue.record("a result that isn't wanted was returned")
      return
    }
    #expect(vm.referenceCount <= before + 1)
    #expect(vm.stackDepth == 0)
  }

  @Test("Whichever allocation fails, a callback is run or refused, and nothing stays behind")
  func eachAllocation() throws {
    let (host, function) = try describing()
    let bound = try host.vm.makeTable(values: [.string("x")])
    let callback = LuaCallback(function, bound: (bound, 1), handle: .last)
    let arguments = [LuaValue.string(Self.long), .integer(1), .string(Self.long)]
    var failures = 0
    for n: UInt64 in 1...60 {
      host.vm.failAllocation(n)
      let outcome = callback.start(arguments, slot: 1, generation: 1, deadline: -5_000_000_000)
      host.vm.failAllocation(0)
      switch outcome {
      case .returned: #expect(text(outcome) == "x string 1 string userdata")
      case .refused(let error):
        failures += 1
        #expect((error as? LuaError)?.code == .memory)
      case .failed(let coroutine):
        failures += 1
        host.vm.release(coroutine, finished: false)
      default: Issue.record("\(outcome)")
      }
    }
    #expect(failures > 3)
    #expect(host.vm.stackDepth == 0)
  }
}
