import FlowLoop
import Glibc
import Testing

@Suite("Lines of programs", .serialized)
struct ProcessLinesTests {
  private struct Stopped: Error {}

  private final class Reader: ProcessLineReader {
    var lines: [ByteString] = []
    var hasEnded = false
    func received(_ line: ProcessLine?) {
      if let line { lines.append(line.text) } else { hasEnded = true }
    }
    /// Takes all lines that are there; returns whether more may come.
    func take(_ source: ProcessLines) -> Bool {
      while !hasEnded {
        switch source.next(for: self) {
        case .line(let line): lines.append(line.text)
        case .later: return true
        case .end: hasEnded = true
        }
      }
      return false
    }
  }

  private final class Writer: ProcessInputWriter {
    var isOpen: Bool?
    func inputAdvanced(isOpen: Bool) { self.isOpen = isOpen }
  }

  /// Counts what outputs hold.
  private final class Meter: MemoryMeter {
    private(set) var held = 0
    private(set) var most = 0
    func add(held bytes: Int) -> Int? {
      held += bytes
      most = max(most, held)
      return held > 1_000_000 ? 1_000_000 : nil
    }
    func release(held bytes: Int) { held -= bytes }

    func beginCollecting() -> CollectedBytes? { nil }
  }

  private func start(
    _ loop: FlowEventLoop, _ text: ByteString, input: ProcessRequest.Input = .nothing
  ) -> (ChildProcess, () -> ProcessEnd?) {
    var end: ProcessEnd?
    var request = ProcessRequest(["sh", "-c", text])
    request.input = input
    let child = loop.startChild(request) { end = $0 }
    return (child, { end })
  }

