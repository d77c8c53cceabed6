// A server of jobs: clients send scripts, and get their events and outcomes.
//
//   swift run JobServer /tmp/jobs.sock
//
// SIGTERM and SIGINT end it: jobs that run have ten seconds to end, then they are cancelled.
import Dispatch
import Foundation

let path = CommandLine.arguments.dropFirst().first ?? "jobs.sock"
let log: @Sendable (String) -> Void = { line in
  // A server doesn't end because nobody reads its log, or the disk is full.
  try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
}
signal(SIGPIPE, SIG_IGN)
let server = Server(at: path, Jobs(log: log))
// Until Dispatch handles a signal, which it begins to do on another thread, the signal ends the process.
let signals = [SIGTERM, SIGINT].map { number in
  let source = DispatchSource.makeSignalSource(signal: number, queue: .main)
  source.setEventHandler { server.shutdown() }
  source.resume()
  return source
}
log("info serving at \(path)")
try await server.run()
log("info ended")
