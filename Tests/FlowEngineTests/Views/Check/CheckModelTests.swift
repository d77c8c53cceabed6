import FlowEngine
import Testing

/// Random flows of ops that do what they declare: what a check says is compared with runs.
@Suite("Checks of random flows")
struct CheckModelTests {
  @Test("A flow that passes the check never fails with an input error")
  func runsOfFlowsWithoutFoundErrorsMeetNoInputError() throws {
    var clean = 0
    var reached = 0
    try withSeeds(300) { generator in
      let (clean:isClean, reached:hasReached) = try compare(generator)
      if isClean { clean += 1 }
      if hasReached { reached += 1 }
    }
    // Otherwise the comparison says nothing.
    #expect(clean > 30 / Scale.part, "few flows had no errors")
    #expect(reached > 30 / Scale.part, "few missing keys were reached")
  }

  private func withSeeds(_ count: UInt64, _ body: (FlowMaker) throws -> Void) throws {
    let first = RandomFlows.firstSeed
    for number in 0..<RandomFlows.count(count) { try body(FlowMaker(seed: first &+ number)) }
  }

  /// Checks a flow and runs it; returns whether the check found no error, and whether an op was
  /// reached whose key it had found missing.
  private func compare(_ maker: FlowMaker) throws -> (clean: Bool, reached: Bool) {
    let flow = maker.flow(depth: 3)
    let data = InitialData(maker.data())
    let errors = flow.check(data: data).filter { $0.severity == .error }
    // Ops that need a key that nothing provides.
    let missing = Set(
      errors.filter {
        $0.message.hasSuffix("nothing before provides it")
          && !$0.message.hasPrefix("the group")
      }.map(\.op))
    var reached = false
    for _ in 0..<4 {
      let run = flow.start(on: makeLoop(), data: data)
      try run.waitUntilEnd()
      run.markObserved()
      for event in run.events where event.kind == .finish || event.kind == .group {
        let message = event.message ?? ""
        let isInputError =
          message.contains("withInsufficientInputData") || message.contains("withMismatchInput")
          || message.contains("no operation to run")
        if errors.isEmpty {
          #expect(
            !isInputError, "seed \(maker.seed): [\(event.op)] \(message)\n\(run.summary())")
        }
        if event.kind == .finish, missing.contains(event.op) {
          reached = true
          #expect(
            isInputError || message.contains("cancelled"),
            "seed \(maker.seed): [\(event.op)] \(message), but the check found \(errors)")
        }
      }
    }
    return (errors.isEmpty, reached)
  }
}

/// Makes flows, ops and data at random.
private final class FlowMaker {
  let seed: UInt64
  private var generator: SeededGenerator
  private var count = 0

  private static let keys: [ByteString] = ["a", "b", "c", "d", "e", "f"]
  private static let given: [ByteString] = [
    "string", "integer", "float", "boolean", "string[]", "integer[]",
  ]
  /// Types that hold each of a kind that is given, or none of it.
  private static let needed: [ByteString] =
    given + ["number", "any", "any[]", "string|integer|float", "table", "string|boolean"]

  init(seed: UInt64) {
    self.seed = seed
    generator = SeededGenerator(state: seed)
  }

  private func random(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }
  private func key() -> ByteString { Self.keys[random(Self.keys.count)] }

  /// Most often the type that the key has nearly everywhere, so that many flows are right.
  private func type(of key: ByteString, in types: [ByteString]) -> ByteString {
    guard random(10) > 0, let index = Self.keys.firstIndex(of: key) else {
      return types[random(types.count)]
    }
    return Self.given[index]
  }

  private func value(_ type: ByteString) -> FlowValue {
    switch type {
    case "string": .bytes(["x", "y"][random(2)])
    case "integer": .integer(Int64(random(9)))
    case "float": .number(0.5)
    case "boolean": .boolean(random(2) == 0)
    case "string[]": list(["x", "y"])
    default: [Int64(1), Int64(2)].flowValue
    }
  }

