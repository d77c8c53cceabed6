import Glibc
@_spi(Scripting) import LuaVM
import Testing

@Suite("The libraries of a state")
struct LibraryTests {
  /// Those of the safe libraries that raise an error, each with a call of it.
  private static let refused: [(name: String, call: String)] = [
    ("dofile", "dofile('x')"), ("loadfile", "loadfile('x')"), ("string.dump", "string.dump(print)"),
    ("os.execute", "os.execute()"), ("os.exit", "os.exit()"), ("os.getenv", "os.getenv('HOME')"),
    ("os.remove", "os.remove('x')"), ("os.rename", "os.rename('x', 'y')"),
    ("os.setlocale", "os.setlocale()"), ("os.tmpname", "os.tmpname()"),
  ]

  private func vm(_ configuration: LuaConfiguration) throws -> TestHost {
    try TestHost(configuration)
  }

  /// Bytecode of `return 7`, as a Lua expression.
  private func bytecode() throws -> ByteString {
    let host = try vm(LuaConfiguration())
    let dumped = try host.run("return string.dump(load('return 7'))").first
    guard case .string(let code)? = dumped else { throw LuaError(.runtime, "no dump") }
    return code
  }

  @Test("Of the safe libraries everything works that reaches nothing outside of the state")
  func safeLibrariesWork() throws {
    let host = try vm(LuaConfiguration(libraries: .safe))
    let text = try host.text(
      """
      local co = coroutine.wrap(function() coroutine.yield(1) end)
      return co(), table.concat({1, 2}), ("x"):rep(3), math.max(1, 2), utf8.char(228),
        type(os.time()), load("return 4")(), select("#", pcall(error)), type(require "string"),
        io, debug, package
      """)
    #expect(text == "1 12 xxx 2 ä number 4 2 table nil nil nil")
  }

  @Test("Functions beyond the safe libraries raise an error that names them", arguments: refused)
  func safeLibrariesRefuse(_ function: (name: String, call: String)) throws {
    let host = try vm(LuaConfiguration(libraries: .safe))
    let text = try host.text("return select(2, pcall(function() \(function.call) end))")
    #expect(text == "script:1: \(function.name) isn't allowed by the host of the script")
    #expect(!LuaConfiguration(libraries: .safe).hasFunction(function.name))
  }

  @Test("Each library can be opened alone, and none at all")
  func aloneOrNone() throws {
    for bit in 0..<15 {
      let host = try LuaVM(
        configuration: LuaConfiguration(libraries: LuaLibraries(rawValue: 1 << bit)))
      #expect(try host.call(host.load("return 1 + 1", name: "x")).count == 1)
      host.close()
    }
    let host = try LuaVM(configuration: LuaConfiguration(libraries: .none))
    let results = try host.call(host.load("return print, pairs, require", name: "x"))
    #expect(results.allSatisfy { $0.isNil })
    host.close()
  }

