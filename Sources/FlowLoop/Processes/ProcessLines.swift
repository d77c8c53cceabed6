/// An output of a program.
package enum ProcessStream: Sendable {
  /// The standard output.
  case stdout
  /// The standard error.
  case stderr
}

/// A line that a program has printed.
package struct ProcessLine: Sendable {
  /// Its bytes, without the newline.
  package let text: ByteString
  /// The output that it was printed to.
  package let stream: ProcessStream
  /// Whether it had a newline; the last line may lack one.
  package let isTerminated: Bool

  init(_ text: ByteString, _ stream: ProcessStream, isTerminated: Bool = true) {
    self.text = text
    self.stream = stream
    self.isTerminated = isTerminated
  }
}

/// A reader that waits for a line of a program.
package protocol ProcessLineReader: AnyObject {
  /// Called once, on the loop's thread, with the line, or with nil when there are no more.
  func received(_ line: ProcessLine?)
}

/// The source of lines: the program that prints them.
protocol ProcessLineSource: AnyObject {
  /// Called when the first reader has come, or the last one is gone.
  func readersChanged()
  /// Called when there is room for more lines.
  func linesWereTaken()
}

/// The lines of a program's outputs, in the order in which they arrive.
///
/// Lines that nobody has taken yet are kept up to a bound; then nothing more is read, so that the
/// program waits as soon as its pipe is full. One line may be longer than the bound. All readers share
/// the lines: each goes to one of them. On the loop's thread.
package final class ProcessLines {
  /// The answer to a request for a line.
  package enum Next {
    /// The next line.
    case line(ProcessLine)
    /// The reader is called when there is one.
    case later
    /// There are no more.
    case end
  }

  /// The number of bytes, with 16 for each line, that may wait for a reader.
  package static let bound = 1 << 18

  private weak var source: (any ProcessLineSource)?
  private var queue = FIFO<ProcessLine>()
  private var byteCount = 0 {
    didSet { if byteCount < oldValue { _ = held?.set(byteCount) } }
  }
  /// Counts the lines that wait, if the loop has a meter.
  private var held: HeldBytes?
  private var waiting: [any ProcessLineReader] = []
  private var hasEnded = false
  /// Set while the bound doesn't count, because nothing else could happen any more.
  private var isLifted = false
  private var readerCount = 0

  init(of source: any ProcessLineSource) {
    self.source = source
  }

  /// Makes the lines of a program that has ended.
  package init(of result: ProcessResult?) {
    hasEnded = true
    guard let result else { return }
    for (bytes, stream) in [
      (result.stdout, ProcessStream.stdout), (result.stderr, ProcessStream.stderr),
    ] {
      var splitter = LineSplitter()
      bytes.withUnsafeBytes { bytes in
        splitter.add(UnsafeRawBufferPointer(bytes)) { add(ProcessLine($0, stream)) }
      }
      let part = splitter.takePart()
      if !part.isEmpty { add(ProcessLine(part, stream, isTerminated: false)) }
    }
  }

  /// Adds a reader. From now on the output of the program becomes lines and isn't collected.
  package func open() {
    readerCount += 1
    if readerCount == 1 { source?.readersChanged() }
  }

  /// Removes a reader. After the last one the output is collected, with the lines that nobody took.
  package func close() {
    readerCount -= 1
    if readerCount == 0 { source?.readersChanged() }
  }

  /// Whether there is a reader.
  var isOpen: Bool { readerCount > 0 }

  /// Takes a line. When there is none yet, `reader` is called later, once.
  package func next(for reader: any ProcessLineReader) -> Next {
    if let line = queue.popFirst() {
      byteCount -= Self.weight(line)
      if byteCount <= Self.bound / 2 {
        isLifted = false
        source?.linesWereTaken()
      }
      return .line(line)
    }
    if hasEnded { return .end }
    waiting.append(reader)
    return .later
  }

  /// Removes a reader that was to be called.
  package func cancel(_ reader: any ProcessLineReader) {
    waiting.removeAll { $0 === reader }
  }

  /// Takes back a line that its reader can't use, for the next reader.
  package func putBack(_ line: ProcessLine) {
    guard waiting.isEmpty else { return waiting.removeFirst().received(line) }
    queue.prepend(line)
    byteCount += Self.weight(line)
  }

  // MARK: For the program

  /// Whether so much waits that nothing more is to be read.
  var isFull: Bool { byteCount > Self.bound && !isLifted }

  /// Whether the end of the program has to wait until these lines were taken.
  var delaysEnd: Bool { isOpen && !queue.isEmpty && !isLifted }

  /// Doesn't wait for the readers until half of the lines were taken.
  func lift() { isLifted = true }

  func add(_ line: ProcessLine) {
    guard waiting.isEmpty else { return waiting.removeFirst().received(line) }
    queue.append(line)
    byteCount += Self.weight(line)
  }

  /// Counts the lines that wait; returns the limit if they exceed it.
  func count(by meter: any MemoryMeter) -> Int? {
    let held = held ?? HeldBytes(meter)
    self.held = held
    return held.set(byteCount)
  }

  /// There will be no more lines.
  func end() {
    hasEnded = true
    let readers = waiting
    waiting = []
    for reader in readers { reader.received(nil) }
  }

  /// Returns the lines that nobody took, and forgets them.
  func takeAll() -> [ProcessLine] {
    defer {
      queue.removeAll()
      byteCount = 0
    }
    return Array(queue.all)
  }

  /// An empty line takes room too.
  private static func weight(_ line: ProcessLine) -> Int { line.text.count + 16 }
}
