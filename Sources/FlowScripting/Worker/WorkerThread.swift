internal import FlowEngine
internal import Glibc
internal import LuaVM

/// What the thread of a worker needs to begin.
struct WorkerSetting: Sendable {
  /// How its state is made.
  let configuration: LuaConfiguration
  /// `package.path` and `package.cpath` of the main state.
  let paths: [(field: ByteString, text: ByteString)]
  /// Whether `flow` is a global of the main state, as in the REPL.
  let hasGlobalModule: Bool
  /// Whether runs are checked instead of executed.
  let isChecking: Bool
  let isVirtual: Bool
  let gracePeriod: Int64
  let cleanupGrace: Double
  /// What nothing that the process shows may contain.
  let secrets: SecretTexts
  let channel: WorkerChannel
  /// Takes a report, from any thread.
  let deliver: @Sendable (WorkerReport) -> Void
  /// Takes why there is no worker.
  let refuse: @Sendable (String) -> Void
}

/// The threads of workers: each has a Lua state and an event loop of its own.
enum WorkerThread {
  /// As the main thread has it: for Lua's nesting of C calls.
  private static let stackSize = 8 << 20

  /// Starts the thread of a worker; false when the system gives none.
  static func start(_ setting: WorkerSetting) -> Bool {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, stackSize)
    // A thread begins with the mask of its maker. Signals are for the main thread.
    var all = sigset_t()
    var before = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_BLOCK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    let start = Unmanaged.passRetained(Start(setting))
    var thread = pthread_t()
    let error = pthread_create(
      &thread, &attributes,
      { argument in
        guard let argument else { return nil }
        let setting = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().setting
        WorkerThread.run(setting)
        setting.channel.end()
        return nil
      }, start.toOpaque())
    if error != 0 { start.release() }
    return error == 0
  }

  private final class Start: Sendable {
    let setting: WorkerSetting
    init(_ setting: WorkerSetting) { self.setting = setting }
  }

  private static func run(_ setting: WorkerSetting) {
    do {
      let site = try WorkerSite(setting)
      site.run()
    } catch {
      setting.refuse(String(describing: error))
    }
  }
}

/// The clock of a worker whose main loop has a virtual one: it shows that loop's time, and has that
/// loop wait when the worker's would jump.
final class WorkerClock: LoopClock {
  private let channel: WorkerChannel
  /// Tells the main loop until when the worker waits, and waits for anything to happen.
  var wait: ((Int64) -> Void)?

  init(_ channel: WorkerChannel) {
    self.channel = channel
  }

  func now() -> Int64 { channel.now }

  var wallBase: Int64 { VirtualClock().wallBase }

  var isVirtual: Bool { true }

  func advance(to time: Int64) { wait?(time) }
}
