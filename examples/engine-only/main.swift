// A program that uses the engine from Swift alone, without Lua.
import FlowEngine

if CommandLine.arguments.dropFirst().first == "bench" {
  measure(count: CommandLine.arguments.dropFirst(2).first.flatMap { Int($0) } ?? 1_000_000)
} else {
  runUploads()
  runBesideMainActor()
}
