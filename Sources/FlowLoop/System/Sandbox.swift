internal import FlowSystem

/// The rights of a process once it has entered the sandbox: the kernel enforces them by Landlock and a filter of
/// system calls, also for the programs that the process starts and for C libraries.
///
/// Nothing leaves a sandbox. A process may enter further ones, of which each only restricts more.
package struct Sandbox: Sendable {
  /// The access to a path: a file itself, or a folder with all that is in it.
  package enum Access: Sendable {
    case read
    /// To read, change, make, rename and remove.
    case write
    /// To read, and to start as a program where programs are allowed.
    case execute
  }

  /// A path that the process may use. Links are followed when the sandbox is entered.
  package struct Grant: Sendable {
    package let path: ByteString
    package let access: Access
    /// Whether a path that doesn't exist is left out, instead of being an error.
    package let isOptional: Bool

    package init(_ path: ByteString, _ access: Access, isOptional: Bool = false) {
      self.path = path
      self.access = access
      self.isOptional = isOptional
    }
  }

  /// The paths that the process may use.
  package var grants: [Grant]
  /// Whether the process may make sockets of the internet protocols.
  package var allowsNetwork: Bool
  /// Whether the process may start programs, which are in the sandbox as well.
  package var allowsPrograms: Bool
  /// Whether a kernel that can't enforce all of it by Landlock is an error.
  package var isStrict: Bool

  package init(
    grants: [Grant] = [], allowsNetwork: Bool = false, allowsPrograms: Bool = false,
    isStrict: Bool = false
  ) {
    self.grants = grants
    self.allowsNetwork = allowsNetwork
    self.allowsPrograms = allowsPrograms
    self.isStrict = isStrict
  }

  // MARK: Grants of every sandbox

  /// The paths that programs of Lua need wherever they run: libraries, modules, devices without content, the time
  /// zone.
  package static let base: [Grant] =
    [
      "/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/lua", "/usr/local/lib",
      "/usr/local/share/lua",
      "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/dev/urandom", "/dev/random",
      "/usr/share/locale", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/usr/share/ca-certificates",
      "/etc/resolv.conf",
      "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services",
    ].map { Grant($0, .read, isOptional: true) }
    + ["/dev/null", "/dev/zero", "/dev/full"].map {
      Grant($0, .write, isOptional: true)
    }

  /// The paths that programs need in addition, where they are allowed.
  package static let programs: [Grant] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives",
  ].map { Grant($0, .execute, isOptional: true) }

  // MARK: Entering

  /// The rights that are left to the process by all sandboxes that it has entered.
  package struct Present: Sendable {
    package var allowsNetwork = true
    package var allowsPrograms = true
  }

  /// The rights that the sandboxes of this process still allow; nil outside of a sandbox.
  // Unsafe: written while the process has one thread.
  package private(set) nonisolated(unsafe) static var present: Present?

  /// Enters the sandbox, for this process and all that it starts. The process must have one thread.
  ///
  /// - Throws: A `SystemError` that says what is missing. With the code `EAGAIN` the process has other threads.
  package func enter() throws(SystemError) {
    // A NUL would end a path early.
    for grant in grants where grant.path.bytes.contains(0) { throw .nul(in: grant.path) }
    let paths = grants.map { $0.path.withCString { strdup($0) } ?? nil }
    defer { for path in paths { free(path) } }
    var rules: [flowsystem_grant] = []
    for (grant, path) in zip(grants, paths) {
      guard let path else { throw SystemError(code: ENOMEM) }
      rules.append(flowsystem_grant(path: path, access: bits(of: grant)))
    }
    var report = flowsystem_sandbox_report()
    let outcome = rules.withUnsafeBufferPointer { rules in
      var sandbox = flowsystem_sandbox(
        grants: rules.baseAddress, grant_count: rules.count, allows_network: allowsNetwork,
        allows_programs: allowsPrograms, is_strict: isStrict)
      return flowsystem_enter_sandbox(&sandbox, &report)
    }
    guard outcome == FLOWSYSTEM_SANDBOX_ENTERED else { throw error(outcome, report) }
    Self.present = Present(
      allowsNetwork: allowsNetwork && Self.present?.allowsNetwork != false,
      allowsPrograms: allowsPrograms && Self.present?.allowsPrograms != false)
  }

  /// Whether the process has other threads, which a sandbox wouldn't restrict.
  package static var hasOtherThreads: Bool { flowsystem_has_threads() }

  private func bits(of grant: Grant) -> UInt8 {
    var bits = FLOWSYSTEM_GRANT_READ
    switch grant.access {
    case .read: break
    case .write: bits |= FLOWSYSTEM_GRANT_WRITE
    case .execute: if allowsPrograms { bits |= FLOWSYSTEM_GRANT_EXECUTE }
    }
    if grant.isOptional { bits |= FLOWSYSTEM_GRANT_IF_PRESENT }
    return UInt8(bits)
  }

  private func error(
    _ outcome: flowsystem_sandbox_outcome, _ report: flowsystem_sandbox_report
  ) -> SystemError {
    let reason = systemMessage(report.problem)
    switch outcome {
    case FLOWSYSTEM_SANDBOX_THREADS:
      return SystemError(
        "the process has other threads, which the kernel wouldn't restrict", code: EAGAIN)
    case FLOWSYSTEM_SANDBOX_NO_LANDLOCK:
      return SystemError(
        "the kernel has no Landlock, or it is disabled (\(reason)): a sandbox needs Linux 5.19",
        code: report.problem)
    case FLOWSYSTEM_SANDBOX_OLD_LANDLOCK:
      let needed: ByteString =
        isStrict
        ? "a strict sandbox needs version 6 (Linux 6.12)" : "a sandbox needs version 2 (Linux 5.19)"
      return SystemError(
        "the kernel has version \(report.version) of Landlock: \(needed)", code: ENOTSUP)
    case FLOWSYSTEM_SANDBOX_NO_GRANT:
      guard grants.indices.contains(report.grant) else { return SystemError(code: report.problem) }
      let grant = grants[report.grant]
      let verb: ByteString = grant.access == .write ? "writing" : "reading"
      return SystemError("can't allow \(verb) of '\(grant.path)': \(reason)", code: report.problem)
    case FLOWSYSTEM_SANDBOX_NO_SECCOMP:
      return SystemError(
        "the kernel has no filters of system calls (seccomp): \(reason)", code: report.problem)
    case FLOWSYSTEM_SANDBOX_REFUSED where report.problem == E2BIG:
      return SystemError("a process can enter at most 16 sandboxes", code: E2BIG)
    default:
      return SystemError("the kernel refuses the sandbox: \(reason)", code: report.problem)
    }
  }

  // MARK: Messages

  /// The end of a message about a path that the sandbox may refuse: the option that would allow it.
  package static func hint(_ number: Int32, isWritten: Bool) -> ByteString {
    // A file can't be moved from one folder into another where that isn't allowed: EXDEV.
    guard present != nil, number == EACCES || number == EXDEV else { return "" }
    return isWritten ? " (--allow-write)" : " (--allow-read)"
  }

  /// The hint about a request that wasn't allowed.
  package static var hintAboutNetwork: ByteString {
    present?.allowsNetwork == false ? " (--allow-net)" : ""
  }

  // MARK: Descriptors and environment that the process was given

  /// Closes the descriptors that the process has inherited, but its standard streams. Called before the process opens
  /// some itself.
  ///
  /// - Throws: A `SystemError` when the system doesn't allow that.
  package static func closeInheritedDescriptors() throws(SystemError) {
    let problem = flowsystem_close_inherited()
    if problem != 0 {
      throw SystemError(
        "can't close inherited descriptors: \(systemMessage(problem))", code: problem)
    }
  }

  /// Ends the process, whose limits of time are lost, because the system gives no thread after `flow.sandbox`.
  package static func endWithoutThread() -> Never {
    let message: StaticString = "flowlua: the system gives no thread for the limits of time\n"
    flowsystem_end_at_once(EXIT_FAILURE, message.utf8Start, message.utf8CodeUnitCount)
  }

  /// Removes all variables of the environment but these.
  package static func keepEnvironment(_ names: [ByteString]) {
    let texts = names.map { $0.withCString { strdup($0) } ?? nil }
    defer { for text in texts { free(text) } }
    let kept = texts.compactMap { $0.map { UnsafePointer($0) } }
    kept.withUnsafeBufferPointer { list in
      list.withMemoryRebound(to: UnsafePointer<CChar>?.self) { list in
        flowsystem_keep_environment(list.baseAddress, list.count)
      }
    }
  }
}
