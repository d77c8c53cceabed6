internal import CFlowSystem
import Synchronization

/// Writes the output of a program to the output of this process too, line by line. While several
/// programs do that, each line has the name of its program before it.
final class ProcessTee {
  private let prefix: ByteString
  private var parts = (stdout: LineSplitter(), stderr: LineSplitter())

  /// The programs of this process that do that, on any loop; and whether they were several since
  /// there was none: the last one then keeps its name.
  private static let count = Atomic<Int>(0)
  private static let areSeveral = Atomic<Bool>(false)

  init(_ label: ByteString) {
    prefix = "[\(label)] "
    if Self.count.add(1, ordering: .relaxed).newValue > 1 {
      Self.areSeveral.store(true, ordering: .relaxed)
    }
  }

  deinit {
    if Self.count.subtract(1, ordering: .relaxed).newValue == 0 {
      Self.areSeveral.store(false, ordering: .relaxed)
    }
  }

  /// Writes the lines that `piece` completes.
  func add(_ piece: UnsafeRawBufferPointer, _ stream: ProcessStream) {
    var text: [UInt8] = []
    let prefix = Self.areSeveral.load(ordering: .relaxed) ? prefix.bytes : []
    let addLine = { (line: ByteString) in
      text += prefix
      text += line.bytes
      text.append(UInt8(ascii: "\n"))
    }
    switch stream {
    case .stdout: parts.stdout.add(piece, addLine)
    case .stderr: parts.stderr.add(piece, addLine)
    }
    guard !text.isEmpty else { return }
    // The lines of one piece together: other output isn't in between, and there is one call.
    text.withUnsafeBytes { flowsystem_write($0.baseAddress, $0.count, stream == .stderr) }
    flowsystem_note_output(true)
  }

  /// Writes the unfinished line of a stream, with a newline.
  func end(_ stream: ProcessStream) {
    let part = stream == .stdout ? parts.stdout.takePart() : parts.stderr.takePart()
    guard !part.isEmpty else { return }
    let newline: [UInt8] = [UInt8(ascii: "\n")]
    (part.bytes + newline).withUnsafeBytes { add($0, stream) }
  }
}
