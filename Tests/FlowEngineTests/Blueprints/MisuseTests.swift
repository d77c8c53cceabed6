import FlowEngine
import Foundation
import Testing

/// Wrong use of the Swift API ends the process with a sentence and the caller's place; no script can reach it.
@Suite("Misuse of the engine's Swift API")
struct MisuseTests {
  private func expect(_ result: ExitTest.Result?, _ sentence: String) {
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    let place = "FlowEngineTests/MisuseTests.swift:"
    #expect(text.contains(place) && text.contains(": Fatal error: " + sentence), "\(text)")
  }

  @Test("A timeout that isn't longer than 0 is named with the place of the op")
  func timeout() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Op("SlowOp") { _ in }.with(timeout: .zero)
    }
    expect(result, "a timeout is longer than 0")
  }

  @Test("A timeout of a typed op is named with the place of its configuration")
  func typedTimeout() async {
    struct SlowOp: TypedOp {
      var configuration: OpConfiguration { OpConfiguration(timeout: .seconds(-1)) }
      func run(_ data: OpData<SlowOp>) {}
    }
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = SlowOp().makeOp()
    }
    expect(result, "a timeout is longer than 0")
  }

  @Test("A policy without attempts is named with its place")
  func attempts() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = RetryPolicy(attempts: 0)
    }
    expect(result, "a RetryPolicy has at least 1 attempt")
  }

  @Test("A case that can't stand where it is added is named with its place")
  func cases() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Flow("pick").otherwise()
    }
    expect(result, "flow 'pick': otherwise() without a case before it")
  }

  @Test("A type that can't be read is named with the place of its declaration")
  func types() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = Flow("typed").needs(["size": "[int"])
    }
    expect(result, "'size' was declared with a wrong type")
  }

  @Test("An op that is started on a loop that was shut down is named with its place")
  func shutDownLoop() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let loop = FlowEventLoop()
      loop.shutdown()
      SleepOp(.seconds(1)).start(on: loop)
    }
    expect(result, "an op was started on an event loop that was shut down")
  }
}
