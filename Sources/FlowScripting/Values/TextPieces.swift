internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A text that a script iterates over: all of it is there, or it is read from a file piece by piece, on
/// helper threads.
///
/// A script gives it as a string or as `{ path = … }`. A file may never end a line or row: it has a limit, and
/// what was read counts into the memory limit.
final class TextPieces {
  /// The file; nil for a text.
  let path: ByteString?
  /// The bytes that have been read and not been used: from `start` on.
  private(set) var bytes: [UInt8]
  private(set) var start = 0
  /// Up to where there is no line feed.
  private var searched = 0
  /// How many bytes came before `bytes`.
  private var passed = 0
  private(set) var line = 0
  private var reader: FileReader?
  private var isReading = false
  /// The most bytes of a line or row.
  var maxBytes = 64 << 20
  /// Counts the bytes that were read, if the loop has a meter.
  private let held: HeldBytes?

  /// How much is read at a time: enough for a disk, little for a script that stops early.
  private static let pieceSize = 256 << 10

  /// Reads an argument; `function` is the name in messages.
  init(_ arguments: Arguments, _ index: Int, function: String) throws {
    if arguments.call.kind(index) == .table {
      let options = try arguments.options(index, known: ["path"])
      guard let path = try options.path("path") else {
        throw options.wrong("path", expected: "string")
      }
      try arguments.host.checkAllowed(.files, arguments.call, function)
      self.path = path
      held = arguments.host.loop.memoryMeter.map { HeldBytes($0) }
      bytes = []
      reader = FileReader(path)
      return
    }
    guard let text = arguments.call.bytes(index) else {
      throw arguments.wrong(index, expected: "string or { path = string }")
    }
    path = nil
    held = nil
    bytes = text.bytes
  }

  /// Whether more bytes may come.
  var isIncomplete: Bool { reader != nil }

  /// Ends it: the file is closed as soon as nobody reads it.
  func close() {
    reader = nil
    bytes = []
    start = 0
    searched = 0
    _ = held?.set(0)
  }

  /// The result of `nextLine`.
  enum Line {
    /// A line without its line feed, its number from 1, and how many bytes are before it.
    case line(ByteString, number: Int, offset: Int)
    /// More has to be read first.
    case incomplete
    case end
  }

  func nextLine() -> Line {
    var end = max(searched, start)
    while end < bytes.count, bytes[end] != 0x0A { end += 1 }
    searched = end
    if end == bytes.count {
      if isIncomplete { return .incomplete }
      if start == end { return .end }
    }
    let text = ByteString(bytes[start..<end])
    let offset = passed + start
    start = min(end + 1, bytes.count)
    line += 1
    return .line(text, number: line, offset: offset)
  }

  /// Takes bytes that were used.
  func use(_ count: Int) { start = min(start + count, bytes.count) }

  /// Takes all bytes that are there.
  func useAll() { start = bytes.count }

  /// The bytes that haven't been used.
  var rest: ArraySlice<UInt8> { bytes[start...] }

  /// A row among the next bytes, without line ends before and after it.
  func rowBytes(_ count: Int) -> ArraySlice<UInt8> {
    let isEnd = { (byte: UInt8) in byte == 0x0A || byte == 0x0D }
    var row = bytes[start...].prefix(count).drop(while: isEnd)
    while let last = row.last, isEnd(last) { row.removeLast() }
    return row
  }

  /// The problem of a line or row with so many bytes; nil if they aren't too many.
  func excess(_ count: Int) -> ByteString? {
    count > maxBytes ? "more than \(maxBytes) bytes (max_bytes)" : nil
  }

  /// Reads the next piece of the file while the script waits, and then calls `answer`.
  func readMore(
    _ host: ScriptHost, _ call: LuaCall, answer: @escaping (LuaCall) throws -> LuaAnswer
  ) throws -> LuaAnswer {
    guard let reader else { return try answer(call) }
    if isReading {
      throw host.usage(call, "bad use of an iterator (another coroutine is waiting in it)")
    }
    // A line of any length is looked at only a few times.
    let size = max(Self.pieceSize, bytes.count - start)
    if held?.set(bytes.count + size) != nil {
      close()
      throw LuaError(.memory, LuaVM.memoryError)
    }
    isReading = true
    return try host.offload(call) { cancellation throws(SystemError) in
      try reader.read(size, cancellation)
    } failed: { [self] in
      // A piece may be lost, so nothing can follow.
      isReading = false
      close()
    } answer: { [self] call, piece in
      isReading = false
      // Closed meanwhile.
      guard self.reader != nil else { return try answer(call) }
      if piece.isEmpty { self.reader = nil }
      passed += start
      searched -= min(start, searched)
      bytes.removeFirst(start)
      bytes += piece.bytes
      start = 0
      return try answer(call)
    }
  }
}

/// How many bytes scripts get of a line or row that has too many.
private let excessTextSize = 1000

/// An iterator of scripts over a text or a file, such as `csv.rows` returns: a `for` loop calls it, and closes
/// it at its end.
protocol TextIterator: AnyObject {
  /// The next results, the first of them nil at the end. May wait.
  func next(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer

  /// Releases the text or file.
  func close()

  /// The script's function for lines or rows with a problem, which are left out then.
  var onError: LuaReference? { get }
}

extension TextIterator {
  /// Reports the problem of a line or row, whose text this is, to the script's function; throws it if there is none.
  func report(_ problem: any Error, text: ByteString, _ host: ScriptHost) throws {
    guard let onError, case .reference(let table)? = (problem as? LuaError)?.value else {
      throw problem
    }
    try host.vm.set(.string(text), "text", in: table)
    _ = try host.vm.call(onError, [.reference(table)])
  }

  /// Reports a line or row that has too many bytes, with the beginning of its text, to the script's function. Without one
  /// it ends, and throws the problem.
  func reportExcess(_ problem: any Error, text: ArraySlice<UInt8>, _ host: ScriptHost) throws {
    if onError == nil { close() }
    try report(problem, text: ByteString(text.prefix(excessTextSize)), host)
  }

  /// Makes the type of such iterators; `name` is what scripts see of it, as `csv.rows`.
  static func defineType(_ name: String, _ host: ScriptHost) throws -> LuaObjectType<Self> {
    try host.vm.defineObjectType(
      name, of: Self.self, methods: [:],
      metamethods: { type in
        host.bind([
          "__call": BoundMethod { host, call in
            guard let iterator = call.object(1, type) else {
              throw host.usage(
                call, "bad argument #1 to '__call' (\(name) expected, got \(call.typeName(1)))")
            }
            return try iterator.next(host, call)
          },
          "__close": BoundMethod { _, call in
            call.object(1, type)?.close()
            return call.answer()
          },
        ])
      })
  }
}
