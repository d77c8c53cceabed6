internal import CCurl
internal import FlowEngine
@_spi(Scripting) internal import FlowLoop
internal import FlowSystem

/// The transfers of one loop, and their connections.
///
/// The library is called only here and in transfers, never from within one of its callbacks.
final class HTTPMulti: LoopExtension, LoopJob {
  /// Holds its extensions until it is shut down.
  unowned let loop: FlowEventLoop
  /// The variables that name proxies.
  let environment = HTTPEnvironment()
  /// The code that responds to requests instead of servers; here, as each request asks for it.
  var replacement: (any HTTPReplacement)? { replacementSlot.replacement }
  private let replacementSlot: HTTPReplacementSlot

  // Unchecked exclusivity: see HotPath.swift.

  @exclusivity(unchecked) private var handle: OpaquePointer?
  /// Those that the library has; each knows its index.
  @exclusivity(unchecked) private var active: [HTTPTransfer] = []
  /// Transfers that wait for a place, in order.
  @exclusivity(unchecked) private var waiting = FIFO<HTTPTransfer>()
  /// Transfers that wait for the limits of their client.
  @exclusivity(unchecked) private var waitingForClient: [ObjectIdentifier: HTTPTransfer] = [:]
  /// The most transfers at a time: each may need some descriptors.
  @exclusivity(unchecked) private var limit: Int
  @exclusivity(unchecked) private var isStarting = false
  @exclusivity(unchecked) private var isClosed = false
  /// Whether the library is executing.
  @exclusivity(unchecked) private var isInside = false
  @exclusivity(unchecked) private var insideSince: Int64 = 0
  @exclusivity(unchecked) private var touched: [HTTPTransfer] = []
  @exclusivity(unchecked) private var sockets: [Int32: HTTPSocket] = [:]
  @exclusivity(unchecked) private var timer: LoopTimer?
  /// When it fires, and when the library wants to be called: nanoseconds of the system's clock. The timer may
  /// be early, as the library changes its mind twice for each request.
  @exclusivity(unchecked) private var timerTime = Int64.max
  @exclusivity(unchecked) private var wantedTime = Int64.max
  /// Whether the library wants to be called as soon as possible, and whether the loop knows that.
  @exclusivity(unchecked) private var isTimeDue = false
  @exclusivity(unchecked) private var isQueued = false
  /// Ends transfers in which no byte moves: one timer for all, as most end long before their limits.
  @exclusivity(unchecked) private var movementTimer: LoopTimer?
  /// When it does so: nanoseconds of the system's clock.
  @exclusivity(unchecked) private var movementTime = Int64.max
  /// How many transfers something is to come for; the others are paused.
  @exclusivity(unchecked) private var holders = 0
  /// Whether the library wants to be called once a transfer continues.
  @exclusivity(unchecked) private var isTimePostponed = false

  /// The transfers of a loop; made for the first one.
  ///
  /// - Throws: The reason why there is no HTTP in this process.
  static func of(_ loop: FlowEventLoop) throws(FlowError) -> HTTPMulti {
    if let multi = existing(of: loop) { return multi }
    if let problem = ccurl_load() { throw FlowError(.error, ByteString(cString: problem)) }
    guard !loop.isShutDown else {
      throw .usage("a request was started on an event loop that was shut down")
    }
    let made = HTTPMulti(loop)
    guard made.handle != nil else { throw HTTPTransfer.noMemory }
    loop.extensions[ObjectIdentifier(HTTPMulti.self)] = made
    return made
  }

  /// The transfers of a loop that has had some.
  static func existing(of loop: FlowEventLoop) -> HTTPMulti? {
    loop.extensions[ObjectIdentifier(HTTPMulti.self)] as? HTTPMulti
  }

  private init(_ loop: FlowEventLoop) {
    self.loop = loop
    limit = Self.room
    replacementSlot = loop.httpReplacementSlot
    handle = ccurl_multi_make(
      Self.events, Unmanaged.passUnretained(self).toOpaque(), limit, limit)
  }

  deinit { loopIsShutDown() }

  /// How many transfers the descriptors of the process are enough for: a connection, and two for the
  /// thread that looks up its name; some are left for files of the script.
  private static var room: Int {
    var limits = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0 else { return 64 }
    let all = Int(min(limits.rlim_cur, 1024))
    let used = (0..<all).count { fcntl(Int32($0), F_GETFD) >= 0 }
    return min(256, max(2, (all - used - 8) / 4))
  }

  func loopIsShutDown() {
    // The loop may be going: nothing asks it for anything any more.
    isClosed = true
    let all = transfers
    waiting.removeAll()
    waitingForClient = [:]
    touched = []
    for transfer in all { transfer.abandon() }
    active = []
    stopTimer()
    stopMovementTimer()
    if let handle { ccurl_multi_free(handle) }
    handle = nil
    for socket in sockets.values { socket.watch?.end() }
    sockets = [:]
  }

  /// Those that have begun, and those that wait.
  var transfers: [HTTPTransfer] {
    active + waiting.all + waitingForClient.values
  }

  // MARK: Transfers

