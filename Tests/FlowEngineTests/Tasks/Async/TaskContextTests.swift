import FlowEngine
import Testing

@Suite("Task-local values of the code that starts something")
struct TaskContextTests {
  private enum Request {
    @TaskLocal static var id = "none"
  }

  private struct NotedOp: ConcurrentTypedOp {
    let seen = Output<String>("seen")

    @concurrent func run(_ data: inout ConcurrentOpData<NotedOp>) async throws {
      data.seen = Request.id
    }
  }

  @Test("Code on a thread has the values of the task that called it, also after waits")
  func perform() async throws {
    let thread = try LoopThread(clock: VirtualClock())
    for id in ["one", "two"] {
      let seen = try await Request.$id.withValue(id) {
        try await thread.perform { loop in
          let before = Request.id
          try await loop.sleep(for: .seconds(1))
          return [before, Request.id]
        }
      }
      #expect(seen == [id, id])
    }
    await thread.shutdown()
  }

  @Test(
    "Async ops have the values of the code that has started their run: later steps, retries, items, runs within them"
  )
  func runs() async throws {
    let thread = try LoopThread(clock: VirtualClock())
    let seen = Locked<[String]>([])
    @Sendable func note(_ name: String) { seen.withLock { $0.append("\(name) \(Request.id)") } }
    try await thread.perform { loop in
      let flow = Flow("all")
        .add(Op("SleepOp") { context in try await context.sleep(for: .seconds(1)) })
        .add(
          Op("RetriedOp") {
            (context) async throws in
            note("try")
            if context.attempt == 1 { throw FlowError(.error, "once more") }
          }.with(retry: RetryPolicy(attempts: 2, delay: .seconds(1)))
        )
        .add(
          Op("OuterOp") { (context) async throws in
            try await context.sleep(for: .seconds(1))
            try await Request.$id.withValue("inner of \(Request.id)") {
              try await context.start(
                Flow("inner").add(Op("WaitOp") { try await $0.sleep(for: .seconds(1)) })
                  .add(Op("InnerOp") { (_) async throws in note("inner") })
              ).wait()
            }
          }
        )
        .add(NotedOp())
        .add(
          Op("LastOp") { (context) async throws in
            note("last \(try context.value("seen", as: String.self))")
          })
      let run = Request.$id.withValue("seven") { flow.start(on: loop) }
      #expect(Request.id == "none")
      try await run.wait()
    }
    #expect(
      seen.withLock { $0 } == [
        "try seven", "try seven", "inner inner of seven", "last seven seven",
      ])
    await thread.shutdown()
  }

  @Test("Runs beside each other have their own values, and release them at their ends")
  func beside() async throws {
    final class Token: Sendable {}
    enum Held { @TaskLocal static var token: Token? }
    let thread = try LoopThread(clock: VirtualClock())
    let isWrong = Locked(false)
    try await thread.perform { loop in
      weak var released: Token?
      do {
        let token = Token()
        released = token
        let runs = (0..<20).map { number in
          Held.$token.withValue(token) {
            Request.$id.withValue("\(number)") {
              Flow("f").add(Op("SleepOp") { try await $0.sleep(for: .seconds(20 - number)) })
                .add(
                  Op("SeenOp") { (_) async throws in
                    if Request.id != "\(number)" { isWrong.withLock { $0 = true } }
                  }
                ).start(on: loop)
            }
          }
        }
        for run in runs { try await run.wait() }
        withExtendedLifetime(runs) {}
      }
      #expect(released == nil)
    }
    #expect(!isWrong.withLock { $0 })
    await thread.shutdown()
  }
}
