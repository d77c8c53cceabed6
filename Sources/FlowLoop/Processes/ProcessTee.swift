internal import FlowSystem
import Synchronization

/// Writes the output of a program to the output of this process or another destination, line by line, and a very
/// long line in pieces. While several programs do that, each line has the name of its program before it.
final class ProcessTee {
  /// The name before each line while there are several; nil for none.
  private let prefix: ByteString?
  /// Gets the lines; nil for the output of this process.
  private let destination: (@Sendable (ByteString) -> Void)?
  private var outputs = (stdout: Output(), stderr: Output())

  private struct Output {
    var splitter = LineSplitter()
    /// Whether a part of the unfinished line was written already.
    var isWithinLine = false
  }

  /// The length of an unfinished line at which it is written, in bytes.
  private static let partLimit = 1 << 16

  /// The programs of this process that do that, on any loop; and whether they were several since
  /// there was none: the last one then keeps its name.
  private static let count = Atomic<Int>(0)
  private static let areSeveral = Atomic<Bool>(false)

  init(_ label: ByteString?, to destination: (@Sendable (ByteString) -> Void)?) {
    prefix = label.map { "[\($0)] " }
    self.destination = destination
    if label != nil, Self.count.add(1, ordering: .relaxed).newValue > 1 {
      Self.areSeveral.store(true, ordering: .relaxed)
    }
  }

  deinit {
    if prefix != nil, Self.count.subtract(1, ordering: .relaxed).newValue == 0 {
      Self.areSeveral.store(false, ordering: .relaxed)
    }
  }

  /// Writes the lines that `piece` completes.
  func add(_ piece: UnsafeRawBufferPointer, _ stream: ProcessStream) {
    switch stream {
    case .stdout: add(piece, stream, &outputs.stdout)
    case .stderr: add(piece, stream, &outputs.stderr)
    }
  }

  private func add(
    _ piece: UnsafeRawBufferPointer, _ stream: ProcessStream, _ output: inout Output
  ) {
    var text: [UInt8] = []
    let prefix = Self.areSeveral.load(ordering: .relaxed) ? prefix?.bytes ?? [] : []
    var isWithinLine = output.isWithinLine
    output.splitter.add(piece) { line in
      if !isWithinLine { text += prefix }
      isWithinLine = false
      Self.append(line.bytes, to: &text, prefix)
      text.append(UInt8(ascii: "\n"))
    }
    if output.splitter.partCount >= Self.partLimit {
      if !isWithinLine { text += prefix }
      isWithinLine = true
      Self.append(output.splitter.takePart().bytes, to: &text, prefix)
    }
    output.isWithinLine = isWithinLine
    guard !text.isEmpty else { return }
    if let destination { return destination(ByteString(text)) }
    // The lines of one piece together: other output isn't in between, and there is one call.
    text.withUnsafeBytes { flowsystem_write($0.baseAddress, $0.count, stream == .stderr) }
    flowsystem_note_output(stream == .stderr, text.last == UInt8(ascii: "\n"))
  }

  /// Appends a line. Text that overwrites it after a carriage return has the name before it, too.
  private static func append(_ line: [UInt8], to text: inout [UInt8], _ prefix: [UInt8]) {
    let returned = UInt8(ascii: "\r")
    guard !prefix.isEmpty, line.dropLast().contains(returned) else { return text += line }
    for (index, byte) in line.enumerated() {
      text.append(byte)
      if byte == returned, index < line.count - 1 { text += prefix }
    }
  }

  /// Ends the unfinished line of a stream with a newline.
  func end(_ stream: ProcessStream) {
    let output = stream == .stdout ? outputs.stdout : outputs.stderr
    guard output.isWithinLine || output.splitter.partCount > 0 else { return }
    let newline: [UInt8] = [UInt8(ascii: "\n")]
    newline.withUnsafeBytes { add($0, stream) }
  }
}
