import FlowEngine
import Testing

@Suite("Traces of other programs")
struct TraceContextTests {
  private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
  private static let valid = "00-\(trace)-00f067aa0ba902b7-01"

  @Test("A valid traceparent is continued with its id, span and flag")
  func aValidParentIsContinued() throws {
    let context = try #require(TraceContext(traceparent: ByteString(Self.valid), state: "a=1,b=2"))
    #expect(context.id == ByteString(Self.trace))
    #expect(context.parent == 0x00F0_67AA_0BA9_02B7)
    #expect(context.traceparent == ByteString(Self.valid))
    #expect(context.state == "a=1,b=2")
    #expect(context.traceparent(of: 0xAB) == ByteString("00-\(Self.trace)-00000000000000ab-01"))
    let unsampled = try #require(
      TraceContext(traceparent: ByteString("00-\(Self.trace)-00f067aa0ba902b7-02")))
    #expect(unsampled.traceparent(of: 1).description.hasSuffix("-0000000000000001-00"))
  }

  @Test(
    "Later versions are read as far as they are known",
    arguments: [
      "cc-\(trace)-00f067aa0ba902b7-01", "01-\(trace)-00f067aa0ba902b7-09-what-is-new",
    ])
  func laterVersionsAreRead(text: String) throws {
    let context = try #require(TraceContext(traceparent: ByteString(text)))
    #expect(context.traceparent == ByteString(Self.valid))
  }

  @Test(
    "An invalid traceparent is refused",
    arguments: [
      "", "-", "00", "00-\(trace)", "00-\(trace)-00f067aa0ba902b7", "00-\(trace)-00f067aa0ba902b7-",
      "ff-\(trace)-00f067aa0ba902b7-01", "0-\(trace)-00f067aa0ba902b7-01",
      "00-\(trace.uppercased())-00f067aa0ba902b7-01", "00-\(trace)-00F067AA0BA902B7-01",
      "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
      "00-\(trace)-0000000000000000-01", "00-\(trace)-00f067aa0ba902b7-0x",
      "00-\(trace)-00f067aa0ba902b7-01-more", "00-\(trace)-00f067aa0ba902b7-01 ",
      "00-\(trace.dropLast())g-00f067aa0ba902b7-01", "00_\(trace)_00f067aa0ba902b7_01",
      "01-\(trace)-00f067aa0ba902b7-01.more",
    ])
  func anInvalidParentIsRefused(text: String) {
    #expect(TraceContext(traceparent: ByteString(text)) == nil)
  }

  @Test("A state that no header could have is left out")
  func anImpossibleStateIsLeftOut() {
    for state in ["", "a=1\r\nx: y", String(repeating: "a", count: 513)] {
      #expect(
        TraceContext(traceparent: ByteString(Self.valid), state: ByteString(state))?.state == nil)
    }
  }

  @Test("A run has the trace that it was started with, and other runs of the loop have the loop's")
  func aRunHasItsTrace() throws {
    let context = try #require(TraceContext(traceparent: ByteString(Self.valid), state: "a=1"))
    let loop = makeLoop()
    loop.trace = TraceContext()
    var seen: [TraceContext?] = []
    let inner = Op("InnerOp") { seen.append($0.traceContext) }
    let outer = Op("OuterOp") { op in
      seen.append(op.traceContext)
      _ = op.start(inner)
    }
    let run = outer.start(on: loop, trace: context)
    let other = inner.start(on: loop)
    loop.runUntilIdle()
    #expect(run.traceContext?.traceparent == ByteString(Self.valid))
    #expect(other.traceContext?.id == loop.trace?.id)
    #expect(seen.map { $0?.id } == [context.id, context.id, loop.trace?.id])
    #expect(seen.map { $0?.state } == ["a=1", "a=1", nil])
    // Each op has a span of its own.
    #expect(Set(seen.map { $0?.parent }).count == 3)
  }

  @Test("A concurrent op has the trace at its own span")
  func aConcurrentOpHasItsTrace() throws {
    let context = try #require(TraceContext(traceparent: ByteString(Self.valid), state: "a=1"))
    let loop = makeLoop()
    let run = TracedOp().makeOp().start(on: loop, trace: context)
    try run.wait()
    let span = SpanID.execution(run: run.identifier, id: 0)
    #expect(run.data.string("parent") == context.traceparent(of: span).description)
    let untraced = TracedOp().start(on: loop)
    try untraced.wait()
    #expect(untraced.data.string("parent") == "none")
  }

  @Test("A program of an op gets the trace of its run")
  func programsGetTheTraceOfTheirRun() throws {
    let context = try #require(TraceContext(traceparent: ByteString(Self.valid), state: "a=1"))
    let loop = makeLoop()
    let run = ExecOp("sh", "-c", "echo $TRACEPARENT $TRACESTATE").start(on: loop, trace: context)
    try run.wait()
    let span = SpanID.execution(run: run.identifier, id: 0)
    let expected = "\(context.traceparent(of: span)) a=1\n"
    #expect(run.data.string("stdout") == expected)
  }

  @Test("A new trace has a random id and no parent")
  func aNewTraceIsRandom() {
    let (one, other) = (TraceContext(), TraceContext())
    #expect(one.id != other.id)
    #expect(one.id.bytes.count == 32)
    #expect(one.traceparent == nil)
  }

  @Test("Ids of spans differ by run, execution and part")
  func idsOfSpansDiffer() {
    var ids: Set<UInt64> = []
    let runs: [ByteString] = ["a-1", "a-2"]
    _ = runs.map { run in
      _ = (0..<200).map { (id: UInt64) in
        let span = SpanID.execution(run: run, id: id)
        ids.formUnion([span, SpanID.part(1, of: span), SpanID.part(2, of: span)])
      }
    }
    #expect(ids.count == 1200)
    #expect(!ids.contains(0))
  }
}

private struct TracedOp: ConcurrentTypedOp {
  let parent = Output<String>("parent")

  func run(_ data: inout ConcurrentOpData<TracedOp>) async {
    data.parent = data.traceContext?.traceparent?.description ?? "none"
  }
}
