@testable import FlowEngine
import Testing

@Suite("Undos")
struct UndoTests {
  private let failing = Op("FailOp") { _ in throw FlowError(.error, "boom") }

  /// An op that writes its name, and whose undo logs it.
  private func op(_ name: ByteString) -> Op {
    Op(name.description) {
      $0.set(name.description, true)
    }.with(undo: { $0.log("undone: \($0.endingError?.message ?? "nil")") })
  }

  private func undone(_ run: Run) -> [ByteString] {
    run.events.filter { $0.kind == .undo }.map { "\($0.path): \($0.message ?? "")" }
  }

  @Test("A flow that fails undoes what had succeeded, the last first, from inside of nested flows")
  func order() throws {
    let inner = Flow("inner").add(op("BOp")).add(op("COp"))
    let run = Flow("f").add(op("AOp")).add(inner).add(failing).start(on: makeLoop())
    try run.waitUntilEnd()
    #expect(run.error?.message == "boom")
    #expect(
      undone(run) == [
        "f/inner/COp: successfully", "f/inner/BOp: successfully", "f/AOp: successfully",
      ])
    #expect(run.lateErrors.isEmpty)
  }

  @Test("An undo reads the data of its item, and has its index")
  func items() throws {
    let loop = makeLoop()
    var seen: [ByteString] = []
    let item = Op("ItemOp", needs: ["x": "string"]) { context in
      context.set("y", .integer(Int64(context.index) * 10))
    }.with { context in
      let y: Int = try context.value("y")
      let x: String = try context.value("x")
      seen.append("\(context.displayName): \(x) \(y) \(context.attempt)")
    }
    let run = Flow("f")
      .addGrouped(item, GroupDispatcher(input: "list", maxConcurrent: 1)).add(failing)
      .start(on: loop, data: InitialData([("list", list(["a", "b", "c"]))]))
    try run.waitUntilEnd()
    run.markObserved()
    #expect(seen == ["ItemOp #3: c 30 1", "ItemOp #2: b 20 1", "ItemOp #1: a 10 1"])
  }

  @Test("The errors of undos are late errors, and the other undos are executed")
  func failingUndos() throws {
    let loop = makeLoop()
    let bad = op("BadOp").with { _ in throw FlowError(.error, "can't") }
    let run = Flow("f").add(op("AOp")).add(bad).add(op("BOp")).add(failing).start(on: loop)
    try run.waitUntilEnd()
    run.markObserved()
    #expect(run.error?.message == "boom")
    #expect(run.lateErrors.map(\.description) == ["[f/BadOp] can't"])
    #expect(
      undone(run) == [
        "f/BOp: successfully", "f/BadOp: withError: can't", "f/AOp: successfully",
      ])
    #expect(loop.unobservedFailures.count == 1)
  }

  @Test("A flow that succeeds undoes nothing, and releases what its undos hold")
  func released() throws {
    final class Token {}
    let loop = makeLoop()
    var token: Token? = Token()
    weak let held = token
    var isHeld = false
    let keep = Op("KeepOp") { [token] _ in _ = token }.with(undo: { _ in })
    let check = Op("CheckOp") { _ in isHeld = held != nil }
    token = nil
    try startAndWait(Flow("f").add(keep).add(check), loop)
    #expect(isHeld)
  }

  private func startAndWait(_ flow: Flow, _ loop: FlowEventLoop) throws {
    let run = flow.start(on: loop)
    try run.waitUntilEnd()
    #expect(run.state == .succeeded)
    #expect(undone(run).isEmpty)
  }

  @Test("Buckets of items are released when the flow has succeeded")
  func bucketsAreReleased() throws {
    let loop = makeLoop()
    var buckets: [WeakBucket] = []
    let item = Op("ItemOp", needs: ["x": "string"]) { context in
      buckets.append(WeakBucket(context.bucket))
    }.with(undo: { _ in })
    var held = 0
    let count = Op("CountOp") { _ in held = buckets.filter { $0.bucket != nil }.count }
    let run = Flow("f")
      .add(Flow("inner").addGrouped(item, GroupDispatcher(input: "list"))).add(count)
      .start(on: loop, data: InitialData([("list", list(["a", "b", "c", "d", "e"]))]))
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(held == 5)
    #expect(buckets.allSatisfy { $0.bucket == nil })
  }

  private final class WeakBucket {
    weak var bucket: DataBucket?
    init(_ bucket: DataBucket) { self.bucket = bucket }
  }

  @Test("A cancelled flow is undone; undos that wait too long are cut off")
  func cancelled() throws {
    let loop = makeLoop()
    let slow = op("SlowUndoOp").with(undoBody: SleepingBody(100) { _ in })
    let flow = Flow("f").add(op("AOp")).add(slow).add(waitingOp("WaitOp", 50)).with(
      grace: .seconds(5))
    let run = flow.start(on: loop)
    _ = loop.schedule(after: .seconds(1)) { run.cancel() }
    try run.waitUntilEnd()
    #expect(run.state == .cancelled)
    #expect(run.duration == .seconds(6))
    #expect(
      run.lateErrors.map(\.message) == [
        "the undo of [SlowUndoOp] was cut after a grace of 5s, while it waited"
      ])
    #expect(undone(run).last == "f/AOp: successfully")
  }

  @Test("A wait without end in an undo is stalled")
  func stalled() throws {
    let loop = makeLoop()
    let stuck = op("StuckOp").with(undoBody: HoldingBody { _ in })
    let run = Flow("f").add(op("AOp")).add(stuck).add(failing).start(on: loop)
    try run.waitUntilEnd()
    run.markObserved()
    #expect(run.lateErrors.map(\.kind) == [.stalled])
    #expect(undone(run).last == "f/AOp: successfully")
  }

  @Test("A loop that is shut down releases a waiting undo")
  func shutDown() {
    let loop = makeLoop()
    let slow = op("SlowUndoOp").with(undoBody: SleepingBody(100) { _ in })
    let run = Flow("f").add(slow).add(failing).start(on: loop)
    #expect(!run.isConcluded)
    loop.shutdown()
    #expect(!run.isConcluded)
  }

  @Test("A replaced op isn't undone by the function of the one it replaces")
  func replaced() throws {
    let loop = makeLoop()
    let real = op("RealOp")
    loop.replacements = OpReplacements(["RealOp": Op("RealOp") { _ in }])
    let run = Flow("f").add(real).add(failing).start(on: loop)
    try run.waitUntilEnd()
    run.markObserved()
    #expect(undone(run).isEmpty)
  }

  @Test("The lineage of an undo is that of its op, also in a machine")
  func lineage() throws {
    let loop = makeLoop()
    var seen: [UInt64] = []
    let step = Op("StepOp") { seen.append($0.lineage) }.with(undo: { seen.append($0.lineage) })
    let run = Flow("f").add(step).add(failing).start(on: loop)
    try run.waitUntilEnd()
    run.markObserved()
    #expect(seen.count == 2 && seen.first == seen.last)
  }
}
