@_spi(Scripting) internal import LuaVM

/// The help texts for Lua's own functions.
enum StandardLibraryHelp {
  /// The functions of a library in order, each with its signature; `""` has the basic ones.
  static let libraries: [(name: String, lines: [String])] = {
    var found: [(name: String, lines: [String])] = []
    for line in text.split(separator: "\n").map(String.init) {
      let library = library(of: name(of: line))
      if found.last?.name == library {
        found[found.count - 1].lines.append(line)
      } else {
        found.append((library, [line]))
      }
    }
    return found
  }()

  /// All names: `print`, `string.rep`, `file:read`.
  static var names: [String] { libraries.flatMap { $0.lines.map(name(of:)) } }

  /// The signature and the description of a function; nil for an unknown name, and for a function that a
  /// state with this configuration doesn't have.
  static func text(
    of name: String, in configuration: LuaConfiguration = LuaConfiguration(refusesExit: false)
  ) -> String? {
    let wanted = withPoints(name)
    for library in libraries {
      for line in library.lines
      where withPoints(Self.name(of: line)) == wanted {
        return configuration.hasFunction(Self.name(of: line)) ? shown(line) : nil
      }
    }
    return nil
  }

  /// A library's functions that a state with this configuration has, a line for each; nil for an unknown
  /// name, and for a library without any.
  static func text(ofLibrary name: String, in configuration: LuaConfiguration) -> String? {
    guard let found = libraries.first(where: { $0.name == name && !name.isEmpty }) else {
      return nil
    }
    let lines = found.lines.filter { configuration.hasFunction(Self.name(of: $0)) }
    if lines.isEmpty { return nil }
    return (["the library \(name)"] + lines.map { "  " + shown($0, between: "  –  ") })
      .joined(separator: "\n")
  }

  /// A line with something between the signature and the description.
  private static func shown(_ line: String, between mark: String = "\n") -> String {
    let bytes = Array(line.utf8)
    guard let place = bytes.place(of: " | ") else { return line }
    return String(decoding: bytes[..<place.lowerBound], as: UTF8.self) + mark
      + String(decoding: bytes[place.upperBound...], as: UTF8.self)
  }

  /// A name as of a field: `file.read` for the method `file:read`.
  private static func withPoints(_ name: String) -> String {
    String(name.map { $0 == ":" ? "." : $0 })
  }

  private static func name(of line: String) -> String {
    String(line.prefix { $0 != "(" && $0 != " " })
  }

  private static func library(of name: String) -> String {
    guard let end = name.firstIndex(where: { $0 == "." || $0 == ":" }) else { return "" }
    return String(name[..<end])
  }