  /// Takes note of a transfer that its client will start later.
  func noteWaiting(_ transfer: HTTPTransfer) {
    transfer.hold()
    waitingForClient[ObjectIdentifier(transfer)] = transfer
  }

  /// Begins a transfer, or lets it wait for a place.
  func start(_ transfer: HTTPTransfer) {
    forget(transfer)
    transfer.hold()
    waiting.append(transfer)
    startWaiting()
  }

  /// Begins a transfer that needs no place, because code responds to it instead of a server.
  func startReplaced(_ transfer: HTTPTransfer) {
    waitingForClient[ObjectIdentifier(transfer)] = transfer
    transfer.begin()
  }

  /// Forgets a transfer that doesn't wait for its client any more, or wasn't the library's.
  func forget(_ transfer: HTTPTransfer) {
    if !waitingForClient.isEmpty { waitingForClient[ObjectIdentifier(transfer)] = nil }
  }

  /// Begins the next request of a transfer that has a place.
  func beginAgain(_ transfer: HTTPTransfer) { transfer.begin() }

  /// Starts transfers, first come first served, while there is room.
  func startWaiting() {
    // A start that fails is reported at once, which may lead to another call.
    guard !isStarting else { return }
    isStarting = true
    defer { isStarting = false }
    while active.count < limit, let transfer = waiting.popFirst() {
      if !transfer.hasEnded { transfer.begin() }
    }
  }

  /// Makes the library's side of a transfer.
  func makeEasy(
    _ events: UnsafePointer<ccurl_transfer_events>, _ context: UnsafeMutableRawPointer
  ) -> OpaquePointer? {
    handle.flatMap { ccurl_easy_make($0, events, context) }
  }

  /// Gives a transfer to the library.
  func add(_ transfer: HTTPTransfer, _ easy: OpaquePointer) -> Bool {
    guard let handle, ccurl_multi_add(handle, easy) else { return false }
    transfer.activeIndex = active.count
    active.append(transfer)
    return true
  }

  /// Takes a transfer from the library.
  func remove(_ transfer: HTTPTransfer, _ easy: OpaquePointer) {
    guard let handle, let index = transfer.activeIndex else { return }
    transfer.activeIndex = nil
    if let last = active.popLast(), last !== transfer {
      active[index] = last
      last.activeIndex = index
    }
    ccurl_multi_remove(handle, easy)
  }

  /// Whether another transfer will return descriptors.
  var canWaitForDescriptor: Bool { !active.isEmpty }

  /// Lets a transfer wait for the end of another one, as there are too many for the descriptors.
  func waitForDescriptor(_ transfer: HTTPTransfer) {
    limit = max(1, min(limit, active.count))
    waiting.prepend(transfer)
  }

  /// Notes that a transfer has something to deliver after the library has returned.
  func touch(_ transfer: HTTPTransfer) {
    // Outside, which `remove` may be, the library has nothing new, and nobody would take it from the list.
    guard isInside else { return }
    // Mostly the same again.
    if touched.last !== transfer { touched.append(transfer) }
  }

  // MARK: The library

  /// When the library was called, if it is executing, else the present time.
  var now: Int64 { isInside ? insideSince : HTTPTransfer.now }

  /// Calls the library, then handles what has happened.
  func perform(_ body: () -> Void) {
    insideSince = HTTPTransfer.now
    isInside = true
    body()
    isInside = false
    while !touched.isEmpty {
      let noted = touched
      touched = []
      for transfer in noted { transfer.deliver() }
    }
    var code = CURLE_OK
    while let handle, let context = ccurl_multi_next(handle, &code) {
      let transfer = HTTPTransfer.from(context)
      if let easy = transfer.easy { remove(transfer, easy) }
      transfer.ended(code)
    }
    startWaiting()
  }

  fileprivate func ready(_ socket: HTTPSocket) {
    guard let handle, let watch = socket.watch, !isInside else { return }
    guard watch.holdsLoop else {
      // The other side has closed a kept connection: the library notices that when it needs one.
      return endWatch(of: socket.descriptor)
    }
    perform {
      ccurl_multi_ready(handle, socket.descriptor, watch.wasReadable, watch.wasWritable)
    }
  }

  /// Calls the library, which wants that as soon as possible.
  func run() {
    isQueued = false
    if isTimeDue { timeHasCome() }
  }

  private func timeHasCome() {
    wantedTime = .max
    isTimeDue = false
    guard let handle, !isInside else { return }
    perform { ccurl_multi_time(handle) }
  }

  // Safe: nothing changes them.
  nonisolated(unsafe) private static let events: UnsafePointer<ccurl_loop_events> = {
    let events = UnsafeMutablePointer<ccurl_loop_events>.allocate(capacity: 1)
    events.initialize(
      to: ccurl_loop_events(
        watch: { context, descriptor, reading, writing in
          HTTPMulti.lend(context) { $0.watch(descriptor, reading: reading, writing: writing) }
        },
        wake: { context, milliseconds in HTTPMulti.lend(context) { $0.wake(milliseconds) } },
        closing: { context, descriptor in HTTPMulti.lend(context) { $0.endWatch(of: descriptor) }
        }))
    return UnsafePointer(events)
  }()

