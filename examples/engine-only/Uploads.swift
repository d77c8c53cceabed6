import FlowEngine

/// Logs in, uploads three images two at a time, computes a checksum off the loop, and prints the
/// summary.
func runUploads() {
  let checksum = ChecksumOp()
  let flow = Flow("signup") {
    LoginOp()
    Grouped(UploadOp(), over: "images", into: "urls", maxConcurrent: 2)
    FlowCase("plan", "pro") { WelcomeOp(name: "pro") }
    Otherwise { WelcomeOp(name: "guest") }
    FlowParallel {
      checksum
      Op("ReportOp") { await Screen.shared.show($0.bucket.value("urls", as: [String].self) ?? []) }
    }
    Finally { LogoutOp() }
  }
  flow.data("email", "test@gmail.com").data("plan", "pro").data("images", ["a", "b", "c"])
    .didFinish { print($0.summary(), terminator: "") }

  let loop = FlowEventLoop()
  let run = flow.start(on: loop)
  do {
    let data = try run.wait()
    print("checksum:", data[checksum.checksum] ?? 0)
  } catch {
    print("failed: \(error)")
  }
}

/// A typed op: inputs and outputs are its properties.
private struct LoginOp: TypedOp {
  let email = Input<String>("email")
  let token = Output<String>("token")

  func run(_ data: OpData<LoginOp>) throws {
    data.log("logging in as \(data.email)")
    data.token = "token of \(data.email)"
  }
}

/// One whose work waits; other members of its group continue meanwhile.
private struct UploadOp: AsyncTypedOp {
  let image = Input<String>("image")
  let url = Output<String>("url")

  var configuration: OpConfiguration {
    OpConfiguration(retry: RetryPolicy(attempts: 3, delay: .seconds(0.1)), timeout: .seconds(5))
  }

  func run(_ data: OpData<UploadOp>) async throws {
    try await data.sleep(for: .milliseconds(10))
    data.url = "url_of_\(data.image)"
  }
}

/// One that computes for long, at the same time as everything else.
private struct ChecksumOp: ConcurrentTypedOp {
  let urls = Input<[String]>("urls")
  let checksum = Output<Int>("checksum")

  func run(_ data: inout ConcurrentOpData<ChecksumOp>) async throws {
    data.checksum = data.urls.joined().utf8.reduce(0) { ($0 * 31 + Int($1)) % 65521 }
  }
}

/// One with an argument.
private struct WelcomeOp: TypedOp {
  let name: String

  func run(_ data: OpData<WelcomeOp>) { data.log("welcome, \(name)") }
}

private struct LogoutOp: TypedOp {
  let token = Input<String?>("token")

  func run(_ data: OpData<LogoutOp>) {
    if let token = data.token { data.log("returned the \(token)") }
  }
}

/// Something that lives on the main actor, as a user interface does: the loop runs its code while it
/// waits.
@MainActor private final class Screen {
  static let shared = Screen()

  func show(_ urls: [String]) { print("uploaded:", urls.joined(separator: ", ")) }
}
