internal import FlowEngine
internal import FlowScripting
internal import FlowSystem

/// The limits and permissions of the process, as the command line asks for them. They begin before the Lua state is
/// made and before any thread exists: the kernel restricts only the calling thread and what it starts.
struct Confinement {
  private let arguments: CommandLineArguments
  /// Nil without such an option.
  private let options: ConfinementOptions?

  /// Variables of the environment that a script in a sandbox has.
  private static let variables: [ByteString] = ["PATH", "HOME", "LANG", "TZ", "TERM", "NO_COLOR"]

  /// Made before the process opens any file.
  init(_ arguments: CommandLineArguments) throws(CommandLineArguments.Misuse) {
    self.arguments = arguments
    options = arguments.options.confinement
    guard options?.usesSandbox == true else { return }
    do throws(SystemError) { try Sandbox.closeInheritedDescriptors() } catch {
      throw LongOptions.misuse("--sandbox: \(error.message)")
    }
  }

  /// Begins everything but the limits of memory and time, which are those of the script.
  ///
  /// - Parameter keeping: The store of kept runs, which the sandbox allows.
  /// - Throws: The restriction that the system doesn't allow, or can't do, as a misuse of the option.
  func begin(_ keeping: Keeping?) throws(CommandLineArguments.Misuse) {
    if let word = arguments.lateSandbox, options?.usesSandbox != true {
      Output.error(
        program: arguments.program,
        "warning: '\(word)' is an argument of the script: options of flowlua come before it")
    }
    guard let options else { return }
    try limitResources(options)
    if options.usesSandbox { try enterSandbox(options, keeping) }
  }

  private func limitResources(
    _ options: ConfinementOptions
  ) throws(CommandLineArguments.Misuse) {
    if let count = options.openFiles {
      let problem = flowsystem_limit_files(UInt64(count))
      if problem == EPERM {
        throw LongOptions.misuse(
          "option '--open-files' needs at most \(flowsystem_most_files()), the limit of the system, not '\(count)'"
        )
      }
      if problem != 0 {
        throw LongOptions.misuse("option '--open-files' \(count): \(systemMessage(problem))")
      }
    }
    guard let seconds = options.processorTime else { return }
    let grace = Duration(clampingSeconds: arguments.options.grace ?? 30).inSeconds
    let problem = flowsystem_limit_processor_time(
      UInt64(seconds), UInt64(exactly: (grace + 5).rounded(.up)) ?? .max)
    if problem != 0 {
      throw LongOptions.misuse("option '--cpu-limit' \(seconds): \(systemMessage(problem))")
    }
  }

  // MARK: The sandbox

  private func enterSandbox(
    _ options: ConfinementOptions, _ keeping: Keeping?
  ) throws(CommandLineArguments.Misuse) {
    let store: ByteString?
    do throws(FlowError) { store = try keeping?.makeFolder() } catch {
      throw LongOptions.misuse("--sandbox: \(error.message)")
    }
    do throws(SystemError) {
      try checkFolder()
      try checkOutputs(options)
      // In the folder of the variable, before it is removed.
      let folder = try Sandbox.makeFolder()
      Sandbox.keepEnvironment(Self.variables + options.variables)
      Sandbox.useFolder(folder)
      var sandbox = base(store: store)
      sandbox.isStrict = options.isStrict
      sandbox.allowsNetwork = options.allowsNetwork
      sandbox.allowsPrograms = options.allowsPrograms
      if options.allowsPrograms { sandbox.grants += Sandbox.programs }
      sandbox.grants += options.readable.map { Sandbox.Grant($0, .execute) }
      sandbox.grants += options.writable.map { Sandbox.Grant($0, .write) }
      try sandbox.enter()
    } catch {
      throw LongOptions.misuse("--sandbox: \(error.message)")
    }
  }

  /// The grants of a sandbox of this script in any case.
  private func base(store: ByteString?) -> Sandbox {
    var sandbox = Sandbox(grants: Sandbox.base + scriptGrants)
    // A script that may start programs may start flowlua, which then is in this sandbox.
    sandbox.grants.append(
      Sandbox.Grant(executablePath ?? "/proc/self/exe", .execute, isOptional: true))
    sandbox.grants += [Sandbox.folder, store].compactMap { $0.map { Sandbox.Grant($0, .write) } }
    if arguments.script == nil || arguments.isInteractive {
      sandbox.grants += Self.sessionFiles.map { Sandbox.Grant($0, .read, isOptional: true) }
    }
    return sandbox
  }

  /// The grants of `flow.sandbox` in addition to what the script names.
  func narrowing(_ keeping: Keeping?) -> Sandbox {
    // A store that can't be made fails when it is opened.
    base(store: (try? keeping?.makeFolder()) ?? nil)
  }

  /// The folder of the script, and the file itself, which may be a link to another folder. A script that isn't a
  /// file, such as /dev/stdin, has no folder of its own.
  private var scriptGrants: [Sandbox.Grant] {
    guard case .file(let path) = arguments.script else { return [] }
    var status = stat()
    let isFile =
      path.withCString { stat($0, &status) } == .some(0) && status.st_mode & S_IFMT == S_IFREG
    let file = Sandbox.Grant(path, .read, isOptional: true)
    return isFile ? [file, Sandbox.Grant(path.folder, .execute, isOptional: true)] : [file]
  }

  /// Refuses a script in the root folder, with which it could read everything.
  private func checkFolder() throws(SystemError) {
    guard case .file(let path) = arguments.script, path.folder.resolvedPath == "/" else {
      return
    }
    throw SystemError(
      "the script may read its folder, which is '/': put it into a folder of its own", code: EACCES)
  }

  /// The descriptions of terminals and the settings of the line editor.
  private static let sessionFiles: [ByteString] = [
    "/usr/share/terminfo", "/lib/terminfo", "/etc/terminfo", "/etc/inputrc",
  ]

  // MARK: Files of the host

  /// Refuses files that are written at the end of the script, if the sandbox wouldn't allow that.
  private func checkOutputs(_ options: ConfinementOptions) throws(SystemError) {
    for (option, path) in arguments.options.writtenAtEnd
    where !Self.isWritable(path, options.writable) {
      throw SystemError(
        "option '\(option)' writes '\(path)', whose folder isn't allowed: add --allow-write=FOLDER",
        code: EACCES)
    }
    if case .svg? = arguments.options.graph?.form, !options.allowsPrograms {
      throw SystemError(
        "option '--graph' with .svg starts a program: add --allow-run", code: EACCES)
    }
    if case .collector? = arguments.options.otlp, !options.allowsNetwork {
      throw SystemError("option '--otlp' sends to a collector: add --allow-net", code: EACCES)
    }
  }

  /// Whether the folder of a file is in one of those that may be written.
  private static func isWritable(_ path: ByteString, _ writable: [ByteString]) -> Bool {
    let folder = path.folder.resolvedPath.bytes
    return writable.contains { allowed in
      let allowed = allowed.resolvedPath.bytes
      return folder == allowed || allowed == [UInt8(ascii: "/")]
        || folder.starts(with: allowed + [UInt8(ascii: "/")])
    }
  }
}

extension ByteString {
  /// The folder of a path, `.` for a bare name.
  fileprivate var folder: ByteString {
    guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return ByteString(bytes[...slash])
  }
}