  private static let text: String = """
    assert(value [, message]) | Returns its arguments if the value is true, else raises the message.
    collectgarbage([option [, argument]]) | Controls the garbage collector: "collect", "count", "stop", "restart", "step", "isrunning", "incremental", "generational".
    dofile([filename]) | Runs a file, or standard input, and returns its results.
    error(message [, level]) | Raises an error, any value; a string gets the position of the caller, or of the level given.
    getmetatable(object) | Returns an object's metatable, or its field `__metatable`; nil without one.
    ipairs(t) | Iterates over t[1], t[2], … up to the first nil: for i, value in ipairs(t).
    load(chunk [, chunkname [, mode [, env]]]) | Compiles a string, or the pieces that a function returns, and returns it as a function; nil and a message when it isn't Lua.
    loadfile([filename [, mode [, env]]]) | Compiles a file as load does, without running it.
    next(table [, key]) | Returns the key and value that come after a key, in no order; the first without key, nil after the last.
    pairs(t) | Iterates over all keys and values in no order: for key, value in pairs(t); `__pairs` can change that.
    pcall(f [, ...]) | Calls a function and catches its error: returns true and its results, or false and the error.
    print(...) | Writes its arguments to standard output as text, separated by tabs, with a line end.
    rawequal(a, b) | Returns whether two values are the same, without `__eq`.
    rawget(table, key) | Reads a field without `__index`.
    rawlen(value) | Returns the length of a table or string without `__len`.
    rawset(table, key, value) | Sets a field without `__newindex`, and returns the table.
    require(name) | Returns a module; loads it the first time, from `package.path` and `package.cpath`.
    select(n, ...) | Returns the arguments from number n on, or their number for "#".
    setmetatable(table, metatable) | Sets or removes (nil) a table's metatable, and returns the table.
    tonumber(value [, base]) | Turns text into a number, in base 10 or from 2 to 36; nil when it isn't one.
    tostring(value) | Turns a value into text; `__tostring` and `__name` can change it.
    type(value) | Returns the name of a value's type: "nil", "number", "string", "boolean", "table", "function", "thread", "userdata".
    warn(message, ...) | Emits a warning of all its arguments joined; "@on" and "@off" switch warnings.
    xpcall(f, handler [, ...]) | Calls a function as pcall does, but passes an error to the handler first, before the stack unwinds.
    coroutine.close(co) | Ends a suspended or dead coroutine, and closes its variables: true, or false and the error.
    coroutine.create(f) | Makes a coroutine from a function; resume starts it.
    coroutine.isyieldable([co]) | Returns whether a coroutine, or the running one, can yield.
    coroutine.resume(co [, ...]) | Starts or continues a coroutine: true and what it yields or returns, or false and the error.
    coroutine.running() | Returns the running coroutine, and whether it is the main one.
    coroutine.status(co) | Returns "running", "suspended", "normal" or "dead".
    coroutine.wrap(f) | Makes a coroutine, and returns a function that resumes it and raises its errors.
    coroutine.yield(...) | Suspends the running coroutine; resume returns its arguments.
    debug.debug() | Prompts on standard error for lines and runs them, until `cont` is typed.
    debug.gethook([thread]) | Returns the hook function, its mask and its count.
    debug.getinfo([thread,] f [, what]) | Returns a table about a function, or about the function at a level of the stack.
    debug.getlocal([thread,] f, index) | Returns the name and value of a local variable at a level of the stack, or a parameter's name.
    debug.getmetatable(value) | Returns a value's metatable, regardless of `__metatable`.
    debug.getregistry() | Returns the table in which C code keeps its values.
    debug.getupvalue(f, index) | Returns the name and value of a variable that a function has captured.
    debug.getuservalue(u, n) | Returns the n-th user value of a userdata, and whether there is one.
    debug.sethook([thread,] hook, mask [, count]) | Registers a function to be called at calls ("c"), returns ("r"), lines ("l"), or after each count of instructions.
    debug.setlocal([thread,] level, index, value) | Sets a local variable at a level of the stack, and returns its name.
    debug.setmetatable(value, table) | Sets the metatable of any value; for a basic type, that of all its values.
    debug.setupvalue(f, index, value) | Sets a variable that a function has captured, and returns its name.
    debug.setuservalue(u, value, n) | Sets the n-th user value of a userdata.
    debug.traceback([thread,] [message [, level]]) | Returns a message with the stack as text.
    debug.upvalueid(f, index) | Returns an identifier of a captured variable, which shows whether functions share it.
    debug.upvaluejoin(f1, n1, f2, n2) | Makes one function share a captured variable of another.
    debug.setcstacklimit(limit) | Does nothing in this version of Lua; it exists for older programs.
    file:close() | Closes a file; of a program's pipe it returns how the program ended.
    file:flush() | Writes what is still in the file's buffer.
    file:lines(...) | Iterates over a file by the formats of `file:read`, by lines without any.
    file:read(...) | Reads by formats: "n" a number, "l" a line, "L" with its end, "a" all, or so many bytes; nil at the end.
    file:seek([whence [, offset]]) | Moves within a file, from "set", "cur" or "end", and returns the position.
    file:setvbuf(mode [, size]) | Chooses the buffer: "no", "full" or "line".
    file:write(...) | Writes strings and numbers, and returns the file.
    io.close([file]) | Closes a file, or the default output.
    io.flush() | Writes what is still in the buffer of the default output.
    io.input([file]) | Sets the default input to a file or a file's name, and returns it.
    io.lines([filename, ...]) | Iterates over a file by the formats of `file:read`, by lines without any, and closes it at the end.
    io.open(filename [, mode]) | Opens a file to read ("r"), write ("w") or append ("a"), "+" for both: the file, or nil, message and number.
    io.output([file]) | Sets the default output to a file or a file's name, and returns it.
    io.popen(program [, mode]) | Starts a shell command, and returns a file to read from it ("r") or write to it ("w").
    io.read(...) | Reads from the default input as `file:read` does.
    io.tmpfile() | Opens a new file that is removed at the end.
    io.type(value) | Returns "file", "closed file", or nil for a value that is no file.
    io.write(...) | Writes to the default output as `file:write` does.
    math.abs(x) | Returns the absolute value.
    math.acos(x) | Returns the arc cosine in radians.
    math.asin(x) | Returns the arc sine in radians.
    math.atan(y [, x]) | Returns the arc tangent of y/x in radians, in the right quadrant.
    math.atan2(y, x) | Returns the arc tangent of y/x in radians: the older name of math.atan.
    math.ceil(x) | Returns the smallest integer that isn't less than x.
    math.cos(x) | Returns the cosine of an angle in radians.
    math.cosh(x) | Returns the hyperbolic cosine.
    math.deg(x) | Turns radians into degrees.
    math.exp(x) | Returns e to the power of x.
    math.floor(x) | Returns the largest integer that isn't greater than x.
    math.fmod(x, y) | Returns the remainder of x/y, rounded towards zero.
    math.frexp(x) | Returns a fraction m and an integer e with x = m * 2^e.
    math.ldexp(m, e) | Returns m * 2^e.
    math.log(x [, base]) | Returns the logarithm, the natural one without base.
    math.log10(x) | Returns the logarithm to base 10.
    math.max(x, ...) | Returns the greatest argument.
    math.min(x, ...) | Returns the least argument.
    math.modf(x) | Returns the integral part and the rest.
    math.pow(x, y) | Returns x to the power of y, as x^y does.
    math.rad(x) | Turns degrees into radians.
    math.random([m [, n]]) | Returns a random float from 0 up to 1, or an integer from 1 to m, or from m to n.
    math.randomseed([x [, y]]) | Starts a new sequence of random numbers, a random one without arguments.
    math.sin(x) | Returns the sine of an angle in radians.
    math.sinh(x) | Returns the hyperbolic sine.
    math.sqrt(x) | Returns the square root.
    math.tan(x) | Returns the tangent of an angle in radians.
    math.tanh(x) | Returns the hyperbolic tangent.
    math.tointeger(x) | Returns x as an integer if it is one, else nil.
    math.type(x) | Returns "integer", "float", or nil for a value that is no number.
    math.ult(m, n) | Returns whether m is less than n as unsigned integers.
    os.clock() | Returns the seconds of processor time that the program has used.
    os.date([format [, time]]) | Returns a time as text by a format of strftime, or as a table for "*t"; "!" takes UTC.
    os.difftime(t2, t1) | Returns the seconds from t1 to t2.
    os.execute([command]) | Runs a shell command and waits: true or nil, "exit" or "signal", and the number.
    os.exit([code [, close]]) | Ends the program with a status; closes the Lua state first if `close` is true.
    os.getenv(name) | Returns a variable of the environment, nil without one.
    os.remove(filename) | Removes a file or an empty folder: true, or nil, message and number.
    os.rename(old, new) | Renames or moves a file: true, or nil, message and number.
    os.setlocale([locale [, category]]) | Sets the locale of the program, or returns it.
    os.time([table]) | Returns the current time, or that of a table with year, month and day, in seconds.
    os.tmpname() | Returns a file name that can be used for a temporary file.
    package.loadlib(path, name) | Loads a C library, and returns a function of it.
    package.searchpath(name, path [, sep [, rep]]) | Finds the file of a module in a path like `package.path`.
    string.byte(s [, i [, j]]) | Returns the bytes at the positions i to j as numbers.
    string.char(...) | Returns a string of these bytes.
    string.dump(f [, strip]) | Returns a function in binary form, which load accepts.
    string.find(s, pattern [, init [, plain]]) | Returns the start and end of the first match, and its captures; nil without one.
    string.format(format, ...) | Formats its arguments as printf does; %q writes a value as Lua reads it.
    string.gmatch(s, pattern [, init]) | Iterates over all matches: for capture in s:gmatch(pattern).
    string.gsub(s, pattern, replacement [, n]) | Replaces matches by a string, a table's values or a function's results; returns the string and the number of matches.
    string.len(s) | Returns the number of bytes.
    string.lower(s) | Turns uppercase letters into lowercase ones.
    string.match(s, pattern [, init]) | Returns the captures of the first match, or all of it; nil without one.
    string.pack(format, ...) | Returns values in binary form.
    string.packsize(format) | Returns the length of the result of pack, for a format of fixed sizes.
    string.rep(s, n [, separator]) | Returns n copies of a string, with a separator between.
    string.reverse(s) | Returns the bytes in reverse order.
    string.sub(s, i [, j]) | Returns the part from i to j; negative positions count from the end.
    string.unpack(format, s [, position]) | Returns values from their binary form, and the position after them.
    string.upper(s) | Turns lowercase letters into uppercase ones.
    table.concat(list [, separator [, i [, j]]]) | Joins strings and numbers of a list.
    table.insert(list, [position,] value) | Inserts a value at a position, at the end without one.
    table.move(a1, from, to, target [, a2]) | Copies elements of a list to a position, of another list if given; returns that list.
    table.pack(...) | Returns a list of its arguments, with their number as `n`.
    table.remove(list [, position]) | Removes an element, the last without position, and returns it.
    table.sort(list [, less]) | Sorts a list in place, by `<` or by a function that returns whether its first argument comes before the second.
    table.unpack(list [, i [, j]]) | Returns the elements of a list.
    utf8.char(...) | Returns a string of these code points in UTF-8.
    utf8.codepoint(s [, i [, j [, lax]]]) | Returns the code points of the characters that begin from i to j.
    utf8.codes(s [, lax]) | Iterates over positions and code points: for position, code in utf8.codes(s).
    utf8.len(s [, i [, j [, lax]]]) | Returns the number of characters, or nil and the position of the first invalid byte.
    utf8.offset(s, n [, i]) | Returns the position where the n-th character, counted from i, begins.
    """
}
