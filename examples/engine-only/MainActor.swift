import FlowEngine

/// Code of the main actor beside a loop that the main thread runs: an op hands something over to it, and
/// it waits for a run of the loop.
@MainActor func runBesideMainActor() {
  let loop = FlowEventLoop()
  // Until this ends the loop waits, though nothing of its own runs.
  let external = loop.mailbox.begin()
  _ = Op("NotifyOp") { _ in
    Task { @MainActor in
      print("notified on the main actor")
      external.end()
    }
  }.start(on: loop)
  loop.runUntilIdle()

  let run = Op("SleepOp") { (context) async throws in
    try await context.sleep(for: .milliseconds(1))
    context.set("url", "url_of_a")
  }.start(on: loop)
  var url: String?
  Task { @MainActor in
    try? await loop.sleep(for: .milliseconds(1))
    url = (try? await run.value)?.value("url") ?? "nothing"
    print("awaited on the main actor: \(url ?? "")")
  }
  _ = loop.turn { url != nil }
}
