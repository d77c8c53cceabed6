import FlowEngine
import Glibc
import Testing

@Suite("The engine without Lua")
struct EngineOnlyTests {
  /// The file contains the names of its libraries as text, so reading it is enough.
  @Test("A program that uses the engine alone doesn't link Lua")
  func aProgramThatUsesTheEngineAloneDoesNotLinkLua() throws {
    let program = ByteString(try readBytes(try path()))
    #expect(program.contains("libc.so"))
    #expect(!program.contains("liblua"))
  }

  /// It is on the main thread, and one of its ops awaits code of the main actor.
  @Test("The loop of such a program runs typed and async ops and code of the main actor")
  func itsLoopRunsTypedAndAsyncOpsAndCodeOfTheMainActor() throws {
    let pipe = try #require(popen("timeout 60 '\(try path())' 2>&1", "r"))
    var output = ""
    var buffer = [CChar](repeating: 0, count: 4096)
    while fgets(&buffer, 4096, pipe) != nil {
      output += String(
        decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    #expect(pclose(pipe) == 0)
    let lines = output.split(separator: "\n").map(String.init)
    #expect(lines.first == "uploaded: url_of_a, url_of_b, url_of_c")
    #expect(lines.contains("Flow isSuccess: true"))
    #expect(
      lines.suffix(3) == [
        "checksum: 14087", "notified on the main actor", "awaited on the main actor: url_of_a",
      ])
  }

  /// Where the program stands.
  private func path() throws -> String {
    var path = [CChar](repeating: 0, count: 4096)
    let length = readlink("/proc/self/exe", &path, 4095)
    try #require(length > 0)
    let own = String(decoding: path.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    // `swift test` runs a tool of the toolchain that loads the bundle, which is mapped here.
    let bundle = try readFile("/proc/self/maps").split(separator: "\n").compactMap { line in
      line.split(separator: " ").last.map(String.init)
    }.first { $0.hasSuffix(".xctest") }
    let folder = (bundle ?? own).split(separator: "/").dropLast().joined(separator: "/")
    return "/\(folder)/EngineOnly"
  }

  private func readFile(_ path: String) throws -> String {
    String(decoding: try readBytes(path), as: UTF8.self)
  }

  private func readBytes(_ path: String) throws -> [UInt8] {
    let file = try #require(fopen(path, "r"), "\(path) can't be opened")
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = fread(&buffer, 1, buffer.count, file)
      if count == 0 { return bytes }
      bytes += buffer[..<count]
    }
  }
}