  @Test("A state without native modules loads those written in Lua")
  func modulesOfLuaOnly() throws {
    let folder = "/tmp/flowlua-modules-\(getpid())"
    mkdir(folder, 0o700)
    let path = folder + "/plainmodule.lua"
    let file = try #require(fopen(path, "w"))
    fputs("return { name = ... }", file)
    fclose(file)
    defer {
      unlink(path)
      rmdir(folder)
    }
    let host = try vm(LuaConfiguration(libraries: [.safe, .luaModules]))
    let text = try host.text(
      """
      package.path = "\(folder)/?.lua"
      package.cpath = "/usr/lib/x86_64-linux-gnu/lua/5.4/?.so"
      return require("plainmodule").name, #package.searchers, select(2, pcall(package.loadlib, "x", "*")),
        (pcall(require, "lpeg"))
      """)
    #expect(
      text == "plainmodule 2 package.loadlib isn't allowed by the host of the script false")
  }

  @Test("Bytecode is loaded by no way unless the configuration says so")
  func bytecodeIsRefused() throws {
    let code = try bytecode()
    let path = "/tmp/flowlua-bytecode-\(getpid()).lua"
    let file = try #require(fopen(path, "w"))
    code.bytes.withUnsafeBytes { _ = fwrite($0.baseAddress, 1, $0.count, file) }
    fclose(file)
    defer { unlink(path) }
    let script = """
      local code, path = ...
      package.path = "/tmp/?.lua"
      local function show(ok, value, message)
        if type(value) == "function" then value = value() end
        if type(value) == "table" then value = "table" end
        return ok and value ~= nil and "loaded" or tostring(value or message):match("bytecode isn't allowed")
          or tostring(value or message):match("binary chunk") or tostring(value or message)
      end
      local piece = code
      local function reader() local now = piece piece = nil return now end
      return show(pcall(load, code)), show(pcall(load, code, "x", "b")), show(pcall(load, code, "x", "bt", {})),
        show(pcall(load, reader)), show(pcall(loadfile, path)), show(pcall(loadfile, path, "b")),
        show(pcall(dofile, path)), show(pcall(require, "flowlua-bytecode-\(getpid())"))
      """
    let refusing = try vm(LuaConfiguration())
    let refused = try refusing.run(script, [.string(code), .string(ByteString(path))])
    let texts = try refused.map { try refusing.vm.tostring($0).description }
    let message = "bytecode isn't allowed"
    #expect(
      texts == [
        message, message, message, message, message, message, "binary chunk", "binary chunk",
      ])
    #expect(throws: LuaError.self) { try refusing.vm.load(code, name: "x", mode: .any) }
    #expect(throws: LuaError.self) { try refusing.vm.load(code, name: "x", mode: .bytecode) }
    #expect(throws: LuaError.self) { try refusing.vm.loadFile(path) }

    let loading = try vm(LuaConfiguration(loadsBytecode: true))
    let loaded = try loading.run(script, [.string(code), .string(ByteString(path))])
    #expect(
      try loaded.map { try loading.vm.tostring($0).description }
        == Array(repeating: "loaded", count: 8))
    #expect(try loading.vm.call(loading.vm.load(code, name: "x", mode: .any)).count == 1)
    #expect(try loading.vm.call(loading.vm.loadFile(path)).count == 1)
  }

  @Test(
    "load, loadfile and dofile of text are those of the standalone interpreter without bytecode")
  func textIsLoaded() throws {
    let host = try vm(LuaConfiguration())
    let text = try host.text(
      """
      local env = { y = 5 }
      return load("return y", "=c", "t", env)(), load("return y", "=c", nil, env)(),
        select(2, load("x x", "=c")), (pcall(load, "x", "=c", {})), select(2, load("return 1", "=c", "b")),
        load("return _ENV", "=c", "bt", nil)(), (select(2, loadfile("/nosuch")):match("cannot open")),
        (select(2, pcall(dofile, "/nosuch")):match("cannot open"))
      """)
    #expect(
      text
        == "5 5 c:1: syntax error near 'x' false bytecode isn't allowed by the host of the script nil "
        + "cannot open cannot open")
  }

  @Test("Programs can't be started without the permission, whichever library has the function")
  func programsAreRefused() throws {
    let host = try vm(LuaConfiguration(permissions: .files))
    let text = try host.text(
      "return select(2, pcall(io.popen, 'true')), select(2, pcall(os.execute, 'true')), type(io.open)"
    )
    #expect(
      text
        == "io.popen isn't allowed by the host of the script "
        + "os.execute isn't allowed by the host of the script function")
  }

  @Test("os.exit of an embedded state is an error, and the process lives")
  func exitIsRefused() throws {
    let host = try vm(LuaConfiguration())
    let text = try host.text("return select(2, pcall(function() os.exit(3, true) end))")
    #expect(text == "script:1: os.exit isn't allowed by the host of the script")
  }

  @Test("Known ways out of the safe libraries lead nowhere")
  func waysOut() throws {
    let host = try vm(LuaConfiguration(libraries: .safe))
    let text = try host.text(
      """
      local found = {}
      local seen = {}
      local function visit(value, path)
        if seen[value] then return end
        if type(value) == "table" then
          seen[value] = true
          for key, inner in pairs(value) do
            local name = path .. "." .. tostring(key)
            if name:find("popen") or name:find("loadlib") or name:find("debug") or name:find("open$") then
              found[#found + 1] = name
            end
            visit(key, name)
            visit(inner, name)
          end
          local metatable = getmetatable(value)
          if metatable then visit(metatable, path .. "<meta>") end
        end
      end
      visit(_G, "_G")
      visit(getmetatable("").__index, "string")
      visit(load("return _G")(), "load")
      return #found, select(2, pcall(require, "io")), select(2, pcall(require, "lpeg"))
      """)
    #expect(
      text
        == "0 module 'io' not found: the host of the script allows no modules of files "
        + "module 'lpeg' not found: the host of the script allows no modules of files")
  }
}
