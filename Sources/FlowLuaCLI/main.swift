internal import FlowEngine
internal import Glibc

/// The words of the command line as they are: `CommandLine.arguments` would repair what isn't UTF-8.
let words = UnsafeBufferPointer(
  start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)
).compactMap { word in
  word.map { ByteString(Array(UnsafeRawBufferPointer(start: $0, count: strlen($0)))) }
}

let status: Int32
do throws(CommandLineArguments.Misuse) {
  let arguments = try CommandLineArguments(words)
  switch arguments.information {
  case .help:
    Output.write(CommandLineArguments.usage, toError: false)
    status = 0
  case .version:
    Output.write("flowlua 0.1.0\n", toError: false)
    status = 0
  case nil:
    EventLoop.endProgramsWithProcess()
    status = Interpreter(arguments: arguments).run()
  }
} catch {
  Output.error(program: words.first ?? "flowlua", error.message)
  if error.showsUsage { Output.write(CommandLineArguments.usage, toError: true) }
  status = error.status
}
exit(status)
