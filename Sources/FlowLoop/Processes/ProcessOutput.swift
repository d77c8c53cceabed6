internal import FlowSystem

/// One output of a program, read as it arrives: collected, split into lines for readers, and copied to
/// the output of this process.
final class ProcessOutput: LoopJob {
  private unowned let child: ChildProcess
  let stream: ProcessStream
  private let tee: ProcessTee?
  private var descriptor: Int32
  private var watch: DescriptorWatch?
  private var bytes: [UInt8] = []
  /// Counts `bytes` and the unfinished line, if the loop has a meter.
  private var held: HeldBytes?
  /// Whether the output didn't fit into memory, so that only its end is kept.
  private var isDropped = false
  private var splitter = LineSplitter()
  /// The end of the output that isn't collected, for the message of an error.
  private var tail: [UInt8] = []
  private static let tailLength = 4096
  /// How much is read at a time, and how often, before other descriptors get their turn.
  private static let chunk = 1 << 16
  private static let reads = 16

  init(_ descriptor: Int32, _ stream: ProcessStream, _ child: ChildProcess, _ tee: ProcessTee?) {
    self.descriptor = descriptor
    self.stream = stream
    self.child = child
    self.tee = tee
  }

  var isAtEnd: Bool { descriptor < 0 }

  /// Begins or continues to read.
  func watch(on loop: FlowEventLoop) throws(SystemError) {
    if !isAtEnd, watch == nil { watch = try loop.watch(descriptor, self) }
  }

  /// Stops reading for a time.
  func pause() {
    watch?.end()
    watch = nil
  }

  func run() {
    // A program that is being stopped isn't paused any more.
    read(whole: child.cancellation != nil)
    if isAtEnd { child.advance() } else { child.pauseIfFull() }
  }

  /// Reads the available output: all of it, or as much as readers of lines have room for.
  func read(whole: Bool) {
    withUnsafeTemporaryAllocation(byteCount: Self.chunk, alignment: 16) { buffer in
      for _ in 0..<Self.reads where !isAtEnd && (whole || !child.isHeldBack) {
        let count = FlowSystem.read(descriptor, buffer.baseAddress, buffer.count)
        if count > 0 {
          take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        } else if count == 0 || errno != EAGAIN && errno != EINTR {
          end()
        } else {
          return
        }
      }
    }
  }

  /// Adds the whole output of a program without a descriptor for it, and ends it.
  func add(_ bytes: ByteString) {
    bytes.bytes.withUnsafeBytes { take($0) }
    tee?.end(stream)
    let part = child.openLines == nil ? "" : splitter.takePart()
    if !part.isEmpty { child.openLines?.add(ProcessLine(part, stream, isTerminated: false)) }
  }

  private func take(_ piece: UnsafeRawBufferPointer) {
    tee?.add(piece, stream)
    if isDropped {
      keepTail(piece)
    } else if let lines = child.openLines {
      keepTail(piece)
      splitter.add(piece) { [stream] in lines.add(ProcessLine($0, stream)) }
      checkMemory()
    } else if child.request.capturesOutput {
      bytes.append(contentsOf: piece)
      checkMemory()
    } else {
      keepTail(piece)
    }
  }

  /// Stops a program whose output exceeds the limit.
  private func checkMemory() {
    if let limit = count() { child.stopForMemory(limit: limit) }
  }

  /// Counts the bytes that are held here, and the lines that wait; returns the limit if they exceed it.
  private func count() -> Int? {
    // Code that executes a program in place of the system has its output in memory already.
    guard child.replacement == nil, let meter = child.memoryMeter else { return nil }
    let held = held ?? HeldBytes(meter)
    self.held = held
    let limit = held.set(bytes.count + splitter.partCount)
    return child.openLines?.count(by: meter) ?? limit
  }

  /// Forgets what was collected, but its end, and collects no more.
  func drop() {
    bytes.withUnsafeBytes { keepTail($0) }
    bytes = []
    splitter = LineSplitter()
    held = nil
    isDropped = true
  }

  private func keepTail(_ piece: UnsafeRawBufferPointer) {
    tail.append(contentsOf: piece.suffix(Self.tailLength))
    if tail.count > 2 * Self.tailLength { tail.removeFirst(tail.count - Self.tailLength) }
  }

  /// Makes lines of the output that was collected so far.
  func split(into lines: ProcessLines) {
    let collected = bytes
    bytes = []
    collected.withUnsafeBytes { piece in
      keepTail(piece)
      splitter.add(piece) { [stream] in lines.add(ProcessLine($0, stream)) }
    }
    checkMemory()
  }

  /// Collects lines again that nobody took, and what follows.
  func collect(_ lines: [ProcessLine]) {
    for line in lines where line.stream == stream {
      bytes += line.text.bytes
      if line.isTerminated { bytes.append(UInt8(ascii: "\n")) }
    }
    bytes += splitter.takePart().bytes
    // They were the last ones, and aren't in both.
    tail.removeLast(min(tail.count, bytes.count))
    checkMemory()
  }

  /// Stops reading; an unfinished line counts as a line.
  func end() {
    pause()
    guard descriptor >= 0 else { return }
    close(descriptor)
    descriptor = -1
    tee?.end(stream)
    let part = splitter.takePart()
    guard !part.isEmpty else { return }
    child.openLines?.add(ProcessLine(part, stream, isTerminated: false))
    // There is nothing left to stop.
    _ = count()
  }

  /// Returns what was collected, with its count, and forgets it.
  func takeBytes() -> (bytes: ByteString, held: HeldBytes?) {
    defer {
      bytes = []
      held = nil
    }
    return (ByteString(bytes), held)
  }

  /// The end of the output, whether it was collected or not.
  var ending: ByteString {
    if bytes.count >= Self.tailLength { return ByteString(bytes.suffix(Self.tailLength)) }
    return ByteString(tail + bytes)
  }
}
