internal import CFlowSystem
internal import Glibc

/// Errors about files.
extension SystemError {
  /// `can't read 'notes.txt': No such file or directory`.
  package init(_ verb: String, _ path: ByteString, _ number: Int32) {
    let hint = Sandbox.hint(number, isWritten: !["read", "stat", "list", "watch"].contains(verb))
    self.init("can't \(verb) '\(path.escapingNUL)': \(systemMessage(number))\(hint)", code: number)
  }

  /// `can't copy 'a' to 'b': No space left on device`.
  init(_ verb: String, _ path: ByteString, to target: ByteString, _ number: Int32) {
    let hint = Sandbox.hint(number, isWritten: true)
    self.init(
      "can't \(verb) '\(path)' to '\(target)': \(systemMessage(number))\(hint)", code: number)
  }

  /// The error of a path that the system would take for a shorter one.
  static func nul(in path: ByteString) -> SystemError {
    SystemError("the path '\(path.escapingNUL)' has a NUL byte in it", code: EINVAL)
  }

  /// The error of work that was cancelled.
  static var cancelled: SystemError { SystemError(code: ECANCELED) }

  /// The name of the system's error, such as `ENOENT`; nil without a number or for an unknown one.
  package var name: ByteString? {
    guard let code, let name = flowsystem_error_name(code) else { return nil }
    return ByteString(String(cString: name))
  }
}

extension Cancellation {
  /// Throws if the work was cancelled.
  func check() throws(SystemError) {
    if isRequested { throw .cancelled }
  }
}
