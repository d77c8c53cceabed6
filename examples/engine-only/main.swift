// A program that uses the engine from Swift alone, without Lua.
import FlowEngine

if CommandLine.arguments.dropFirst().first == "bench" {
  measure(count: CommandLine.arguments.dropFirst(2).first.flatMap { Int($0) } ?? 1_000_000)
} else {
  runUploads()
}

/// Logs in, uploads three images two at a time, and prints the summary.
func runUploads() {
  let login = Op("LoginOp", needs: ["email": "string"], gives: ["token": "string"]) { context in
    let email = try context.value("email", as: String.self)
    context.log(ByteString("logging in as \(email)"))
    context.set("token", "token of \(email)")
  }
  let upload = Op("UploadOp", needs: ["image": "string"], gives: ["url": "string"]) { context in
    context.set("url", "url_of_\(try context.value("image", as: String.self))")
  }
  let flow = Flow("signup")
    .data("email", "test@gmail.com")
    .data("images", ["a", "b", "c"])
    .add(login)
    .addGrouped(upload, GroupDispatcher(input: "images", output: "urls", maxConcurrent: 2))
    .didFinish { print($0.summary(), terminator: "") }

  let loop = EventLoop()
  let run = flow.start(on: loop)
  do {
    try run.wait()
  } catch {
    print("stalled: \(error)")
  }
  if run.error != nil { print("failed") }
}
