import CFlowSystem
import Glibc
import Testing

/// Running out of the memory that the C code of the system layer needs for itself. Each test is a
/// process of its own, because there is one line editor, one stdin and one list of programs for a
/// process.
@Suite("Failing allocations of the system layer")
struct SystemMemoryTests {
  static let libraries = ["libreadline.so.8", "libedit.so.2"]

  @Test(
    "A completion that has no memory completes nothing, and nothing wrong", arguments: libraries)
  func completion(_ library: String) async {
    await #expect(processExitsWith: .success) { [library] in
      let editor = try EditorOnTerminal(library)
      // Without its last word, the words would have a longer common prefix.
      editor.words = (100..<170).map { "word\($0)" } + ["work"]
      let failures = try failEach { _ = try editor.edit(prompt: "> ", keys: "wo\t\r") }
      // The room for the words, twice, each word, and the common prefix.
      #expect(failures > 73, "only \(failures) allocations failed")
      #expect(editor.lines.allSatisfy { $0 == "wo" || $0 == "wor" }, "\(editor.lines)")
      #expect(editor.lines.count { $0 == "wo" } >= 74, "\(editor.lines)")
      #expect(editor.lines.last == "wor", "it is never completed")
    }
  }

  @Test("A prompt that has no memory is replaced by a standard one", arguments: libraries)
  func prompt(_ library: String) async {
    await #expect(processExitsWith: .success) { [library] in
      setenv("LC_ALL", "C", 1)
      let editor = try EditorOnTerminal(library)
      var shown: [String] = []
      let failures = try failEach {
        shown.append(try editor.edit(prompt: "own> ", keys: "text\r"))
        #expect(getenv("LC_ALL").map { String(cString: $0) } == "C", "another locale is left")
      }
      // The prompt, and the variable of the environment.
      #expect(failures >= 2, "only \(failures) allocations failed")
      #expect(editor.lines == shown.map { _ in "text" }, "\(editor.lines)")
      #expect(shown[0].contains("> ") && !shown[0].contains("own> "), "\(shown)")
      #expect(shown.dropFirst().allSatisfy { $0.contains("own> ") }, "\(shown)")
    }
  }

  @Test("A pasted text that has no memory is dropped as a whole, with a bell")
  func paste() async {
    await #expect(processExitsWith: .success) {
      // The library that can't recognize pasted text by itself.
      let editor = try EditorOnTerminal("libedit.so.2")
      let text = String(repeating: "some text ", count: 60)
      let keys = "a\u{1B}[200~" + text + "\u{1B}[201~b\r"
      // The first request is for the prompt. Room for 256, then 512, then 1,024 bytes is missing; the
      // room that was found is kept.
      for n in [2, 3, 3] as [UInt64] {
        flowsystem_fail_allocation(n)
        let shown = try editor.edit(prompt: "> ", keys: keys)
        #expect(flowsystem_fail_allocation(0) == 0, "nothing failed")
        #expect(shown.contains("\u{7}"))
        #expect(editor.lines.last == "ab")
      }
      #expect(!(try editor.edit(prompt: "> ", keys: keys).contains("\u{7}")))
      #expect(editor.lines.last == "a\(text)b")
    }
  }

  @Test("A line break that has no memory is dropped, with a bell")
  func lineBreak() async {
    await #expect(processExitsWith: .success) {
      let editor = try EditorOnTerminal("libedit.so.2")
      flowsystem_fail_allocation(2)
      #expect(try editor.edit(prompt: "> ", keys: "a\u{1B}\rb\r").contains("\u{7}"))
      #expect(flowsystem_fail_allocation(0) == 0, "nothing failed")
      #expect(try !editor.edit(prompt: "> ", keys: "a\u{1B}\rb\r").contains("\u{7}"))
      #expect(editor.lines == ["ab", "a\nb"])
    }
  }

  @Test("A program that has no memory for its group isn't started, and a later one is")
  func programs() async {
    await #expect(processExitsWith: .success) {
      func lowestFree() -> Int32 {
        let descriptor = dup(0)
        close(descriptor)
        return descriptor
      }
      func start(_ spawned: inout flowsystem_spawned) -> Int32 {
        let words = [strdup("true"), nil]
        defer { free(words[0]) }
        return words.withUnsafeBufferPointer {
          var request = flowsystem_spawn_request()
          request.argv = $0.baseAddress
          let pipe = Int32(FLOWSYSTEM_PIPE)
          request.streams = (pipe, pipe, pipe)
          return flowsystem_spawn(&request, &spawned)
        }
      }
      let lowest = lowestFree()
      var spawned = flowsystem_spawned()
      flowsystem_fail_allocation(1)
      #expect(start(&spawned) == ENOMEM, "it has another problem, or none")
      #expect(flowsystem_fail_allocation(0) == 0, "nothing failed")
      #expect(lowestFree() == lowest, "a descriptor is left")
      #expect(start(&spawned) == 0, "no program can be started any more")
      var status: Int32 = -1
      #expect(
        flowsystem_reap(spawned.pid, spawned.group, &status) && status == 0, "it failed: \(status)")
    }
  }

  @Test("A line of stdin that has no memory ends the process with a sentence")
  func lines() async {
    let result = await #expect(
      processExitsWith: .exitCode(1), observing: [\.standardErrorContent]
    ) {
      let line = String(repeating: "x", count: 300) + "\n"
      try replaceInput(by: line + line)
      var count = 0
      let first = flowsystem_read_line(&count)
      #expect(first != nil && count == 301, "the first line has \(count) bytes")
      free(first)
      // The first request is for 128 bytes, the second one for 256.
      flowsystem_fail_allocation(2)
      free(flowsystem_read_line(&count))
      exit(3)
    }
    let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(said.hasSuffix("flowlua: not enough memory for the program itself\n"))
  }
}

/// Makes the n-th request fail for n = 1, 2, … until the operation succeeds without meeting it; returns
/// how many failed.
private func failEach(_ operation: () throws -> Void) throws -> Int {
  for n in 1..<UInt64(1000) {
    flowsystem_fail_allocation(n)
    defer { flowsystem_fail_allocation(0) }
    try operation()
    if flowsystem_fail_allocation(0) > 0 { return Int(n) - 1 }
  }
  throw Unexpected(description: "it never succeeded")
}

private struct Unexpected: Error, CustomStringConvertible {
  let description: String
}
