import Foundation
import Glibc
import Testing

/// Lines typed on a terminal.
@Suite("The session on a terminal", .serialized)
struct SessionTests: SessionSuite {
  let state: TemporaryFolder

  init() throws { state = try TemporaryFolder() }

  @Test("Results are shown as Lua source", arguments: all)
  func results(_ library: String) throws {
    let session = try start(library)
    #expect(try session.enter("1 + 1, 'a\\n\"\\xff'").contains("2\r\n\"a\\n\\\"\\xFF\"\r\n"))
    #expect(
      try session.enter("{b = 1, a = {2, 3}, [1.5] = true}")
        .contains("{[1.5] = true, a = {2, 3}, b = 1}\r\n"))
    #expect(try session.enter("_.a[2]").contains("\r\n3\r\n"))
    #expect(try session.enter("=_ + 1").contains("\r\n4\r\n"))
    try session.enter("t = {} t.t = t")
    #expect(try session.enter("t").contains("{t = {…}}\r\n"))
    #expect(try session.enter("setmetatable({}, {__tostring = error})").contains("failed:"))
    #expect(try session.enter("setmetatable({}, {__name = 'N'})").contains("N {}\r\n"))
    #expect(try session.enter("('x'):rep(20000)").contains("xxx\"… 10000 more bytes\r\n"))
    // A text of several lines is read, unless the terminal would do something else with a part of it.
    #expect(try session.enter("'first\\n\\tsecond\\n'").contains("\r\nfirst\r\n\tsecond\r\n"))
    #expect(try session.enter("'one\\n'").contains("\"one\\n\"\r\n"))
    #expect(try session.enter("'a\\n\\27[2J'").contains("\"a\\n\\027[2J\"\r\n"))
    #expect(try session.enter("{'a\\nb'}").contains("{\"a\\nb\"}\r\n"))
    try session.type("\u{4}")
    #expect(try session.end().status == 0)
  }

  @Test("No value or error changes the terminal", arguments: all)
  func harmless(_ library: String) throws {
    let session = try start(library, ["-i", "-e", "title = '\\27]0;a\\7'"])
    let text = "setmetatable({}, {__tostring = function() return title end})"
    for (line, shown) in [
      ("title", "\"\\027]0;a\\007\"\r\n"), (text, "\\x1B]0;a\\x07\r\n"),
      ("{\(text)}", "{\\x1B]0;a\\x07}\r\n"), ("error(\(text))", "\\x1B]0;a\\x07"),
      ("setmetatable({}, {__name = title})", "\\x1B]0;a\\x07 {}\r\n"),
      ("load('return function() end', title)()", "\\x1B]0;a\\x07"),
      ("'\\u{202E}'", "\"\\u{202E}\"\r\n"),
    ] {
      let seen = try session.enter(line)
      #expect(seen.contains(shown) && !seen.contains("\u{1B}]0"), "\(line): \(seen)")
    }
  }

  @Test("The module is there, and only here", arguments: libraries)
  func module(_ library: String) throws {
    let session = try start(library, ["-i", "-e", "script = flow"])
    #expect(try session.enter("script, flow == require 'flow'").contains("nil\r\ntrue\r\n"))
  }

  @Test(
    "Chunks may span lines and are recalled whole, in later sessions too",
    arguments: libraries)
  func history(_ library: String) throws {
    let first = try start(library)
    try first.type("for i = 1, 2 do\r")
    try first.prompt(">> ")
    try first.type("print('no. ' .. i, '\\\\')\r")
    try first.prompt(">> ")
    try first.type("end\r")
    try first.expect("no. 2\t\\\r\n")
    try first.prompt()
    try first.type("\u{4}")
    #expect(try first.end().status == 0)
    var information = stat()
    #expect(stat(state.history, &information) == 0 && information.st_mode & 0o777 == 0o600)
    let text = try String(contentsOfFile: state.history, encoding: .utf8)
    // Lines are indented as they are typed, and the last one stands below the first.
    #expect(text == "for i = 1, 2 do\\n  print('no. ' .. i, '\\\\\\\\')\\nend\n")

    let second = try start(library)
    try second.type("\u{1B}[A")
    try second.expect("end")
    try second.type("\r")
    try second.expect("no. 2\t\\\r\n")
    try second.prompt()
    try second.enter("'needle'")
    try second.enter("0")
    guard library.contains("readline") else { return }
    try second.type("\u{12}needl\r")
    try second.expect("\"needle\"\r\n")
  }

  @Test("Two simultaneous sessions keep each other's history")
  func twoSessions() throws {
    let (first, second) = (try start(), try start())
    try first.enter("'one'")
    try second.enter("'two'")
    try first.enter("'three'")
    let text = try String(contentsOfFile: state.history, encoding: .utf8)
    #expect(text == "'one'\n'two'\n'three'\n")
  }

  @Test("A long history is cut")
  func longHistory() throws {
    try FileManager.default.createDirectory(
      atPath: state.path + "/flowlua", withIntermediateDirectories: true)
    let lines = (1...5000).map { "'line \($0)'\n" }.joined()
    try lines.write(toFile: state.history, atomically: true, encoding: .utf8)
    let session = try start()
    try session.type("\u{1B}[A")
    try session.expect("line 5000")
    let text = try String(contentsOfFile: state.history, encoding: .utf8)
    #expect(text.hasPrefix("'line 3001'\n") && text.hasSuffix("'line 5000'\n"))
  }

  @Test("A damaged or unwritable history is reported once", arguments: libraries)
  func badHistory(_ library: String) throws {
    try FileManager.default.createDirectory(
      atPath: state.path + "/flowlua", withIntermediateDirectories: true)
    try Data([1, 0, 255, 10, 0x39, 10]).write(to: URL(filePath: state.history))
    let damaged = try TerminalSession(
      state: state, environment: ["FLOWLUA_READLINE": library])
    #expect(try damaged.prompt().contains("can't be read"))
    try damaged.type("\u{1B}[A\r")
    try damaged.expect("9\r\n")
    try damaged.prompt()
    try damaged.type("\u{4}")
    _ = try damaged.end()

    try FileManager.default.removeItem(atPath: state.history)
    try FileManager.default.createDirectory(
      atPath: state.history, withIntermediateDirectories: true)
    let folder = try TerminalSession(
      state: state, environment: ["FLOWLUA_READLINE": library])
    #expect(try folder.prompt().contains("can't be kept"))
    #expect(try !folder.enter("6 * 7").contains("kept"))
    let nowhere = try start(library, environment: ["XDG_STATE_HOME": "/dev/null/x"])
    #expect(try nowhere.enter("6 * 7").contains("42\r\n"))
  }

  @Test(
    "Names, fields, methods, modules and files are completed; no code is run",
    arguments: libraries)
  func completion(_ library: String) throws {
    let session = try start(library)
    func complete(_ typed: String, _ wanted: String) throws {
      // The library may redraw any part of the line: what counts is what is entered.
      // Only then it becomes a string, which would have no names.
      try session.type("\(typed)\t\u{1}line = [==[\u{5}]==]\r")
      try session.type("print('<' .. line .. '>')\r")
      try session.expect("<\(wanted)>\r\n")
      try session.prompt()
    }
    try complete("collectg", "collectgarbage")
    try complete("string.rev", "string.reverse")
    try complete("whil", "while")
    try session.enter("calls = 0")
    try session.enter("object = setmetatable({}, {__index = {greet = print, x1 = 1}})")
    try session.enter("trap = setmetatable({}, {__index = function() calls = calls + 1 end})")
    try complete("object:gr", "object:greet")
    try complete("object.x", "object.x1")
    try complete("trap.some.thi", "trap.some.thi")
    #expect(try session.enter("calls").contains("\r\n0\r\n"))
    try complete("io.stdout:setv", "io.stdout:setvbuf")
    try complete("('x'):rev", "('x'):reverse")
    try session.enter("f = flow.new 'f'")
    try complete("f:add_gr", "f:add_grouped")
    try complete("f:start", "f:start")
    try session.enter("r = f:start()")
    try complete("r.finished", "r.finished_early")
    try complete("r:summ", "r:summary")
    try complete("flow.ops.WriteF", "flow.ops.WriteFileOp")
    try complete("dofile \"README.", "dofile \"README.md")
    try complete("require 'Tests.scripts.lib.hosti", "require 'Tests.scripts.lib.hostile")
  }

  @Test("Characters are inserted and deleted whole", arguments: libraries)
  func characters(_ library: String) throws {
    let session = try start(library)
    try session.type("'aä€\u{7F}\u{7F}b'\r")
    try session.expect("\"ab\"\r\n")
    try session.prompt()
    #expect(try session.enter("#'äö'").contains("\r\n4\r\n"))
    try session.type([0x27, 0xFF, 0xC3, 0x27, 0x0D])
    try session.prompt()
    #expect(try session.enter("'still here'").contains("\"still here\"\r\n"))
  }

  @Test("A pasted block is one chunk")
  func paste() throws {
    let session = try start()
    try session.type("\u{1B}[200~local a = 20\nlocal b = 22\rprint(a + b)\u{1B}[201~")
    try session.expect("print(a + b)")
    try session.type("\r")
    try session.expect("42\r\n")
    try session.prompt()
    #expect(
      try String(contentsOfFile: state.history, encoding: .utf8)
        == "local a = 20\\nlocal b = 22\\nprint(a + b)\n")
  }

  /// The key; as a signal where the terminal would discard output that follows the key.
  private func pressControlC(_ session: TerminalSession, _ library: String) throws {
    if library.contains("readline") {
      try session.type("\u{3}")
    } else {
      session.send(signal: SIGINT)
    }
  }

  /// Runs a chunk that prints `gun`, and presses Ctrl-C then.
  private func interrupt(
    _ session: TerminalSession, _ library: String, _ chunk: String
  ) throws {
    try session.type(chunk + "\r")
    try session.expect("gun\r\n")
    try pressControlC(session, library)
  }

  @Test("Ctrl-C ends a started key sequence", arguments: libraries)
  func halfKey(_ library: String) throws {
    let session = try start(library)
    for half: [UInt8] in [[0x1B], [0x27, 0xE2]] {
      try session.typeUnseen(half)
      session.send(signal: SIGINT)
      try session.prompt()
      #expect(try session.enter("6 * 7").contains("\r\n42\r\n"))
    }
  }

  @Test(
    "Ctrl-C discards the line and the earlier lines of the chunk", arguments: ["libreadline.so.8"])
  func drop(_ library: String) throws {
    let session = try start(library)
    try session.type("garbage garbage")
    try session.expect("garbage garbage")
    try pressControlC(session, library)
    try session.prompt()
    try session.type("for i = 1, 3 do\r")
    try session.prompt(">> ")
    try pressControlC(session, library)
    try session.expect("\n")
    try session.prompt()
    #expect(try session.enter("6 * 7").contains("42\r\n"))
  }

  @Test(
    "Ctrl-C interrupts a loop, a coroutine and a wait, again and again",
    arguments: all)
  func interrupt(_ library: String) throws {
    let session = try start(library)
    try session.enter("background = flow.spawn(function() flow.sleep(1000) end)")
    let busy = [
      "print 'be' print 'gun' while true do end",
      "coroutine.wrap(function() print 'gun' while true do end end)()",
      "print 'gun' flow.sleep(1000)",
      "print 'gun' flow.spawn(function() flow.sleep(1000) end):await()",
      "print 'gun' flow.op('Op', function() flow.sleep(1000) end):run()",
      "pcall(function() print 'gun' while true do end end) print 'on' while true do end",
    ]
    for chunk in busy {
      try interrupt(session, library, chunk)
      if chunk.contains("pcall") {
        try session.expect("on\r\n")
        try pressControlC(session, library)
      }
      try session.expect("interrupted!")
      try session.prompt()
    }
    // Earlier work isn't affected.
    #expect(try session.enter("background.state").contains("\"pending\""))
    try session.type("\u{4}")
    // The end waits for it, and Ctrl-C ends that.
    try session.expect("(Ctrl-C cancels)\r\n")
    try pressControlC(session, library)
    #expect(try session.end().status != 0)
  }

  @Test(
    "A pasted block may be long, arrive in pieces and be inserted within a line",
    arguments: libraries)
  func longPaste(_ library: String) throws {
    let session = try start(library)
    let lines = (1...300).map { "n = (n or 0) + #'ä\($0)'" }
    let block = lines.joined(separator: "\n")
    try session.type("if true then \u{1B}[20")
    try session.type("0~" + block + "\u{1B}[2")
    try session.type("01~\u{1B}[D\u{1B}[C end\r")
    try session.prompt()
    let sum = lines.reduce(0) { $0 + $1.utf8.count - 18 }
    #expect(try session.enter("n").contains("\r\n\(sum)\r\n"))
  }

  // GNU readline has the terminal hold back a line that is typed while it has the keys.
  @Test("Input typed ahead goes to the next reader")
  func typedAhead() throws {
    let session = try start("libedit.so.2")
    try session.type("word = io.read()\ran answer\r")
    try session.prompt()
    #expect(try session.enter("word").contains("\"an answer\"\r\n"))
  }

  @Test(
    "Ctrl-C ends everything the chunk has started, programs included, and nothing older",
    arguments: all)
  func interruptedChunk(_ library: String) throws {
    let session = try start(library)
    try session.enter("old = flow.exec { 'sleep', '1000' } gone = old:next(function() end)")
    let busy = [
      "while true do end", "flow.sleep(1000)",
      "flow.op('Op', function() while true do end end):run()",
    ]
    for rest in busy {
      try interrupt(
        session, library,
        "p = flow.exec { 'sleep', '1000' } t = flow.spawn(function() p:wait() flow.sleep(1000) end) "
          + "c = flow.context() print 'gun' \(rest)")
      try session.prompt()
      #expect(
        try session.enter("p.state, t.state, c.task.state").contains(
          "\"cancelled\"\r\n\"cancelled\"\r\n\"cancelled\"\r\n"))
    }
    // Code that has caught it may continue.
    try interrupt(
      session, library,
      "pcall(function() print 'gun' while true do end end) t = flow.with_delay(1000)")
    try session.prompt()
    #expect(
      try session.enter("t.state, old.state, gone.state").contains(
        "\"pending\"\r\n\"pending\"\r\n\"pending\"\r\n"))
    try session.enter("t:cancel() old:cancel()")
    try session.type("\u{4}")
    #expect(try session.end().status == 0)
  }

  @Test(
    "Ctrl-Z gives the terminal back, and fg takes it again, with the line", arguments: libraries)
  func suspension(_ library: String) throws {
    let session = try TerminalSession(
      state: state, environment: ["FLOWLUA_READLINE": library, "NO_COLOR": "1"], usesShell: true)
    try session.expect(TerminalSession.shellPrompt)
    try session.type("$FLOWLUA\r")
    try session.prompt()
    try session.enter("number = io.open('/proc/self/stat'):read('n')")
    let number = try session.enter("print('<' .. number .. '>')")
    let process = pid_t(number.split(separator: "<").last?.split(separator: ">").first ?? "")
    for signal in [SIGTSTP, SIGSTOP] {
      try session.type("'half")
      try session.expect("'half")
      if signal == SIGTSTP {
        try session.type("\u{1A}")
      } else {
        kill(try #require(process), signal)
      }
      try session.expect(TerminalSession.shellPrompt)
      if signal == SIGTSTP { #expect(session.isCooked) }
      // Many shells give the terminal modes of their own; in those of the libraries, different keys end a
      // line of this one.
      try session.type("stty sane; fg" + (library.contains("readline") ? "\n" : "\r"))
      try session.expect("> 'half")
      try session.type(" a line'\r")
      try session.expect("\"half a line\"\r\n")
      try session.prompt()
      #expect(!session.isCooked)
    }
    // While a chunk runs, too.
    try definePause(session)
    try session.type("print 'gun' pause() print 'on'\r")
    try session.expect("gun\r\n")
    try session.type("\u{1A}")
    try session.expect(TerminalSession.shellPrompt)
    try release()
    try session.type("fg\r")
    try session.expect("on\r\n")
    try session.prompt()
    try session.type("\u{4}")
    try session.expect(TerminalSession.shellPrompt)
    #expect(session.isCooked)
  }

  @Test("Output of tasks appears above the line being typed", arguments: libraries)
  func background(_ library: String) throws {
    let session = try start(library)
    try session.enter("later = flow.context()")
    try session.enter("later.task:next(function() io.write 'tick' io.stderr:write 'tack\\n' end)")
    try session.enter("t = flow.exec({ 'cat' }, { stdin = 'x' }) file = io.open('/dev/null')")
    try definePause(session)
    try session.enter("flow.spawn(function() pause() later:set_result(1) end)")
    try session.type("'half")
    try session.expect("'half")
    try release()
    // The line is erased, the text written, and the line drawn again.
    #expect(try session.expect("tick").contains("\r\u{1B}[J"))
    #expect(try session.expect("> 'half").contains("\r"))
    try session.type(" a line'\r")
    try session.expect("\"half a line\"\r\n")
  }

  @Test("Nothing is drawn while tasks print nothing")
  func silentBackground() throws {
    let session = try start()
    try session.enter("n = 0")
    try session.enter(
      "ticker = flow.spawn(function() for i = 1, 200 do flow.sleep(0.001) n = i end end)")
    try session.type("ticker:wait() x = 1")
    try session.expect("x = 1")
    try session.type("\r")
    #expect(try !session.prompt().contains("ticker"))
  }

  @Test("An unobserved failure is reported while the prompt waits", arguments: libraries)
  func failure(_ library: String) throws {
    let session = try start(library)
    try definePause(session)
    try session.enter("flow.spawn(function() pause() error 'lost' end)")
    try session.type("'half")
    try session.expect("'half")
    try release()
    try session.expect("failed: stdin:1: lost")
    try session.expect("> 'half")
    try session.type("'\r")
    try session.prompt()
    try session.type("\u{4}")
    let end = try session.end()
    #expect(end.status == 0 && !end.shown.contains("lost"))
  }

  @Test("A wait at the prompt isn't a stall")
  func noStall() throws {
    let session = try start()
    try session.enter("c = flow.context() r = flow.op('Op', function() return c.task end):start()")
    try session.enter("flow.spawn(function() flow.sleep(0.01) end):await()")
    #expect(try session.enter("r").contains("pending"))
    try session.enter("c:set_result(1)")
    #expect(try session.enter("r.state").contains("succeeded"))
  }

  @Test("Windows may be narrow, and change their size", arguments: libraries)
  func size(_ library: String) throws {
    let session = try start(library, columns: 10)
    try session.type("{1111, 2222, 3333, 4444}\r")
    try session.expect("{\r\n  1111,\r\n  2222,")
    try session.prompt()
    try session.type("{11")
    try session.expect("{11")
    session.resize(columns: 60)
    if library.contains("readline") { try session.expect("{11") }
    try session.type("11, 2222, 3333}\r")
    try session.expect("{1111, 2222, 3333}\r\n")
  }

  @Test("A chunk reads from the terminal", arguments: all)
  func reading(_ library: String) throws {
    let session = try start(library)
    try session.type("print 'give' word = io.read()\r")
    try session.expect("give\r\n")
    #expect(session.isCooked)
    try session.type("an answer\r")
    try session.prompt()
    #expect(try session.enter("word").contains("\"an answer\"\r\n"))
  }

  @Test("The terminal gets its modes back, however the session ends", arguments: libraries)
  func modes(_ library: String) throws {
    let left = try start(library)
    #expect(!left.isCooked)
    try left.type("\u{4}")
    #expect(try left.end().status == 0)
    #expect(left.isCooked)
    let exited = try start(library)
    try exited.enter("flow.spawn(function() flow.sleep(0.05) os.exit(3) end)")
    #expect(try exited.end().status == 3)
    #expect(exited.isCooked)
    // The runtime of a debug build, which a sanitizer tests, takes SIGQUIT itself.
    let isDebug = getenv("FLOWLUA_SANITIZER") != nil
    for signal in isDebug ? [SIGTERM, SIGHUP] : [SIGTERM, SIGHUP, SIGQUIT] {
      let killed = try start(library)
      killed.send(signal: signal)
      #expect(try killed.end().status == 128 + signal)
      #expect(killed.isCooked)
    }
  }

  @Test("Ctrl-D leaves after all tasks have ended")
  func leaving() throws {
    let session = try start()
    try session.enter("flow.spawn(function() flow.sleep(0.1) print 'at last' end)")
    try session.type("\u{4}")
    let end = try session.end()
    #expect(end.status == 0 && end.shown.contains("at last"))
  }

  @Test("Errors have colours on request and no frames of the host")
  func errors() throws {
    let colored = try start(environment: ["NO_COLOR": nil])
    let shown = try colored.enter("error 'bang'")
    #expect(shown.contains("\u{1B}[31mstdin:1: bang\u{1B}[0m\r\n\u{1B}[2mstack traceback:\r\n"))
    #expect(!shown.contains("[C]: in ?"))
    let plain = try start(environment: ["NO_COLOR": "1"])
    #expect(
      try plain.enter("error 'bang'").contains("stdin:1: bang\r\nstack traceback:\r\n"))
    let dumb = try start(environment: ["TERM": "dumb"])
    let text = try dumb.enter("error 'bang'")
    #expect(text.contains("stdin:1: bang\r\n") && !text.contains("\u{1B}"))
  }

  @Test("help describes functions, ops, flows and itself")
  func help() throws {
    let session = try start()
    #expect(try session.enter("help()").contains("help(x) describes"))
    #expect(try session.enter("help").contains("help(flow.exec), or help \"exec\", describes"))
    #expect(try session.enter("type(help)").contains("function"))
    #expect(try session.enter("help(flow.sleep)").contains("Waits; everything else continues"))
    #expect(try session.enter("help(flow.spawn)").contains("Task<"))
    try session.enter(
      "Op = flow.op('Op', { doc = 'Does it.', needs = { k = 'string' }, retry = 3, "
        + "timeout = 5, run = print })")
    #expect(
      try session.enter("help(Op)").contains(
        "op Op\r\nDoes it.\r\nneeds:\r\n  k: string\r\nretry: 3 attempts, delay 0s\r\ntimeout: 5s"))
    #expect(try session.enter("help(flow.new('f'):add(Op))").contains("plan:\r\n"))
    #expect(try session.enter("help 'run:summary'").contains("Run:summary(options)"))
    // A word alone is found wherever it is a name.
    #expect(
      try session.enter("help 'await'").contains("Task:await(options)\r\nWaits for the result"))
    #expect(try session.enter("help 'max_concurrent'").contains("DispatcherOptions.max_concurrent"))
    #expect(try session.enter("help 'retry'").contains("Op.retry  –  flow.RetryOptions?"))
    #expect(try session.enter("help 'retri'").contains("did you mean"))
    #expect(try session.enter("help(12)").contains("no help about an integer"))
  }

  @Test("Without a terminal, lines are read as in lua5.4")
  func noTerminal() throws {
    func run(_ command: String) throws -> ChildProcess {
      try ChildProcess.run(
        "/bin/sh", ["-c", command], environment: ["F": Project.binary], in: state.path)
    }
    let piped = try run("printf '{1}\\n\"x\"\\n=1+1' | $F -i")
    #expect(String(decoding: piped.standardOutput, as: UTF8.self).contains("x\n> =1+1\n2\n> \n"))
    let closed = try run("$F -i <&-")
    #expect(closed.status == 0)
    #expect(!FileManager.default.fileExists(atPath: state.history))
  }
}
