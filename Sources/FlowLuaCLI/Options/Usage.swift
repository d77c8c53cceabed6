internal import FlowEngine
internal import FlowScripting

/// The usage texts of the program.
enum Usage {
  static let version: ByteString = "flowlua \(FlowLuaVersion.number)"

  /// The text for wrong use of an option of the interpreter: lua5.4's.
  static func interpreter(_ program: ByteString) -> ByteString {
    """
    usage: \(program) [options] [script [args]]
    Available options are:
      -e stat   execute string 'stat'
      -i        enter interactive mode after executing 'script'
      -l mod    require library 'mod' into global 'mod'
      -l g=mod  require library 'mod' into global 'g'
      -v        show version information
      -E        ignore environment variables
      -W        turn warnings on
      --        stop handling options
      -         stop handling options and execute stdin

    """
  }

  /// The text of `--help`.
  static func help(_ program: ByteString) -> ByteString {
    var text: ByteString = """
      flowlua runs Lua 5.4 scripts, as lua5.4 does, and provides the module 'flow': named
      operations, flows, runs with a log, groups and tasks.

      usage: \(program) [options] [script [args]]

      Without a script it reads standard input; on a terminal it opens a session.


      """
    for section in Option.Section.allCases {
      text = text + title(of: section) + "\n"
      for option in Option.all where option.section == section {
        for row in option.rows { text = text + line(row.form, row.help) }
      }
      text = text + "\n"
    }
    return text + """
      Options of lua5.4:
        -e STAT                execute a statement
        -l MOD                 require a module into the global of its name
        -l NAME=MOD            require a module into the global NAME
        -i                     open a session after the script
        -v                     show the versions
        -E                     ignore the environment: LUA_INIT, LUA_PATH, LUA_CPATH
        -W                     turn warnings on
        --                     end of the options
        -                      end of the options; run standard input

      The exit status is 0 for success; 1 for an error of the script, an unobserved failure, or wrong
      use of an option of lua5.4; 2 for wrong use of an option of flowlua, or a sandbox that the kernel
      can't provide; 75 after SIGTERM with a run that --resume continues; 124 after --time-limit or
      --cpu-limit; 129 after SIGHUP, 130 (death by SIGINT) after Ctrl-C, 143 after SIGTERM.

      The manual page is flowlua(1). The Debian package has articles and examples in
      /usr/share/doc/flowlua; begin with articles/Cookbook.md.

      """
  }

  private static func title(of section: Option.Section) -> ByteString {
    switch section {
    case .flowlua: "Options of flowlua:"
    case .tests: "Tests of scripts:"
    case .nodes: "Other nodes:"
    case .limits: "Limits and permissions of the script:"
    }
  }

  /// A form of an option, and beside it in lines of at most 98 columns the text.
  private static func line(_ form: ByteString, _ help: ByteString) -> ByteString {
    let margin = 25
    let indent = [UInt8](repeating: UInt8(ascii: " "), count: margin)
    var text = "  ".bytes + form.bytes
    text += indent.dropFirst(min(text.count, margin - 2))
    var column = text.count
    var isFirst = true
    for word in help.bytes.split(separator: UInt8(ascii: " ")) {
      if !isFirst, column + 1 + word.count > 98 {
        text += [UInt8(ascii: "\n")] + indent
        column = margin
      } else if !isFirst {
        text.append(UInt8(ascii: " "))
        column += 1
      }
      text += word
      column += word.count
      isFirst = false
    }
    return ByteString(text + [UInt8(ascii: "\n")])
  }
}
