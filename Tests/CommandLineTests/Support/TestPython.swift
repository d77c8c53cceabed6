import Foundation
import Synchronization

/// The Python of the tests: a virtual environment with packages that the system doesn't have. `scripts/test`
/// makes it where it can; tests that need a missing module are skipped.
enum TestPython {
  static let path = Project.root.appending(path: ".build/python/bin/python3").path

  private static let known = Mutex<[String: Bool]>([:])

  /// Whether it can import a module.
  static func has(_ module: String) -> Bool {
    known.withLock { known in
      if let has = known[module] { return has }
      let run = try? ChildProcess.run(
        path, ["-c", "import \(module)"], environment: [:], in: Project.root.path)
      let has = run?.status == 0
      known[module] = has
      return has
    }
  }
}
