@_spi(Scripting) import FlowEngine
import Glibc
import Testing

@Suite("Typed ops")
struct TypedOpTests {
  @Test("Inputs and outputs are declared from the properties")
  func inputsAndOutputsAreDeclaredFromTheProperties() {
    let op = UploadOp(host: "h").makeOp()
    #expect(op.name == "UploadOp")
    #expect(
      op.needs.map { "\($0.name): \($0.type.name)" } == [
        "image: string", "quality: integer?", "tags: string[]?",
      ])
    #expect(op.gives.map { "\($0.name): \($0.type.name)" } == ["note: string?", "url: string"])
    #expect(op.primaryInput == "image")
    #expect(op.primaryOutput == "url")
    #expect(op.retry?.attempts == 2)
  }

  @Test("An op reads its inputs and sets its outputs")
  func anOpReadsItsInputsAndLeavesItsOutputs() {
    let upload = UploadOp(host: "example.org")
    let run = Flow().data(upload.image, "a.png").data(upload.tags, ["x", "y"])
      .add(upload).start(on: makeLoop())
    #expect(run.state == .succeeded)
    #expect(run.data[upload.url] == "example.org/a.png?80&x&y")
    #expect(run.data[upload.quality] == 80)
    #expect(run.data["note"]?.logText == nil)
  }

  @Test("A missing or mismatched input is the engine's input error")
  func missingAndMismatchedInputIsTheEnginesInputError() {
    let loop = makeLoop()
    let upload = UploadOp(host: "h")
    let missing = upload.start(on: loop)
    #expect(missing.error?.kind == .insufficientInput)
    #expect(missing.error?.message == "can't find <image> in data bucket")
    let wrong = upload.start(on: loop, data: InitialData([("image", .integer(3))]))
    #expect(wrong.error?.kind == .mismatchedInput)
    #expect(
      wrong.error?.message
        == "<image> in data bucket is <3> with type <integer>, but NOT type <string>.")
    let optional = upload.start(
      on: loop, data: InitialData([("image", .bytes("a")), ("quality", .bytes("high"))]))
    #expect(optional.error?.kind == .mismatchedInput)
  }

  @Test("A value that the Swift type refuses is a mismatch")
  func aValueThatTheSwiftTypeRefusesIsAMismatchToo() {
    let loop = makeLoop()
    let plan = PlanOp().start(
      on: loop, data: InitialData([("plan", .bytes("gold")), ("seats", .integer(1))]))
    #expect(
      plan.error?.message
        == "<plan> in data bucket is <gold> with type <string>, but NOT type <Plan>.")
    let seats = PlanOp().start(
      on: loop, data: InitialData([("plan", .bytes("pro")), ("seats", .integer(300))]))
    #expect(
      seats.error?.message
        == "<seats> in data bucket is <300> with type <integer>, but NOT type <UInt8>.")
    let bytes = FlowValue.bytes(ByteString([0xFF]))
    #expect(
      UploadOp(host: "h").start(on: loop, data: InitialData([("image", bytes)])).error?.kind
        == .mismatchedInput)
  }

  @Test("A secret is read in plain text, and no error shows it")
  func aSecretIsReadAsItIsAndNoErrorShowsIt() {
    let loop = makeLoop()
    let upload = UploadOp(host: "h")
    let run = upload.start(on: loop, data: InitialData([("image", .secret(.bytes("a.png")))]))
    #expect(run.data[upload.url] == "h/a.png?80")
    let wrong = PlanOp().start(
      on: loop, data: InitialData([("plan", .secret(.bytes("gold"))), ("seats", .integer(1))]))
    #expect(
      wrong.error?.message
        == "<plan> in data bucket is <<redacted>> with type <string>, but NOT type <Plan>.")
  }

  @Test("An output that isn't set fails the op")
  func anOutputThatIsNotSetFailsTheOp() {
    let run = ForgetfulOp().start(on: makeLoop())
    #expect(run.error?.kind == .missingOutput)
  }

  @Test("One op value serves simultaneous executions")
  func oneValueServesExecutionsAtTheSameTime() throws {
    let scale = ScaleOp()
    let run = Flow().data("sizes", [30, 20, 10])
      .addGrouped(scale, GroupDispatcher(input: "sizes", output: "scaled"))
      .start(on: makeLoop())
    try run.wait()
    #expect(run.data.value("scaled", as: [Int].self) == [60, 40, 20])
    #expect(run.duration == .seconds(30))
  }

  @Test("Inputs keep their values from the start of the op")
  func inputsAreWhatTheyWereWhenTheOpStarted() throws {
    let loop = makeLoop()
    let scale = ScaleOp()
    let run = Flow().data(scale.size, 5)
      .addParallel(scale.makeOp(), Op("ChangeOp") { $0.set("size", 100) })
      .start(on: loop)
    try run.wait()
    #expect(run.data[scale.scaled] == 10)
    #expect(run.data[scale.size] == 100)
  }

  @Test("A concurrent op runs off the loop with copies of its inputs")
  func aConcurrentOpRunsOffTheLoopWithItsInputsInHand() async throws {
    let sum = SumOp()
    let outcome = await onLoopThread { loop in
      let home = pthread_self()
      let run = Flow().data(sum.numbers, [1, 2, 3]).add(sum).start(on: loop)
      guard run.state == .pending, (try? run.waitUntilEnd()) != nil else { return "not started" }
      return "\(run.data[sum.total] ?? -1) \(run.data[sum.thread] == UInt64(home))"
    }
    #expect(outcome == "6 false")
  }

  @Test("A cancelled concurrent op ends after its task")
  func aConcurrentOpThatIsCancelledEndsWhenItsTaskHas() async throws {
    let outcome = await onLoopThread { loop in
      let run = Flow().data("rounds", 0).add(SpinOp()).start(on: loop)
      loop.enqueue { run.cancel(reason: "enough") }
      _ = try? run.waitUntilEnd()
      return "\(run.error?.message ?? "none") \(run.data.boolean("isCancelled") ?? false)"
    }
    // Its value isn't taken any more.
    #expect(outcome == "cancelled: enough false")
  }

  @Test("A concurrent op fails with the error it throws")
  func aConcurrentOpFailsWithWhatItThrows() async throws {
    let outcome = await onLoopThread { loop in
      let run = SumOp().start(on: loop, data: InitialData([("numbers", [Int]().flowValue)]))
      _ = try? run.waitUntilEnd()
      return run.error?.message.description ?? "none"
    }
    #expect(outcome == "nothing to add")
  }

  @Test("Values survive the round trip unchanged")
  func valuesComeBackAsTheyWentIn() {
    func isKept<T: FlowValueConvertible & Equatable>(_ value: T) -> Bool {
      T(flowValue: value.flowValue) == value
    }
    #expect(isKept(UInt8.max) && isKept(Int8.min) && isKept(UInt32.max) && isKept(Int16(-3)))
    #expect(isKept(Float(1.5)) && isKept(Optional(3)) && isKept(Optional<Int>.none))
    #expect(isKept(["a": 1, "b": 2]) && isKept([String: Int]()) && isKept(["x": ["y": [1.5]]]))
    #expect(isKept([Plan.pro, .free]) && isKept([ByteString("k"): true]))
    #expect(UInt64.max.flowValue.typeName == "float")
    #expect(UInt8(flowValue: .integer(256)) == nil)
    #expect([String: Int](flowValue: [1, 2].flowValue) == nil)
    #expect(["b": "x", "a": "y"].flowValue.logText == "{a = y, b = x}")
    let plain = PlainValue(flowValue: ["n": [1, 2]].flowValue)
    #expect(plain.flatMap { [String: [Int]](flowValue: $0.flowValue) } == ["n": [1, 2]])
  }

  @Test("Maps of any depth are released without recursion", .smallStack)
  func mapsOfAnyDepthAreReleasedWithoutRecursion() {
    var value = FlowValue.integer(1)
    for level in 0..<Scale.depth {
      value = .opaque(
        level % 2 == 0 ? MapValue([("k", value)]) : ListValue([value]) as any OpaqueValue)
    }
    weak var innermost: TestOpaque?
    do {
      let made = TestOpaque(type: "x", base: "x")
      innermost = made
      value = .opaque(MapValue([("deep", value), ("o", .opaque(made))]))
    }
    #expect(innermost != nil)
    value = .null
    #expect(innermost == nil)
  }
}

