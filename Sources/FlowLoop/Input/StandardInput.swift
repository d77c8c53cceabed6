internal import FlowSystem

/// Reads the standard input of the process without blocking a loop.
///
/// It takes from the buffer of the C library's stdin what it needs and no more, so `io.read` continues
/// where it has stopped. Requests are served one after another. On the loop's thread.
package final class StandardInput: LoopJob {
  private unowned let loop: FlowEventLoop
  private var waiting: [InputRead] = []
  private var watch: DescriptorWatch?
  /// Set while the input is watched.
  private var recheck: LoopTimer?
  /// Set for an input that can't be watched because it never makes anyone wait, such as a file.
  private var isFile = false
  private var isEnqueued = false
  private let isTerminal = isatty(STDIN_FILENO) != 0
  /// Bytes that were taken from the stream for the present part, or are left from a cancelled request.
  /// A slice, because its first bytes are removed in constant time.
  private var held: ArraySlice<UInt8> = []
  /// Counts `held` and the parts that wait, if the loop has a meter.
  private var share: HeldBytes?
  /// The number of bytes in `held` that aren't a newline.
  private var scanned = 0
  private var numeral = NumeralScanner()
  /// The bytes that the numeral consists of, with white space before.
  private var numeralBytes: [UInt8] = []
  /// How often the stream is read before other jobs get their turn.
  private static let fills = 16
  /// How often the buffer is checked during a wait, in seconds. A thread that reads by `io.read` may leave
  /// more in the buffer than it uses, and the descriptor isn't readable then.
  private static let recheckInterval = Duration.milliseconds(50)

  init(_ loop: FlowEventLoop) {
    self.loop = loop
  }

  /// Begins a request; returns true if it has ended already, because everything was in the buffer.
  package func start(_ read: InputRead) -> Bool {
    loop.checkThread()
    if waiting.isEmpty, serve(read, fills: 0) { return true }
    waiting.append(read)
    if waiting.count == 1 { wait() }
    return false
  }

  /// Ends a request without reporting it. The bytes that it has taken are for the next one; `io.read`
  /// doesn't see them.
  package func cancel(_ read: InputRead) {
    guard let index = waiting.firstIndex(where: { $0 === read }) else { return }
    if index == 0 {
      held = (read.taken + numeralBytes + held)[...]
      forgetProgress()
    }
    waiting.remove(at: index)
    if waiting.isEmpty { stopWatching() }
  }

  /// Takes back the bytes of a request that has ended and whose outcome can't be used, for the next one.
  package func giveBack(_ read: InputRead) {
    loop.checkThread()
    if read.problem != nil || read.taken.isEmpty { return }
    // A request in progress begins again.
    if let first = waiting.first {
      held = (first.taken + numeralBytes + held)[...]
      first.taken = []
      first.parts = []
    }
    forgetProgress()
    held = (read.taken + held)[...]
    read.taken = []
    if !waiting.isEmpty { enqueue() }
  }

  package func run() {
    isEnqueued = false
    while let read = waiting.first, serve(read, fills: Self.fills) {
      waiting.removeFirst()
      if waiting.isEmpty { stopWatching() }
      read.end()
    }
    // An input that couldn't be watched may be watched for the next request.
    if !waiting.isEmpty, watch == nil { isFile ? enqueue() : wait() }
  }

  // MARK: Waiting

  private func wait() {
    // A question appears before its answer is waited for.
    flowsystem_write(nil, 0, false)
    if isFile { return enqueue() }
    do throws(SystemError) {
      watch = try loop.watch(STDIN_FILENO, self)
      scheduleRecheck()
      // No status line meanwhile: someone may type.
      if isTerminal { useTerminal(true) }
    } catch {
      isFile = error.code == EPERM
      if !isFile { waiting.first?.problem = error }
      enqueue()
    }
  }

  private func scheduleRecheck() {
    recheck = loop.scheduleOutside(after: Self.recheckInterval) { [weak self] in
      guard let self, watch != nil else { return }
      scheduleRecheck()
      run()
    }
  }

  private func stopWatching() {
    guard let watch else { return }
    recheck?.cancel()
    recheck = nil
    watch.end()
    self.watch = nil
    if isTerminal { useTerminal(false) }
  }

  private func useTerminal(_ begins: Bool) {
    flowsystem_lend_terminal(begins)
    flowsystem_read_terminal(begins)
  }

  private func enqueue() {
    if isEnqueued { return }
    isEnqueued = true
    loop.enqueue(self)
  }

  // MARK: Reading

  /// Reads what is available, and refills the buffer at most so many times; returns whether the request
  /// has ended.
  private func serve(_ read: InputRead, fills: Int) -> Bool {
    // Another thread waits for input with io.read: it is first. The next check finds what it leaves.
    guard flowsystem_lock_input() else { return false }
    defer { flowsystem_unlock_input() }
    var fillsLeft = fills
    defer { if read.next == nil { _ = share?.set(held.count) } }
    while let format = read.next {
      if let part = part(format, read, isEnd: false) {
        read.parts.append(part)
        continue
      }
      guard hasRoom(for: read) else {
        read.problem = SystemError("not enough memory", code: ENOMEM)
        read.taken = []
        read.parts = []
        held = []
        forgetProgress()
        return true
      }
      guard fillsLeft > 0 else { return false }
      fillsLeft -= 1
      switch flowsystem_fill_input() {
      case Int32(FLOWSYSTEM_INPUT_READY): break
      case Int32(FLOWSYSTEM_INPUT_LATER): return false
      case Int32(FLOWSYSTEM_INPUT_END):
        read.parts.append(part(format, read, isEnd: true) ?? .end)
        forgetProgress()
      case let number:
        read.problem = SystemError(code: number)
        held = (read.taken + numeralBytes + held)[...]
        forgetProgress()
      }
    }
    return true
  }

  /// Whether what was read for a request is within the limit of memory.
  private func hasRoom(for read: InputRead) -> Bool {
    guard let meter = loop.memoryMeter else { return true }
    let share = share ?? HeldBytes(meter)
    self.share = share
    return share.set(held.count + read.taken.count) == nil
  }

  private func forgetProgress() {
    scanned = 0
    numeral = NumeralScanner()
    numeralBytes = []
  }

  /// Takes one part from the buffers; nil if it isn't complete yet.
  private func part(_ format: InputFormat, _ read: InputRead, isEnd: Bool) -> InputRead.Part? {
    switch format {
    case .line(let keepsNewline): line(keepsNewline, read, isEnd)
    case .number: number(read, isEnd)
    case .all:
      {
        take(Int.max)
        return isEnd ? .bytes(release(held.count, read)) : nil
      }()
    case .bytes(0): held.isEmpty && available == 0 ? nil : .bytes("")
    case .bytes(let count):
      {
        take(count - held.count)
        if held.count >= count { return .bytes(release(count, read)) }
        return isEnd && !held.isEmpty ? .bytes(release(held.count, read)) : nil
      }()
    }
  }

  private func line(_ keepsNewline: Bool, _ read: InputRead, _ isEnd: Bool) -> InputRead.Part? {
    var end = held.dropFirst(scanned).firstIndex(of: UInt8(ascii: "\n")).map {
      $0 - held.startIndex
    }
    if end == nil {
      let count = held.count
      let found = withBuffer { buffer in
        buffer.baseAddress.flatMap { base in
          memchr(base, 10, buffer.count).map { UnsafeRawPointer($0) - base }
        }
      }
      take(found.map { $0 + 1 } ?? Int.max)
      end = found.map { count + $0 }
    }
    guard let end else {
      scanned = held.count
      return isEnd && !held.isEmpty ? .bytes(release(held.count, read)) : nil
    }
    let line = release(end + 1, read)
    return .bytes(keepsNewline ? line : ByteString(line.bytes.dropLast()))
  }

  private func number(_ read: InputRead, _ isEnd: Bool) -> InputRead.Part? {
    while true {
      guard let byte = held.first ?? withBuffer(\.first) else {
        guard isEnd else { return nil }
        break
      }
      let isSpace = byte == 32 || (9...13).contains(byte)
      // The first byte that isn't part of the numeral stays where it is.
      guard numeral.text.isEmpty && isSpace || numeral.add(byte) else { break }
      numeralBytes.append(byte)
      if held.isEmpty { flowsystem_take_input(1) } else { held.removeFirst() }
    }
    read.taken += numeralBytes
    let found = numeral
    forgetProgress()
    return found.isNumber ? .number(ByteString(found.text)) : .end
  }

  // MARK: The buffers

  private func withBuffer<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    var count = 0
    let bytes = flowsystem_input_bytes(&count)
    return body(UnsafeRawBufferPointer(start: bytes, count: count))
  }

  private var available: Int { withBuffer(\.count) }

  /// Moves bytes of the stream's buffer to `held`, at most so many.
  private func take(_ limit: Int) {
    guard limit > 0 else { return }
    let count = withBuffer { buffer in
      held.append(contentsOf: buffer.prefix(limit))
      return min(buffer.count, limit)
    }
    flowsystem_take_input(count)
  }

  /// Removes the first bytes of `held`.
  private func release(_ count: Int, _ read: InputRead) -> ByteString {
    let bytes = Array(held.prefix(count))
    if count == held.count { held = [] } else { held.removeFirst(count) }
    scanned = 0
    // Without a copy, if it is the only part.
    if read.taken.isEmpty { read.taken = bytes } else { read.taken += bytes }
    return ByteString(bytes)
  }
}

