import Foundation
import Glibc
import Testing

/// The abilities of lines on a terminal beyond those of lua5.4.
@Suite("Lines of a session", .serialized)
struct SessionInputTests: SessionSuite {
  let state: TemporaryFolder

  init() throws { state = try TemporaryFolder() }

  @Test("Variables last until the end, where they are closed", arguments: all)
  func variables(_ library: String) throws {
    let session = try start(library)
    try session.enter("local n <const>, list = 2, {}")
    try session.enter("local function add(x) list[#list + 1] = x * n end")
    try session.enter("add(21) local raised = 'yes' error 'no'")
    #expect(try session.enter("list[1], raised").contains("42\r\n\"yes\"\r\n"))
    #expect(try session.enter("n = 3").contains("attempt to assign to const variable 'n'"))
    try session.enter(
      "local a <close> = setmetatable({}, { __close = function() print('closed', #list) end })")
    try session.enter("add(1)")
    #expect(try session.enter("rawget(_G, 'list')").contains("nil\r\n"))
    try session.type("\u{4}")
    let end = try session.end()
    #expect(end.status == 0 && end.shown.contains("closed\t2"))
  }

  /// The Lua examples of the README, with the block that says what they print.
  private static func examples() throws -> [(code: [String], output: [String])] {
    let lines = try String(
      contentsOf: Project.root.appending(path: "README.md"), encoding: .utf8
    )
    .components(separatedBy: "\n")
    var blocks: [(language: String, lines: [String])] = []
    var open: (language: String, lines: [String])?
    var earlier = ""
    for line in lines {
      defer { earlier = line }
      if let block = open {
        if line == "```" {
          blocks.append(block)
          open = nil
        } else {
          open?.lines.append(line)
        }
      } else if line.hasPrefix("```") {
        // Files belong to the commands after them.
        open = (earlier.hasPrefix("<!-- file:") ? "file" : String(line.dropFirst(3)), [])
      }
    }
    var examples: [(code: [String], output: [String])] = []
    for (index, block) in blocks.enumerated() where block.language == "lua" {
      let output = blocks[(index + 1)...].first { $0.language != "sh" }
      examples.append((block.lines, output?.language == "lua" ? [] : output?.lines ?? []))
    }
    return examples
  }

