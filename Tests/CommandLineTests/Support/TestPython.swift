import Foundation

/// The Python of the tests: a virtual environment with packages that the system doesn't have. `scripts/test`
/// makes it where it can; tests that need a missing module are skipped.
enum TestPython {
  static let path = Project.root.appending(path: ".build/python/bin/python3").path

  /// Whether it can import a module.
  static func has(_ module: String) -> Bool {
    let run = try? ChildProcess.run(
      path, ["-c", "import \(module)"], environment: [:], in: Project.root.path)
    return run?.status == 0
  }
}