extension FlowEventLoop {
  /// The standard input of the process, read without blocking this loop. Only one loop of a process may
  /// read it at a time.
  package var standardInput: StandardInput {
    checkThread()
    if let input = openInput as? StandardInput { return input }
    let made = StandardInput(self)
    openInput = made
    return made
  }
}

/// A part of the standard input to read; the parts are those of Lua's `io.read`.
package enum InputFormat: Sendable {
  /// A line, with its newline or without.
  case line(keepsNewline: Bool)
  /// The text of a number, after white space.
  case number
  /// Everything up to the end.
  case all
  /// At most so many bytes; 0 asks for the end.
  case bytes(Int)
}

/// A request to read the standard input.
package final class InputRead {
  /// The outcome of a part.
  package enum Part: Sendable {
    /// A line, or a number of bytes.
    case bytes(ByteString)
    /// The text of a number.
    case number(ByteString)
    /// There was nothing left, or no number.
    case end
  }

  /// The parts to read.
  let formats: [InputFormat]
  /// The outcome of each part so far; the first one without a value is the last.
  package internal(set) var parts: [Part] = []
  /// The error that ended the request, if any.
  package internal(set) var problem: SystemError?
  /// The bytes of `parts`, which go back if the request is cancelled or its outcome isn't used.
  var taken: [UInt8] = []
  private(set) var completion: (() -> Void)?

  /// Makes a request.
  ///
  /// - Parameters:
  ///   - formats: The parts to read.
  ///   - completion: Called once at the end, on the loop's thread, unless `StandardInput.start` has
  ///     returned true.
  package init(_ formats: [InputFormat], completion: @escaping () -> Void) {
    self.formats = formats
    self.completion = completion
  }

  /// The next part to read; nil when all is done.
  var next: InputFormat? {
    if case .end? = parts.last { return nil }
    return problem == nil && parts.count < formats.count ? formats[parts.count] : nil
  }

  func end() {
    let report = completion
    completion = nil
    report?()
  }
}