  func data() -> [(ByteString, FlowValue)] {
    Self.keys.filter { _ in random(2) == 0 }.map { ($0, value(type(of: $0, in: Self.given))) }
  }

  private func name(_ kind: String) -> ByteString {
    count += 1
    return "\(kind)\(count)"
  }

  private func needs() -> [Declaration] {
    Self.keys.filter { _ in random(6) == 0 }.map { key in
      declaration(key, type(of: key, in: Self.needed), optional: random(3) == 0)
    }
  }

  private func declaration(
    _ key: ByteString, _ type: ByteString, optional: Bool = false
  ) -> Declaration {
    Op("Any", needs: ["\(key)": "\(optional ? type + "?" : type)"]) { _ in }.needs[0]
  }

  /// An op that sets what it gives, some of it perhaps not; it may wait, and it may fail.
  private func op() -> Op {
    var gives: [(key: ByteString, type: ByteString, optional: Bool)] = []
    for key in Self.keys where random(4) == 0 {
      gives.append((key, type(of: key, in: Self.given), random(4) == 0))
    }
    if gives.isEmpty { gives = [("rest", "integer", false)] }
    let fails = random(8) == 0
    let body: (OpContext) -> Void = { [self] context in
      for give in gives where !give.optional || random(2) == 0 {
        if fails, random(4) == 0 { break }
        context.set(give.key.description, value(give.type))
      }
      if fails, random(2) == 0 { context.fail(FlowError(.error, "failed")) }
    }
    let declared = gives.map { declaration($0.key, $0.type, optional: $0.optional) }
    let implementation: any OpBody =
      random(3) == 0 ? SleepingBody(Double(random(3) + 1), body) : PlainBody(body)
    return Op(name: name("Random") + "Op", needs: needs(), gives: declared, body: implementation)
      .with(retry: random(6) == 0 ? RetryPolicy(attempts: 2) : nil)
  }

  private func step(_ depth: Int) -> Op { depth > 0 && random(4) == 0 ? flow(depth: depth) : op() }

  func flow(depth: Int) -> Flow {
    let flow = Flow(name("flow")).needs(random(2) == 0 ? needs() : [])
    for key in Self.keys where random(6) == 0 {
      flow.data(key, value(type(of: key, in: Self.given)))
    }
    var isOpen = false
    var hasOtherwise = false
    for _ in 0..<random(7) {
      switch random(10) {
      case 0...4: flow.add(step(depth - 1))
      case 5: addGroup(flow, step(depth - 1))
      case 6: flow.addParallel((0...random(3)).map { _ in step(depth - 1) })
      case 7 where !hasOtherwise:
        isOpen = true
        if random(2) == 0 {
          flow.case(key(), ["x", "y"][random(2)])
        } else {
          flow.case { [self] _ in random(2) == 0 }
        }
      case 8 where isOpen && !hasOtherwise:
        flow.otherwise()
        hasOtherwise = true
      case 9 where isOpen:
        flow.combine()
        isOpen = false
        hasOtherwise = false
      default: flow.addFinally(step(depth - 1))
      }
    }
    return flow
  }

  private func addGroup(_ flow: Flow, _ op: Op) {
    // This doesn't know what a flow leaves for certain.
    let collect = op.gives.first { !$0.type.isOptional }?.name
    let input: ByteString = random(2) == 0 ? "e" : "f"
    flow.addGrouped(
      op,
      GroupDispatcher(
        input: input, output: collect == nil ? nil : key(), maxConcurrent: random(3) + 1,
        allowFailure: random(2) == 0, allowEmpty: true, failures: random(3) == 0 ? "rest" : nil,
        as: input == "e" ? "a" : "b", collect: collect))
  }
}

/// Follows its instructions at once.
private final class PlainBody: OpBody {
  private let body: (OpContext) -> Void

  init(_ body: @escaping (OpContext) -> Void) {
    self.body = body
  }

  func start(_ context: OpContext) -> CallState {
    body(context)
    return .finished
  }
}
