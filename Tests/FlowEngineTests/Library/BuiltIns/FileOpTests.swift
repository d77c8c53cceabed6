import FlowEngine
import Glibc
import Testing

@Suite("Ops that read, write and sleep")
struct FileOpTests {
  /// A folder that is gone when the test ends.
  private final class Folder {
    let path: String

    init() {
      var template = Array("/tmp/flowlua-test-XXXXXX".utf8CString)
      path = mkdtemp(&template).map { String(cString: $0) } ?? "/nowhere"
    }

    deinit {
      for name in names { unlink("\(path)/\(name)") }
      rmdir(path)
    }

    var names: [String] {
      guard let stream = opendir(path) else { return [] }
      defer { closedir(stream) }
      var found: [String] = []
      while let entry = readdir(stream) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
          pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { found.append(name) }
      }
      return found.sorted()
    }
  }

  @Test("ReadFileOp returns the bytes that WriteFileOp wrote")
  func whatIsWrittenIsRead() throws {
    let folder = Folder()
    let loop = makeLoop()
    let content = ByteString((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let flow = Flow("copy").add(WriteFileOp()).add(Op("ForgetOp") { $0.set("content", .null) })
      .add(ReadFileOp())
    let run = flow.start(
      on: loop,
      data: InitialData([
        ("path", .bytes(ByteString(folder.path + "/file"))), ("content", .bytes(content)),
      ]))
    try run.wait()
    #expect(run.data.value("content") == content)
    #expect(folder.names == ["file"])
  }

  @Test("The virtual clock stands still during file operations")
  func theVirtualClockStandsStillMeanwhile() throws {
    let folder = Folder()
    let loop = makeLoop()
    loop.schedule(at: 1_000_000_000) {}
    let run = WriteFileOp().start(
      on: loop,
      data: InitialData([
        ("path", .bytes(ByteString(folder.path + "/file"))), ("content", .bytes("x")),
      ]))
    #expect(run.state == .pending)
    try run.wait()
    #expect(loop.now() == 0)
  }

  @Test("A reader of a pipe stops when another member fails")
  func aReaderOfAPipeStopsWhenAnotherMemberFails() throws {
    let folder = Folder()
    let pipe = folder.path + "/pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    let loop = makeLoop()
    let reader = ReadFileOp()
    let either = Flow("either").needs(["path": "string"]).add(
      Op("FailOp", needs: ["path": "string"]) { context in
        let path: String = try context.value("path")
        if path == "fail" { throw FlowError(.error, "on purpose") }
      }
    ).add(reader)
    let run = Flow("group").data("paths", list([pipe, "fail"])).addGrouped(
      either, GroupDispatcher(input: "paths", as: "path")
    ).start(on: loop)
    try run.waitUntilEnd()
    #expect(run.error?.message == "on purpose")
    // Its thread releases the pipe; otherwise the loop would never be idle.
    loop.runUntilIdle()
  }

  @Test("A reader of a pipe releases it when its loop is shut down")
  func aReaderOfAPipeStopsWithItsLoop() throws {
    let folder = Folder()
    let pipe = folder.path + "/pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    let loop = makeLoop()
    let run = ReadFileOp().start(on: loop, data: InitialData([("path", .bytes(ByteString(pipe)))]))
    #expect(run.state == .pending)
    // Without a reader, a pipe can't be opened so.
    var writer: Int32 = -1
    for _ in 0..<60_000 where writer < 0 {
      writer = open(pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
      if writer < 0 { usleep(1000) }
    }
    try #require(writer >= 0)
    defer { close(writer) }
    loop.shutdown()
    var entry = pollfd(fd: writer, events: 0, revents: 0)
    #expect(poll(&entry, 1, 60_000) == 1, "the pipe still has a reader")
  }

  @Test("SleepOp waits on the loop's clock")
  func sleepOpsWaitOnTheLoopsClock() throws {
    let loop = makeLoop()
    let run = Flow("sleepy").add(PrintOp("before")).add(SleepOp(.seconds(3600))).add(
      SleepOp(.seconds(-1))
    )
    .add(PrintOp("after")).start(on: loop)
    try run.wait()
    #expect(run.duration == .seconds(3600))
    #expect(lines(run).contains("[PrintOp] before"))
    #expect(lines(run).contains("[PrintOp] after"))
  }
}
