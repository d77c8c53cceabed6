import Foundation
import Testing

/// The scripts of `Tests/scripts`, each run through the real binary.
@Suite("Test scripts")
struct ScriptTests {
  private static let scripts = Project.root.appending(path: "Tests/scripts")

  /// The paths below `Tests/scripts`, sorted; `lib` holds what the scripts share.
  static let all: [String] = {
    let found = FileManager.default.enumerator(atPath: scripts.path)?.compactMap { $0 as? String }
    return (found ?? []).filter { $0.hasSuffix(".lua") && !$0.hasPrefix("lib/") }.sorted()
  }()

  /// Those that the list of a sanitizer leaves out; scripts/sanitize sets the variable.
  static let leftOut = Set(
    (ProcessInfo.processInfo.environment["FLOWLUA_SCRIPTS_LEFT_OUT"] ?? "")
      .split(separator: " ").map(String.init))

  @Test("The scripts and the binary exist")
  func nothingIsMissing() throws {
    let listed = try ChildProcess.run(
      "/usr/bin/git", ["-c", "safe.directory=*", "ls-files", "Tests/scripts/*.lua"],
      environment: [:], in: Project.root.path)
    let tracked = String(decoding: listed.standardOutput, as: UTF8.self).split(separator: "\n")
      .map { String($0.dropFirst("Tests/scripts/".count)) }.filter { !$0.hasPrefix("lib/") }
    #expect(listed.status == 0 && !tracked.isEmpty)
    #expect(Set(tracked).isSubset(of: Self.all))
    #expect(Self.leftOut.isSubset(of: Self.all))
    #expect(
      FileManager.default.isExecutableFile(atPath: Project.binary),
      "no flowlua at \(Project.binary): run scripts/test, which builds it")
  }

  @Test(
    "A script of Tests/scripts ends as its first lines say",
    arguments: all.filter { !leftOut.contains($0) })
  func script(_ name: String) async throws {
    let path = "Tests/scripts/\(name)"
    // A few scripts have bytes that aren't UTF-8.
    let source = try Data(contentsOf: Project.root.appending(path: path))
    let expected = try ScriptExpectation(source: String(decoding: source, as: UTF8.self))
    let missing = try await Self.onAThreadOfItsOwn {
      expected.pythonModules.filter { !TestPython.has($0) }
    }
    for module in missing {
      // Printed, too: the runner shows no reason for a case. `scripts/check` repeats these lines.
      let reason = "\(name) needs the Python module \(module), which isn't installed"
      print("skipped: \(reason)")
      try Test.cancel("\(reason)")
    }
    let result = try await Self.run(path, expected)
    let (output, errors) = (result.output, result.errors)

    // A part that can't be tested here; `scripts/check` repeats these lines.
    for line in output.split(separator: "\n") where line.hasPrefix("skipped: ") { print(line) }
    #expect(
      result.status == expected.status,
      "it wrote to stderr: \(errors)\nand last to stdout: \(output.suffix(4000))")
    if let wanted = expected.standardOutput {
      #expect(output == wanted)
    }
    if expected.standardErrorParts.isEmpty {
      #expect(errors == "")
    }
    for part in expected.standardErrorParts {
      #expect(errors.contains(part))
    }
  }

  private static func run(
    _ path: String, _ expected: ScriptExpectation
  ) async throws -> ScriptResult {
    let (run, time) = try await onAThreadOfItsOwn {
      let began = ContinuousClock.now
      let run = try ChildProcess.run(
        Project.binary, expected.options + [path] + expected.arguments,
        environment: [
          "LUA_PATH": "Tests/scripts/lib/?.lua;;", "LUA_INIT": "", "LUA_INIT_5_4": "", "TZ": "UTC",
          "LC_ALL": "C.UTF-8", "FLOWLUA_TEST_PYTHON": TestPython.path,
        ],
        in: Project.root.path)
      return (run, ContinuousClock.now - began)
    }
    // For the list of the slowest, which scripts/test prints.
    if time > .seconds(1) { print("took: \(time / .seconds(1)) s  \(path)") }
    return ScriptResult(
      status: run.status, output: masked(String(decoding: run.standardOutput, as: UTF8.self)),
      errors: String(decoding: run.standardError, as: UTF8.self))
  }

  private static let threads = {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 3 * ProcessInfo.processInfo.activeProcessorCount
    return queue
  }()

  /// Does what blocks, while the threads of Swift's tasks stay free for other tests. Hundreds of scripts that wait
  /// there would keep the tasks from them which stop busy code, so that it took the time of all scripts.
  private static func onAThreadOfItsOwn<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      threads.addOperation { continuation.resume(with: .init(catching: body)) }
    }
  }

  /// Replaces the times of a summary, `4:17:18 PM`, which differ from run to run, by `<time>`.
  private static func masked(_ text: String) -> String {
    text.replacing(/[0-9]{1,2}:[0-9]{2}:[0-9]{2} [AP]M/, with: "<time>")
  }
}

@Suite("The header of a test script")
struct ScriptExpectationTests {
  @Test("A script without directives runs on the virtual clock and succeeds in silence")
  func noDirectives() throws {
    let expected = try ScriptExpectation(source: "-- Only a comment.\nprint(1)\n")
    #expect(expected.status == 0)
    #expect(expected.arguments.isEmpty)
    #expect(expected.options == ["--virtual-clock"])
    #expect(expected.standardOutput == nil)
    #expect(expected.standardErrorParts.isEmpty)
  }

  @Test("Each directive changes what is expected")
  func allDirectives() throws {
    let expected = try ScriptExpectation(
      source: """
        #!/usr/bin/env flowlua
        -- What is tested.
        -- args: one two
        -- clock: real: It measures time.
        -- python: pyte
        -- expect-status: 3
        -- expect-stderr: first part
        -- expect-stderr: second part
        -- expect-stdout:
        --| a line
        --|
        --|   indented

        -- expect-status: 9
        """)
    #expect(expected.status == 3)
    #expect(expected.arguments == ["one", "two"])
    #expect(expected.reasonForRealClock == "It measures time.")
    #expect(expected.pythonModules == ["pyte"])
    #expect(expected.options.isEmpty)
    #expect(expected.standardOutput == "a line\n\n  indented\n")
    #expect(expected.standardErrorParts == ["first part", "second part"])
  }

  @Test(
    "An unknown directive is an error",
    arguments: [
      "-- expect-stdin: x", "-- expect-status: one", "-- clock: virtual", "-- clock: real",
      "-- clock: real:", "-- python:", "--| a line of no block",
    ])
  func unknownDirective(_ line: String) {
    #expect(throws: ScriptExpectation.UnknownDirective(line: line)) {
      try ScriptExpectation(source: line + "\n")
    }
  }
}