  /// Lends a callback the object, which isn't retained meanwhile: that would cost as much as most callbacks.
  @inline(__always)
  private static func lend(_ context: UnsafeMutableRawPointer?, _ body: (HTTPMulti) -> Void) {
    guard let context else { misuse("libcurl has lost the context of a loop") }
    // Safe: it ends the library's side before its own end.
    Unmanaged<HTTPMulti>.fromOpaque(context)._withUnsafeGuaranteedRef(body)
  }

  private func watch(_ descriptor: Int32, reading: Bool, writing: Bool) {
    guard reading || writing else {
      // The next request on a kept connection would watch it again, which costs two calls of the system.
      if let socket = sockets[descriptor], socket.isConnected {
        socket.watch?.holdsLoop = false
      } else {
        endWatch(of: descriptor)
      }
      return
    }
    if let socket = sockets[descriptor], socket.watch != nil {
      socket.change(reading: reading, writing: writing)
      return
    }
    guard !isClosed else { return }
    let socket = HTTPSocket(descriptor, self, reading: reading, writing: writing)
    // One that can't be watched ends with its time limits.
    socket.watch = try? loop.watch(descriptor, reading: reading, writing: writing, socket)
    sockets[descriptor] = socket
  }

  private func endWatch(of descriptor: Int32) {
    sockets.removeValue(forKey: descriptor)?.watch?.end()
  }

  /// A transfer begins, or continues.
  func beginHolding() {
    holders += 1
    guard holders == 1, isTimePostponed else { return }
    isTimePostponed = false
    wake(0)
  }

  /// A transfer has ended, or pauses: timers for transfers that nobody reads would keep a script.
  func endHolding() {
    holders -= 1
    guard holders == 0 else { return }
    stopMovementTimer()
    isTimePostponed = wantedTime != .max || isTimeDue
    stopTimer()
  }

  /// Has the movement of all transfers checked at a time, if not before.
  func watchMovement(until time: Int64) {
    guard time < movementTime, !isClosed else { return }
    movementTimer?.cancel()
    movementTime = time
    let left = Duration.nanoseconds(time - HTTPTransfer.now)
    movementTimer = loop.scheduleOutside(after: left) { [unowned self] in checkMovement() }
  }

  private func checkMovement() {
    stopMovementTimer()
    for transfer in active {
      if let time = transfer.checkMovement() { watchMovement(until: time) }
    }
  }

  private func stopMovementTimer() {
    movementTimer?.cancel()
    movementTimer = nil
    movementTime = .max
  }

  private func wake(_ milliseconds: Int) {
    if holders == 0 {
      stopTimer()
      isTimePostponed = milliseconds >= 0
      return
    }
    guard milliseconds >= 0, !isClosed else { return stopTimer() }
    isTimeDue = milliseconds == 0
    if isTimeDue {
      // Each transfer begins so: a timer for it would cost more.
      wantedTime = .max
      if !isQueued { loop.enqueue(self) }
      isQueued = true
      return
    }
    wantedTime = HTTPTransfer.now + Int64(milliseconds) * 1_000_000
    guard timer == nil || wantedTime < timerTime else { return }
    timer?.cancel()
    armTimer(after: .milliseconds(milliseconds))
  }

  private func armTimer(after time: Duration) {
    timerTime = wantedTime
    // Not weak, as each retain of an object that is referred to weakly costs several times as much. Safe: the
    // timers are cancelled before its end.
    timer = loop.scheduleOutside(after: time) { [unowned self] in timerFired() }
  }

  private func timerFired() {
    timer = nil
    guard wantedTime != .max else { return }
    let left = wantedTime - HTTPTransfer.now
    if left > 0 { armTimer(after: .nanoseconds(left)) } else { timeHasCome() }
  }

  private func stopTimer() {
    timer?.cancel()
    timer = nil
    wantedTime = .max
    isTimeDue = false
  }
}

/// A socket of the library that the loop watches; not for the loop's own sake while its connection is kept for
/// the next request.
private final class HTTPSocket: LoopJob {
  let descriptor: Int32
  private unowned let multi: HTTPMulti
  var watch: DescriptorWatch?
  /// Whether it is a connection that was made, of which the library says when it closes it. Neither a connection
  /// that was never made is such a one, nor a socket of the library's threads.
  private(set) var isConnected = false
  private var isReading: Bool
  private var isWriting: Bool

  init(_ descriptor: Int32, _ multi: HTTPMulti, reading: Bool, writing: Bool) {
    self.descriptor = descriptor
    self.multi = multi
    isReading = reading
    isWriting = writing
  }

  /// Watches for these from now on.
  func change(reading: Bool, writing: Bool) {
    watch?.holdsLoop = true
    // It can be written to once it is connected.
    if reading, isWriting, !isReading { isConnected = true }
    if reading == isReading, writing == isWriting { return }
    isReading = reading
    isWriting = writing
    try? watch?.change(reading: reading, writing: writing)
  }

  func run() { multi.ready(self) }
}