  @Test("The examples of the README can be typed line by line", arguments: all)
  func readme(_ library: String) throws {
    let examples = try Self.examples()
    #expect(!examples.isEmpty)
    for (code, output) in examples {
      let session = try start(library)
      // A virtual clock would pass all the time at each prompt. A sanitizer reads lines more slowly.
      let speed = ProcessInfo.processInfo.environment["FLOWLUA_SANITIZER"] == nil ? 50 : 5
      try session.enter(
        "do local sleep = flow.sleep flow.sleep = function(s) sleep(s / \(speed)) end end")
      var shown = ""
      for line in code {
        try session.type(line + "\r")
        if session.isEdited { shown += try session.expect("\r\u{1B}[J\u{1B}[?2004h") }
        shown += try session.expect("> ") {
          // Of the first line of a chunk, or of another one.
          $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: ">") || session.isEdited
        }
      }
      try session.type("\u{4}")
      let end = try session.end()
      shown += end.shown
      #expect(end.status == 0)
      #expect(!shown.contains("stack traceback:"))
      for line in output {
        // Without the time of day.
        let text = line.replacingOccurrences(of: "12:00:00 AM ", with: "")
        #expect(shown.contains(text), "of \(code.last ?? "")")
      }
    }
  }

  @Test(
    "os.exit closes the variables when it closes the state, wherever it is called",
    arguments: [
      ("os.exit(3, true)", true), ("os.exit(3)", false),
      (
        "do local c <close> = closable 'c' local d <close> = closable 'd' os.exit(3, true) end",
        true
      ),
      ("coroutine.wrap(function() local e <close> = closable 'e' os.exit(3, true) end)()", true),
      ("flow.spawn(function() flow.sleep(0.01) os.exit(3, true) end)", true),
      ("flow.op('ExitOp', function() flow.sleep(0.01) os.exit(3, true) end):run()", true),
    ])
  func exiting(_ line: String, _ closes: Bool) throws {
    let session = try start()
    try session.enter(
      "function closable(name) return setmetatable({}, { __close = function(_, e) "
        + "print('@' .. name, e) if name == 'b' then error 'bad' end end, "
        + "__gc = function() print('@gc ' .. name) end }) end")
    try session.enter("local a <close> = closable 'a'")
    try session.enter("local b <close> = closable 'b'")
    try session.type(line + "\r")
    let end = try session.end()
    #expect(end.status == 3)
    let said: [String] = end.shown.split(whereSeparator: \.isNewline).compactMap { line in
      line.firstIndex(of: "@").map { String(line[$0...]) }
    }
    // Variables of the line come first, then the session's own, then what is collected.
    var closed: [String] = line.contains("'d'") ? ["@d\tnil", "@c\tnil"] : []
    if closes { closed += ["@b\tnil", "@a\tstdin:1: bad"] }
    #expect(said.filter { !$0.hasPrefix("@gc") } == closed)
    #expect(Array(said.prefix(closed.count)) == closed)
  }

  @Test("Tasks share the variables, and Ctrl-C at the end reaches what closes them")
  func sharedVariables() throws {
    let session = try start()
    try session.enter("local count = 0")
    try session.enter("local t = flow.spawn(function() flow.sleep(0.01) count = count + 1 end)")
    #expect(try session.enter("t:wait() print('<' .. count .. '>')").contains("<1>"))
    try session.enter(
      "local a <close> = setmetatable({}, { __close = function() print 'gun' while true do end end })"
    )
    try session.type("\u{4}")
    try session.expect("gun\r\n")
    session.send(signal: SIGINT)
    let end = try session.end()
    #expect(end.status == 0 && end.shown.contains("interrupted!"))
  }

  @Test(
    "Expressions may take several lines, and a line that begins with : or . continues the last",
    arguments: all)
  func severalLines(_ library: String) throws {
    let session = try start(library)
    #expect(try enter(session, ["{", "1,", "{ 2 },", "}"]).contains("{1, {2}}\r\n"))
    #expect(try enter(session, ["1 +", "2"]).contains("\r\n3\r\n"))
    #expect(try session.enter("'a b'").contains("\"a b\"\r\n"))
    #expect(try session.enter("  :upper()").contains("\"A B\"\r\n"))
    #expect(try enter(session, [":gsub('A',", "'c')"]).contains("\"c B\"\r\n1\r\n"))
    try session.enter("local f = flow.new 'f'")
    try session.enter("  :add(flow.ops.PrintOp 'one')")
    try session.enter("  :add(flow.ops.PrintOp 'two')")
    #expect(
      try session.enter("  :nope()").contains("a flow has no field 'nope' (did you mean 'name'?)"))
    try session.enter("  .name")
    #expect(try session.enter("f").contains("\"f\"\r\n"))
    try session.enter("local c <const> = 'x'")
    try session.enter(":rep(3)")
    #expect(try session.enter("c").contains("\"xxx\"\r\n"))
    try session.enter("t = { a = {} } t.a.b = 'y'")
    #expect(try session.enter(":rep(3)").contains("no result or assignment"))
    try session.enter("t.a.b = 'y'")
    try session.enter(":rep(3)")
    #expect(try session.enter("t.a.b").contains("\"yyy\"\r\n"))
    try session.enter("print 'nothing'")
    #expect(try session.enter(".x").contains("no result or assignment that this line"))
    #expect(try session.enter(".5").contains("\r\n0.5\r\n"))
    #expect(try session.enter("1 2").contains("unexpected symbol near '1'"))
  }

  @Test("Alt-Enter begins a new line of the chunk", arguments: libraries)
  func altEnter(_ library: String) throws {
    let session = try start(library)
    try session.typeUnseen(Array("x = 1\u{1B}\rx = x + 1".utf8))
    try session.type("\r")
    try session.prompt()
    #expect(try session.enter("x").contains("\r\n2\r\n"))
    let text = try String(contentsOfFile: state.history, encoding: .utf8)
    #expect(text.hasPrefix("x = 1\\nx = x + 1\n"))
  }

  @Test("Without a terminal each line has its own variables, as in lua5.4")
  func piped() throws {
    let lines = "local a = 1\\na\\n{\\n'x'\\n:upper()\\nexit\\n.load x\\nlocal b <close> = 1\\n"
    func run(_ program: String) throws -> String {
      let done = try ChildProcess.run(
        "/bin/sh", ["-c", "printf \"\(lines)\" | \(program) -i 2>&1 | tail -n +2"],
        environment: ["F": Project.binary], in: state.path)
      return String(decoding: done.standardOutput, as: UTF8.self)
    }
    let own = try run("$F")
    #expect(own.contains("> a\nnil\n"))
    #expect(
      own.contains("unexpected symbol near '{'") && own.contains("unexpected symbol near ':'"))
    #expect(own.contains("variable 'b' got a non-closable value"))
  }

  @Test("exit and quit leave, unless a script means something else", arguments: ["exit", "quit()"])
  func leaving(_ word: String) throws {
    let session = try start("libreadline.so.8", ["-i", "-e", "function quit() return 'no' end"])
    if word == "exit" {
      try session.type("exit\r")
      #expect(try session.end().status == 0)
    } else {
      #expect(try session.enter(word).contains("\"no\"\r\n"))
    }
  }

  @Test("Ctrl-D names the tasks it waits for")
  func waiting() throws {
    let session = try start()
    try definePause(session)
    try session.enter("t = flow.spawn(pause)")
    try session.enter("r = flow.new('nap'):add(flow.op('NapOp', pause)):start()")
    try session.type("\u{4}")
    try session.expect("waiting for 2 tasks: task at stdin:1, nap (Ctrl-C cancels)\r\n")
    try release()
    #expect(try session.end().status == 0)
    let idle = try start()
    try idle.type("\u{4}")
    #expect(try !idle.end().shown.contains("waiting"))
  }

  @Test("_error is the last failure, with the raised value")
  func lastError() throws {
    let session = try start()
    let shown = try session.enter("error{code = 2}")
    #expect(
      shown.contains("error: {code = 2}\r\nstack traceback:\r\n") && shown.contains("stdin:1:"))
    #expect(try session.enter("_error.code").contains("\r\n2\r\n"))
    try session.enter("error 'text'")
    #expect(try session.enter("_error").contains("\"stdin:1: text\"\r\n"))
    #expect(try session.enter("= =").contains("unexpected symbol"))
    #expect(try session.enter("_error").contains("unexpected symbol"))
    #expect(
      try session.enter("flow.op('Op', function(c) c:fail('no', { code = 7 }) end):run().error")
        .contains("[Op] no {code = 7, kind = \"error\", op = \"Op\", path = \"Op\"}\r\n"))
    let raised = try session.enter(
      "error(setmetatable({}, { __tostring = function() return 'it' end }))")
    #expect(raised.contains("it\r\n") && !raised.contains("traceback"))
  }

  @Test("A settled task shows its result, and a failure that was shown counts as observed")
  func settledTasks() throws {
    let session = try start()
    #expect(try session.enter("flow.resolved { 1, 'x' }").contains("(succeeded): {1, \"x\"}\r\n"))
    #expect(try session.enter("flow.resolved()").contains("(succeeded)\r\n"))
    let failed = try session.enter("flow.failed 'why'")
    #expect(failed.contains("(failed): why"))
    #expect(try !session.enter("1").contains("why"))
    try session.enter("Op = flow.op('Op', function(c) c:set('n', 1) end)")
    #expect(try session.enter("Op:run()").contains("run: Op (succeeded): {n = 1}\r\n"))
    #expect(
      try session.enter("flow.op('NoOp', function() end):run()").contains("NoOp (succeeded)\r\n"))
  }

  @Test("Long lists are printed in columns, with the number of omitted entries")
  func layout() throws {
    let session = try start(columns: 40)
    let rows = try session.enter(
      "(function() local t = {} for i = 1, 150 do t[i] = i end return t end)()")
    #expect(
      rows.contains(
        "{\r\n    1,   2,   3,   4,   5,   6,   7,\r\n    8,   9,  10,  11,  12,  13,  14,\r\n"))
    #expect(rows.contains("\r\n   99, 100,\r\n  … 50 more\r\n}\r\n"))
    #expect(try session.enter("{('x'):rep(250)}").contains("x\"… 50 more bytes"))
    #expect(try session.enter("function greet() end").contains("greet"))
    #expect(
      try session.enter("{greet, function() end, print}").contains(
        "{\r\n  function greet (stdin:1),\r\n  function (stdin:1),\r\n  function print (C),\r\n}"))
    #expect(try session.enter("string.rep").contains("function string.rep (C)\r\n"))
  }

  @Test("Values have colours on request")
  func colors() throws {
    let session = try start(environment: ["NO_COLOR": nil])
    #expect(
      try session.enter("{'s', 1, true}").contains(
        "{\u{1B}[32m\"s\"\u{1B}[0m, \u{1B}[33m1\u{1B}[0m, \u{1B}[35mtrue\u{1B}[0m}\r\n"))
    let dumb = try start(environment: ["NO_COLOR": nil, "TERM": "dumb"])
    #expect(try dumb.enter("{'s', 1}").contains("{\"s\", 1}\r\n"))
  }

  @Test("Lines are indented by open blocks", arguments: libraries)
  func indentation(_ library: String) throws {
    let session = try start(library)
    try enter(session, ["function f(x)", "if x then", "return {", "1,", "}", "end", "end"])
    let text = try String(contentsOfFile: state.history, encoding: .utf8)
    #expect(
      text.hasPrefix(
        "function f(x)\\n  if x then\\n    return {\\n      1,\\n    }\\n  end\\nend\n"))
    #expect(try session.enter("f(1)").contains("{1}\r\n"))
  }

  @Test("Chunks are saved to a file, and run from one, variables included", arguments: all)
  func files(_ library: String) throws {
    let file = state.path + "/saved file.lua"
    let session = try start(library)
    try session.enter("local t = {}")
    try session.enter("t.x = 'a'")
    try session.enter(":rep(2)")
    try session.enter("error 'not saved'")
    try session.enter("'b'")
    try session.enter(":upper()")
    try session.enter("f = flow.new 'f'")
    try session.enter("  .name")
    try session.enter("=#t")
    try session.enter(".save \(file)")
    let saved = [
      "local t = {}", "t.x = 'a'", "t.x = t.x:rep(2)", "_ = 'b'", "_ = _:upper()",
      "f = flow.new 'f'", "  .name", "_ = #t", "",
    ]
    #expect(
      try String(contentsOfFile: file, encoding: .utf8) == saved.joined(separator: "\n"))
    try "#!/usr/bin/env flowlua\nlocal loaded = 5\nfunction bad() error 'in file' end\n".write(
      toFile: file, atomically: true, encoding: .utf8)
    try session.enter(".load '\(file)'")
    #expect(try session.enter("loaded").contains("\r\n5\r\n"))
    #expect(try session.enter("bad()").contains("saved file.lua:3: in file"))
    #expect(try session.enter(".load /nowhere").contains("can't read '/nowhere': No such file"))
    #expect(try session.enter(".save /dev/null/x").contains("can't write '/dev/null/x': Not a dir"))
    #expect(try session.enter(".load").contains(".load needs the name of a file"))
  }

  @Test("The last chunk can be changed in an editor", arguments: libraries)
  func editor(_ library: String) throws {
    let script = state.path + "/editor"
    try "#!/bin/sh\nsed -i 's/before/after/' \"$1\"\n".write(
      toFile: script, atomically: true, encoding: .utf8)
    // Not executed itself: a process that another test starts may have it open for writing ("Text file busy").
    let session = try start(library, environment: ["EDITOR": "sh '\(script)'", "VISUAL": nil])
    try session.enter("local word = 'before'")
    #expect(try session.enter(".edit").contains("local word = 'after'\r\n"))
    #expect(try session.enter("word").contains("\"after\"\r\n"))
    try "#!/bin/sh\nexit 1\n".write(toFile: script, atomically: true, encoding: .utf8)
    #expect(try session.enter(".edit").contains("has failed: nothing is run"))
  }

  @Test("Completion knows variables, options and results of calls", arguments: libraries)
  func completion(_ library: String) throws {
    let session = try start(library)
    try session.enter("local variable = { field = 1 }")
    #expect(try session.enter("vari\t.fie\t").contains("\r\n1\r\n"))
    #expect(try session.enter("flow.new('x'):copy().na\t").contains("\"x\"\r\n"))
    try session.type("flow.op('MyOp', {\r")
    try session.prompt(">> ")
    try session.type("time\t = 5, run = print })\r")
    try session.prompt()
    #expect(try session.enter("help(_)").contains("timeout: 5s"))
  }
}