private struct UploadOp: TypedOp {
  let host: String
  let image = Input<String>("image")
  let quality = Input("quality", default: 80)
  let tags = Input<[String]?>("tags")
  let url = Output<String>("url")
  let note = Output<String?>("note")

  var configuration: OpConfiguration {
    OpConfiguration(
      primaryInput: "image", primaryOutput: "url", retry: RetryPolicy(attempts: 2))
  }

  func run(_ data: OpData<UploadOp>) throws {
    data.log("uploading to \(host)")
    let tags = (data.tags ?? []).map { "&\($0)" }.joined()
    data.note = "soon gone"
    data.note = nil
    data.url = "\(host)/\(data.image)?\(data.quality)\(tags)"
  }
}

private enum Plan: String, FlowValueConvertible {
  case pro, free
}

private struct PlanOp: TypedOp {
  let plan = Input<Plan>("plan")
  let seats = Input<UInt8>("seats")

  func run(_ data: OpData<PlanOp>) {}
}

private struct ForgetfulOp: TypedOp {
  let promise = Output<String>("promise")

  func run(_ data: OpData<ForgetfulOp>) {}
}

private final class ScaleOp: AsyncTypedOp {
  let size = Input<Int>("size")
  let scaled = Output<Int>("scaled")

  func run(_ data: OpData<ScaleOp>) async throws {
    try await data.sleep(for: .seconds(data.size))
    data.scaled = data.size * 2
  }
}

private struct SumOp: ConcurrentTypedOp {
  let numbers = Input<[Int]>("numbers")
  let total = Output<Int>("total")
  let thread = Output<UInt64>("thread")

  func run(_ data: inout ConcurrentOpData<SumOp>) async throws {
    if data.numbers.isEmpty { throw FlowError(.error, "nothing to add") }
    data.total = data.numbers.reduce(0, +)
    data.thread = UInt64(pthread_self())
  }
}

private struct SpinOp: ConcurrentTypedOp {
  let rounds = Input<Int>("rounds")
  let isCancelled = Output<Bool>("isCancelled")

  func run(_ data: inout ConcurrentOpData<SpinOp>) async throws {
    while !Task.isCancelled { await Task.yield() }
    data.isCancelled = true
  }
}
