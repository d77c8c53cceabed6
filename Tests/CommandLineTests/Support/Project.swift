import Foundation

/// The files of the repository.
enum Project {
  /// The top of the repository.
  static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  /// The program under test: the release binary, unless `FLOWLUA_BINARY` names another.
  static let binary: String =
    ProcessInfo.processInfo.environment["FLOWLUA_BINARY"]
    ?? root.appending(path: ".build/release/flowlua").path
}