  /// The path of a new file, until whose end a program waits.
  private func makeFile() -> String {
    var template = Array("/tmp/flowlua-XXXXXX".utf8CString)
    let file = mkstemp(&template)
    #expect(file >= 0)
    close(file)
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private func result(_ end: ProcessEnd?) -> ProcessResult? {
    if case .exited(let result)? = end { result } else { nil }
  }

  @Test("The program waits while nobody takes its lines")
  func programWaits() {
    let loop = makeLoop()
    let (child, end) = start(loop, "yes nineteen characters | head -c 600000")
    let lines = child.makeLines()
    let reader = Reader()
    lines.open()
    // Another program keeps the loop from having nothing else to do.
    let (other, _) = start(loop, "sleep 100")
    for _ in 0..<200 {
      _ = loop.turn(mayBlock: false)
      usleep(500)
    }
    #expect(end() == nil)
    while reader.take(lines) {
      let count = reader.lines.count
      _ = loop.turn { reader.lines.count > count || reader.hasEnded }
    }
    #expect(reader.lines.count == 30_000)
    lines.close()
    other.cancel(because: Stopped())
    loop.runUntilIdle()
    #expect(result(end())?.stdout == "")
  }

  @Test("A line that waits for a reader counts until it is taken")
  func waitingLineCounts() {
    let (loop, meter) = (makeLoop(), Meter())
    loop.memoryMeter = meter
    let (child, end) = start(loop, "head -c 500000 /dev/zero; echo; exec sleep 20")
    let (lines, reader) = (child.makeLines(), Reader())
    lines.open()
    _ = loop.turn { meter.held > 500_000 || end() != nil }
    #expect(meter.held > 500_000)
    _ = reader.take(lines)
    #expect(reader.lines.map(\.count) == [500_000] && meter.held == 0)
    lines.close()
    child.cancel(because: Stopped())
    loop.runUntilIdle()
  }

  @Test("A program whose line doesn't end is stopped at the limit of the memory")
  func endlessLineCounts() {
    let (loop, meter) = (makeLoop(), Meter())
    loop.memoryMeter = meter
    let (child, end) = start(loop, "exec head -c 50000000 /dev/zero")
    let (lines, reader) = (child.makeLines(), Reader())
    lines.open()
    while reader.take(lines) { _ = loop.turn { reader.hasEnded || !reader.lines.isEmpty } }
    loop.runUntilIdle()
    guard case .stopped(let reason, _)? = end() else {
      Issue.record("the program wasn't stopped: \(String(describing: end()))")
      return
    }
    #expect((reason as? ProcessOutputLimit)?.limit == 1_000_000)
    #expect(reader.lines.isEmpty && meter.most < 1_200_000 && meter.held == 0)
    lines.close()
  }

  @Test("A loop with nothing else to do continues a program whose reader was forgotten")
  func forgottenReader() {
    for loop in [makeLoop(), makeTimedLoop()] {
      let (child, end) = start(loop, "yes nineteen characters | head -c 600000; echo late >&2")
      let lines = child.makeLines()
      lines.open()
      loop.runUntilIdle()
      #expect(result(end())?.status == 0)
      let reader = Reader()
      #expect(!reader.take(lines))
      #expect(reader.lines.count == 30_001)
      lines.close()
    }
  }

  @Test("A reader that leaves gives its lines back to the result")
  func leavingReader() {
    let loop = makeLoop()
    let (child, end) = start(loop, "printf '1\\n2\\n3'")
    let lines = child.makeLines()
    let reader = Reader()
    lines.open()
    _ = reader.take(lines)
    _ = loop.turn { !reader.lines.isEmpty }
    lines.close()
    loop.runUntilIdle()
    #expect(reader.lines == ["1"])
    #expect(result(end())?.stdout == "2\n3")
  }

  @Test("A cancelled reader gets no line")
  func cancelledReader() {
    let loop = makeLoop()
    let (child, _) = start(loop, "echo 1")
    let lines = child.makeLines()
    let (first, second) = (Reader(), Reader())
    lines.open()
    _ = first.take(lines)
    _ = second.take(lines)
    lines.cancel(first)
    loop.runUntilIdle()
    #expect(first.lines.isEmpty && !first.hasEnded)
    #expect(second.lines == ["1"])
    lines.close()
  }

  @Test("A writer waits while the program doesn't read, and learns that it never will")
  func writer() {
    let loop = makeLoop()
    // The program closes its input only once the file is gone, after the second write.
    let path = makeFile()
    let (child, end) = start(
      loop,
      """
      read -r line; while [ -e \(path) ]; do sleep 0.01; done
      exec <&-; echo closed; read -r line
      """, input: .pipe)
    let writer = Writer()
    #expect(child.write("line\n", for: writer) == .done)
    #expect(child.write(ByteString([UInt8](repeating: 1, count: 1 << 20)), for: writer) == .later)
    unlink(path)
    loop.runUntilIdle()
    #expect(writer.isOpen == false)
    #expect(child.write("x", for: writer) == .closed)
    #expect(result(end())?.stdout == "closed\n")
  }

  @Test("Input is complete when it ends after its bytes")
  func inputEnds() {
    let loop = makeLoop()
    // The program reads only once the file is gone, after the end.
    let path = makeFile()
    let (child, end) = start(
      loop, "while [ -e \(path) ]; do sleep 0.01; done; wc -c", input: .pipe)
    let writer = Writer()
    #expect(child.write(ByteString([UInt8](repeating: 1, count: 1 << 20)), for: writer) == .later)
    child.closeInput()
    unlink(path)
    loop.runUntilIdle()
    #expect(writer.isOpen == true)
    #expect(result(end())?.stdout == "1048576\n")
  }

  @Test("Nothing of programs with readers and writers stays open")
  func nothingStaysOpen() {
    func count() -> Int {
      (0..<1024).filter { fcntl($0, F_GETFD) >= 0 }.count
    }
    let loop = makeLoop()
    start(loop, "true").0.makeLines().open()
    loop.runUntilIdle()
    let before = count()
    let rounds = 25
    for text in Array(
      repeating: ["cat", "exec <&-; yes $(printf %01000d 0)", "echo 1; exit 3", "sleep 100"]
        as [ByteString],
      count: rounds
    ).joined() {
      let (child, end) = start(loop, text, input: .pipe)
      child.makeLines().open()
      _ = child.write("text", for: Writer())
      for _ in 0..<20 { _ = loop.turn(mayBlock: false) }
      child.cancel(because: Stopped())
      loop.runUntilIdle()
      #expect(end() != nil)
    }
    // Other tests of this process open and close some meanwhile, but not one for each round.
    #expect(count() - before < rounds)
  }
}
