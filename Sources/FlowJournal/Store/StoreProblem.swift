internal import CSQLite
package import FlowEngine
internal import FlowSystem

/// The reason of an error of a store: the `underlying` error of a `FlowError`.
package enum StoreProblem: Error, Sendable {
  /// There is no store, run or file.
  case missing
  /// The user may not read or write it.
  case notAllowed
  /// Another process is executing the run.
  case held
  /// The run was continued by another process, so this one may not write about it any more.
  case fenced
  /// Another process has been writing for too long.
  case busy
  /// The disk, or the user's share of it, is full.
  case full
  /// The store was removed or replaced while it was in use.
  case removed
  /// Something in the store isn't what was written.
  case damaged
  /// A later version of flowlua made the store.
  case newer
  /// The file system can't be used.
  case unsuitable
  /// Something else failed, such as the disk.
  case other

  /// Makes an error with this reason.
  func error(_ message: ByteString, code: Int32? = nil) -> FlowError {
    FlowError(.error, message, code: code.map { Int64($0) }, underlying: self)
  }

  /// Makes the error of a failed call of the system for the store of a folder.
  static func system(_ verb: String, _ folder: ByteString, _ number: Int32) -> FlowError {
    let text = "can't \(verb) the store '\(folder)': \(systemMessage(number))" as ByteString
    let hint = Sandbox.hint(number, isWritten: true)
    if !hint.isEmpty { return of(number).error(text + hint, code: number) }
    let isOfOther = number == EACCES || number == EPERM
    return of(number).error(isOfOther ? text + owner(of: folder) : text, code: number)
  }

  /// The reason for an `errno`.
  static func of(_ number: Int32) -> StoreProblem {
    switch number {
    case EACCES, EPERM, EROFS: .notAllowed
    case ENOSPC, EDQUOT, EFBIG: .full
    case ENOENT: .missing
    default: .other
    }
  }

  /// Whose folder it is, when it isn't this user's.
  private static func owner(of folder: ByteString) -> ByteString {
    var status = stat()
    guard folder.withCString({ stat($0, &status) }) == 0, status.st_uid != geteuid() else {
      return ""
    }
    guard let entry = getpwuid(status.st_uid), let name = entry.pointee.pw_name else {
      return " (it belongs to user \(status.st_uid))"
    }
    return " (it belongs to \(ByteString(String(cString: name))))"
  }
}

extension FlowError {
  /// The reason of an error of a store; nil for another error.
  package var storeProblem: StoreProblem? { underlying as? StoreProblem }
}
