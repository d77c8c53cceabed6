internal import FlowSystem

/// Code that executes programs instead of the system, for tests. Called on the loop's thread.
package protocol ProcessReplacement: AnyObject {
  /// Why a program must not be started; nil when it may.
  func problem(with request: ProcessRequest) -> ByteString?
  /// Executes a program: calls `endReplaced` of it, now or later. One whose input is written in parts
  /// is executed when that has ended.
  ///
  /// - Parameters:
  ///   - child: The program.
  ///   - stdin: Its whole input, if that is bytes.
  func start(_ child: ChildProcess, stdin: ByteString?)
  /// Stops a program, which still has to end. It may not have been started.
  func cancel(_ child: ChildProcess, because reason: any Error)
}

extension ChildProcess {
  /// Begins a program that other code executes. Its time limit counts on the loop's clock.
  func begin(replacedBy replacement: any ProcessReplacement) {
    self.replacement = replacement
    let tee = request.makeTee()
    if request.output == nil, !request.sharesOutput {
      outputs.append(ProcessOutput(-1, .stdout, self, tee))
    }
    if !request.sharesOutput { outputs.append(ProcessOutput(-1, .stderr, self, tee)) }
    if let limit = request.timeout {
      timer = loop.schedule(after: limit) { [unowned self] in
        timer = nil
        cancel(because: ProcessTimeout(limit: limit))
      }
    }
    switch request.input {
    case .pipe:
      input?.onEnd = { [unowned self] in
        if isPending { replacement.start(self, stdin: $0) }
      }
    case .bytes(let bytes): replacement.start(self, stdin: bytes)
    case .nothing, .inherited, .file: replacement.start(self, stdin: nil)
    }
  }

  /// Ends a program that other code has executed, unless it was stopped: with a status and its output,
  /// which goes where it goes with any program.
  package func endReplaced(status: UInt8, stdout: ByteString, stderr: ByteString) {
    guard isPending, replacement != nil else { return }
    if cancellation != nil { return endReplaced(.lost) }
    if let path = request.output {
      do throws(SystemError) {
        try Files.write(stdout, to: path, Cancellation())
      } catch {
        return endReplaced(.failed(error))
      }
    }
    if request.sharesOutput {
      if request.output == nil { Self.print(stdout, toError: false) }
      Self.print(stderr, toError: true)
    }
    for output in outputs { output.add(output.stream == .stdout ? stdout : stderr) }
    replacedStatus = Int32(status)
    hasExited = true
    timer?.cancel()
    timer = nil
    advance()
  }

  /// Writes output of a program whose outputs are those of this process.
  private static func print(_ text: ByteString, toError: Bool) {
    guard let last = text.bytes.last else { return }
    text.bytes.withUnsafeBytes { flowsystem_write($0.baseAddress, $0.count, toError) }
    flowsystem_note_output(toError, last == UInt8(ascii: "\n"))
  }

  /// Ends a program that other code has executed, or would have: with `end`, unless it was stopped.
  package func endReplaced(_ end: ProcessEnd) {
    guard isPending, replacement != nil else { return }
    timer?.cancel()
    timer = nil
    finish(cancellation.map { .stopped($0, nil) } ?? end)
  }
}
