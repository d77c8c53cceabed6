import Glibc
import LuaVM
import Testing

@Suite("The output of a state")
struct OutputTests {
  /// The pieces that a handler has got.
  private final class Pieces: Sendable {
    private let pieces = Locked<[String]>([])

    var output: LuaOutput {
      .handler { [self] bytes in pieces.withLock { $0.append(bytes.description) } }
    }

    var all: [String] { pieces.withLock { $0 } }
  }

  private func host(_ output: LuaOutput, _ libraries: LuaLibraries = .all) throws -> TestHost {
    try TestHost(LuaConfiguration(libraries: libraries, output: output))
  }

  @Test("A handler gets each line of print as one piece")
  func aHandlerGetsTheLinesOfPrint() throws {
    let pieces = Pieces()
    let host = try host(pieces.output, .safe)
    try host.run(
      """
      print("a", 1, nil, 2.5, true)
      print()
      print(setmetatable({}, { __tostring = function() print "inner" return "outer" end }))
      print("\\0x", ("y"):rep(5000))
      coroutine.wrap(print)("in a coroutine")
      """)
    #expect(
      pieces.all == [
        "a\t1\tnil\t2.5\ttrue\n", "\n", "inner\n", "outer\n",
        "\0x\t" + String(repeating: "y", count: 5000) + "\n", "in a coroutine\n",
      ])
  }

  @Test("A handler gets what is written to standard output and standard error in any way")
  func aHandlerGetsWhatIsWrittenInAnyWay() throws {
    let pieces = Pieces()
    let host = try host(pieces.output)
    let text = try host.text(
      """
      local write = io.write
      assert(write("a", 1, 2.5, 1.0, 1 << 62) == io.stdout)
      assert(io.stdout:write("b", "c") == io.stdout)
      assert(io.stderr:write("d") == io.stderr)
      io.output():write("e")
      io.output(io.stderr)
      assert(io.write("f") == io.stderr)
      io.write("")
      return select("#", io.stdout:write())
      """)
    #expect(text == "1")
    #expect(pieces.all == ["a12.514611686018427387904", "bc", "d", "e", "f"])
  }

  @Test("A file that io.output has set gets the output, and the handler doesn't")
  func anOutputFileGetsTheOutput() throws {
    let pieces = Pieces()
    let host = try host(pieces.output)
    let text = try host.text(
      """
      local name = os.tmpname()
      io.output(name)
      io.write("x", 1)
      io.output():write("y")
      io.close()
      io.output(io.stdout)
      io.write("back")
      local file = io.open(name)
      local content = file:read "a"
      file:close()
      os.remove(name)
      return content
      """)
    #expect(text == "x1y")
    #expect(pieces.all == ["back"])
  }

  @Test(
    "Errors are those of the standard functions",
    arguments: [
      "io.write({})", "io.stdout:write('', nil)", "io.stdout.write()", "io.stdout.write(1, 'x')",
      "io.stderr:write(print)", "io.output(os.tmpname()):close() io.write('x')",
      "print(setmetatable({}, { __tostring = function() return 1 end }))",
      "print(setmetatable({}, { __tostring = function() error('no') end }))", "warn()", "warn({})",
      "warn('x', nil)",
    ])
  func errorsAreThoseOfTheStandardFunctions(_ call: String) throws {
    let source = "return select(2, pcall(function() \(call) end))"
    let standard = try host(.standardOutput).text(source)
    #expect(try host(.discarded).text(source) == standard)
    #expect(standard != "nil")
  }

  @Test("What stands before a wrong argument is written, as by the standard function")
  func argumentsBeforeAWrongOneAreWritten() throws {
    let pieces = Pieces()
    try host(pieces.output).run("pcall(io.write, 'a', 'b', {}, 'c')")
    #expect(pieces.all == ["ab"])
  }

  @Test("Warnings go to the handler once they are on")
  func warningsGoToTheHandler() throws {
    let pieces = Pieces()
    let host = try host(pieces.output, .safe)
    try host.run(
      """
      warn("hidden")
      warn("@on")
      warn("one", " ", "two")
      warn("@", "on")
      warn("@unknown")
      warn(("x"):rep(3000))
      warn("@off")
      warn("hidden")
      """)
    #expect(
      pieces.all == [
        "Lua warning: one two\n", "Lua warning: @on\n", "Lua warning: ",
        String(repeating: "x", count: 3000), "\n",
      ])
  }

  @Test("Errors in finalizers are warnings, also at the end of the state")
  func errorsInFinalizersAreWarnings() throws {
    let pieces = Pieces()
    let vm = try LuaVM(configuration: LuaConfiguration(output: pieces.output))
    _ = try vm.call(
      vm.load(
        "warn '@on' last = setmetatable({}, { __gc = function() print 'end' error 'oops' end })",
        name: "script"))
    vm.close()
    #expect(pieces.all == ["end\n", "Lua warning: error in __gc (script:1: oops)\n"])
  }

  @Test("Without memory for a line print raises, and the state can be used")
  func printWithoutMemoryRaises() throws {
    let pieces = Pieces()
    let vm = try LuaVM(
      configuration: LuaConfiguration(memoryLimit: 8 << 20, output: pieces.output))
    let results = try vm.call(
      vm.load(
        """
        local text = ("x"):rep(1 << 21)
        local ok, message = pcall(print, text, text, text)
        print "small"
        return message
        """, name: "script"))
    #expect(results == ["not enough memory"])
    #expect(pieces.all == ["small\n"])
    vm.close()
  }

  @Test("A state of a configuration writes nothing to the output of the process")
  func nothingReachesTheOutputOfTheProcess() async throws {
    let result = await #expect(
      processExitsWith: .success,
      observing: [\.standardOutputContent, \.standardErrorContent]
    ) {
      for output in [LuaOutput.discarded, .handler { _ in }] {
        let vm = try LuaVM(configuration: LuaConfiguration(output: output))
        _ = try vm.call(
          vm.load(
            """
            print "hidden-output"
            io.write "hidden-output"
            io.stdout:write "hidden-output"
            io.stderr:write "hidden-output"
            warn "@on"
            warn "hidden-output"
            """, name: "script"))
        vm.close()
      }
      let vm = try LuaVM()
      _ = try vm.call(vm.load("print 'shown-output'", name: "script"))
      vm.close()
    }
    let text = String(
      decoding: (result?.standardOutputContent ?? []) + (result?.standardErrorContent ?? []),
      as: UTF8.self)
    #expect(!text.contains("hidden-output"))
    #expect(text.contains("shown-output"))
  }
}
