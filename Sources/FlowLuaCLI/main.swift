internal import FlowEngine
internal import FlowScripting
internal import FlowSystem
internal import LuaVM

/// The unchanged words of the command line: `CommandLine.arguments` would repair words that aren't
/// UTF-8, and is empty without /proc.
var wordCount: Int32 = 0
let rawWords = UnsafeBufferPointer(start: flowsystem_arguments(&wordCount), count: Int(wordCount))
let words = rawWords.compactMap { word in word.map { ByteString(cString: $0) } }

flowsystem_end_without_memory()
flowsystem_hold_streams()
flowsystem_keep_statuses()
flowsystem_end_at_exit(rawWords.first ?? nil) {
  Signals.end(withStatus: Keeping.end(withStatus: $0))
}
// Before another process, which the system shows with the same environment, is forked.
Secrets.take()

let status: Int32
do throws(CommandLineArguments.Misuse) {
  let arguments = try CommandLineArguments(words, isTest: TestProcess.present != nil)
  if arguments.options.showsHelp {
    Output.write(Usage.help(arguments.program), toError: false)
    status = 0
  } else if arguments.options.showsVersion {
    Interpreter.printVersion()
    status = 0
  } else if let folder = arguments.options.project {
    try arguments.checkProject()
    status = Project(in: folder, arguments.program).write()
  } else if let folder = arguments.options.annotations {
    status = writeAnnotations(to: folder, arguments.program)
  } else if let command = try arguments.options.kept?.command() {
    status = try KeptRuns(arguments).perform(command)
  } else if let remote = arguments.options.remote, remote.joins || remote.checks {
    try remote.check(arguments)
    endPrograms()
    let commands = RemoteCommands(arguments, remote)
    status = remote.joins ? try commands.join() : try commands.check()
  } else {
    try arguments.options.remote?.check(arguments)
    // A message is in the store before the script that waits for it.
    var sent: Int32 = 0
    if let message = arguments.options.kept?.message {
      sent = try KeptRuns(arguments).perform(message)
    }
    endPrograms()
    status = sent == 0 ? start(arguments) : sent
  }
} catch {
  let program = CommandLineArguments.programName(words)
  Output.error(program: program, error.message)
  if error.showsUsage { Output.write(Usage.interpreter(program), toError: true) }
  status = error.status
}
exit(status)

/// From now on programs end and pause with this process.
private func endPrograms() {
  FlowEventLoop.endProgramsWithProcess()
  flowsystem_catch_pauses()
}

/// Performs `--annotations`; returns the exit status.
private func writeAnnotations(to folder: ByteString, _ program: ByteString) -> Int32 {
  do throws(SystemError) { try Folders.make(folder) } catch {
    Output.error(program: program, error.message)
    return 1
  }
  for (name, text) in Annotations.files {
    let path = folder + "/" + ByteString(name)
    if let reason = TextFile.write(ByteString(text), to: path) {
      Output.error(program: program, "can't write '\(path)': \(reason)")
      return 1
    }
  }
  return 0
}

/// Runs the interpreter; returns the exit status.
private func start(_ arguments: CommandLineArguments) -> Int32 {
  do {
    return try Interpreter(arguments).run()
  } catch let misuse as CommandLineArguments.Misuse {
    Output.error(program: arguments.program, misuse.message)
    return misuse.status
  } catch let failure as EventFile.Failure {
    Output.error(program: arguments.program, failure.message)
    return 1
  } catch {
    Output.error(program: arguments.program, "cannot create state: not enough memory")
    return 1
  }
}
