internal import FlowEngine
internal import FlowScripting
internal import FlowSystem

/// A process that executes the tests of one file for `flowlua --test`, which says so by a variable of the environment.
struct TestProcess {
  /// The process as the variable describes it; nil in any other process.
  static let present = TestProcess()

  private let fields: [ByteString: ByteString]
  /// The descriptor for what is found out. It is opened before the sandbox.
  private let output: Int32
  /// Only this process writes results, not one that a test forks.
  private let process = getpid()

  static let variable: ByteString = "FLOWLUA_TEST"

  private init?() {
    guard let text = environment("FLOWLUA_TEST") else { return nil }
    // Programs that the tests start may be flowlua.
    flowsystem_remove_variable("FLOWLUA_TEST" as String)
    var fields: [ByteString: ByteString] = [:]
    for line in text.split(at: "\u{1}") {
      let parts = ByteString(line).split(at: "=", maxSplits: 1)
      if parts.count == 2 { fields[ByteString(parts[0])] = ByteString(parts[1]) }
    }
    self.fields = fields
    let path = (fields["results"] ?? "").bytes.map { CChar(bitPattern: $0) } + [0]
    output = open(path, O_WRONLY | O_APPEND | O_CLOEXEC)
    if output < 0 { return nil }
    // Else they would keep the output of the tests open, and what they hold would be in the way of later ones.
    flowsystem_kill_children_at_exit()
  }

  /// Keeps the process from the disk but for the folder of the test, in which it may write, and the present one, which it
  /// may read. A kernel that can't do that is no reason to test nothing.
  func enterSandbox(of file: ByteString, _ options: ConfinementOptions?) {
    do throws(SystemError) {
      let folder = try Sandbox.makeFolder()
      var sandbox = Sandbox(grants: Sandbox.base, allowsNetwork: true, allowsPrograms: true)
      sandbox.grants += Sandbox.programs
      sandbox.grants.append(
        Sandbox.Grant(executablePath ?? "/proc/self/exe", .execute, isOptional: true))
      sandbox.grants.append(Sandbox.Grant(".", .execute))
      sandbox.grants += ["/proc", "/sys"].map { Sandbox.Grant($0, .read, isOptional: true) }
      sandbox.grants += moduleFolders.map { Sandbox.Grant($0, .read, isOptional: true) }
      let place = file.resolvedPath
      let around = ByteString(place.bytes[..<(place.bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0)])
      if !around.isEmpty { sandbox.grants.append(Sandbox.Grant(around, .write)) }
      sandbox.grants.append(Sandbox.Grant(folder, .write))
      sandbox.grants += (options?.readable ?? []).map { Sandbox.Grant($0, .execute) }
      sandbox.grants += (options?.writable ?? []).map { Sandbox.Grant($0, .write) }
      try sandbox.enter()
      Sandbox.useFolder(folder)
    } catch {
      Output.error(program: nil, "warning: tests may use the whole disk: \(error.message)")
    }
  }

  /// The folders that the variables of the environment name for modules.
  private var moduleFolders: [ByteString] {
    let names: [String] = ["LUA_PATH_5_4", "LUA_PATH", "LUA_CPATH_5_4", "LUA_CPATH"]
    return names.compactMap { environment($0) }.flatMap { $0.split(at: ";") }.compactMap { path in
      let folder = path.prefix { $0 != UInt8(ascii: "?") }
      guard let slash = folder.lastIndex(of: UInt8(ascii: "/")), slash > folder.startIndex else {
        return nil
      }
      return ByteString(folder[..<slash])
    }
  }

  /// The settings for the tests of a file.
  func settings(_ file: ByteString) -> TestSettings {
    let here = ("." as ByteString).resolvedPath.bytes + [UInt8(ascii: "/")]
    var settings = TestSettings(
      path: file, seed: fields["seed"].flatMap { Int64($0.description) } ?? 1,
      relative: { path in
        let whole = path.resolvedPath.bytes
        return whole.starts(with: here) ? ByteString(whole[here.count...]) : nil
      },
      record: { [output, process] bytes in
        guard getpid() == process else { return }
        bytes.withUnsafeBytes { bytes in
          guard let base = bytes.baseAddress else { return }
          var done = 0
          while done < bytes.count {
            let count = write(output, base + done, bytes.count - done)
            if count < 0 && errno != EINTR { return }
            done += max(0, count)
          }
        }
      })
    settings.filter = fields["filter"]
    settings.shuffles = fields["shuffles"] != nil
    settings.failsFast = fields["failsFast"] != nil
    settings.updates = fields["updates"] != nil
    settings.covers = fields["covers"] != nil
    return settings
  }
}
