import Glibc
@_spi(Scripting) import LuaVM
import Testing
import Testing

// Like a program that embeds this package: literals are strings.
typealias StringLiteralType = String
typealias ExtendedGraphemeClusterType = String
typealias UnicodeScalarType = String

/// A state with a scheduler and a library `S` for scripts: sleep, spawn, await, timeout.
final class TestHost {
  let vm: LuaVM
  let scheduler: TestScheduler
  let taskType: LuaObjectType<TestTask>

  /// The mechanisms that the states of a test do without; see `AlsoWithout`.
  @TaskLocal static var withheld: LuaMechanisms = []

  init(_ configuration: LuaConfiguration = LuaConfiguration()) throws {
    var configuration = configuration
    configuration.withheld.formUnion(Self.withheld)
    vm = try LuaVM(configuration: configuration)
    let scheduler = TestScheduler(vm)
    self.scheduler = scheduler
    vm.scheduler = scheduler
    let taskType = try vm.defineObjectType("task", of: TestTask.self, methods: [:])
    self.taskType = taskType
    try install(
      "S",
      [
        "sleep": { call in
          guard let seconds = call.number(1) else { throw LuaError(.argument, "no number") }
          let wait = LuaWait()
          scheduler.addTimer(seconds, wait)
          return try call.wait(wait)
        },
        "spawn": { call in
          guard case .reference(let function) = try call.value(1) else {
            throw LuaError(.argument, "no function")
          }
          return call.answer(try scheduler.start(function), taskType)
        },
        "await": { call in
          guard let task = call.object(1, taskType) else {
            throw LuaError(.argument, ByteString("no task but \(call.typeName(1))"))
          }
          let wait = TaskWait(task)
          task.add(wait)
          return try call.wait(wait)
        },
      ])
  }

  // Functions that keep references keep the state, which keeps the functions: closing ends that.
  deinit { vm.close() }

  /// A global table of functions.
  func install(_ name: String, _ functions: [String: LuaFunction]) throws {
    var fields: [(ByteString, LuaValue)] = []
    for (key, function) in functions {
      fields.append((ByteString(key), .reference(try vm.makeFunction(function))))
    }
    try setGlobal(name, .reference(try vm.makeTable(fields: fields)))
  }

  func setGlobal(_ name: String, _ value: LuaValue) throws {
    let setter = try vm.load("local name, value = ... _G[name] = value", name: "set")
    _ = try vm.call(setter, [.string(ByteString(name)), value])
  }

  func load(_ script: String, name: String = "script") throws -> LuaReference {
    try vm.load(ByteString(script), name: name)
  }

  @discardableResult
  func run(_ script: String, _ arguments: [LuaValue] = []) throws -> [LuaValue] {
    try vm.call(load(script), arguments)
  }

  /// The results of a script as texts.
  func texts(_ script: String, _ arguments: [LuaValue] = []) throws -> [String] {
    try run(script, arguments).map { try vm.tostring($0).description }
  }

  func text(_ script: String, _ arguments: [LuaValue] = []) throws -> String {
    try texts(script, arguments).joined(separator: " ")
  }

  /// Runs a script as an operation of the scheduler until it settles.
  func operation(
    _ script: String, deadline: Int64 = 0, grace: Int64 = 0
  ) throws -> TestTask {
    let task = try scheduler.start(load(script), deadline: deadline, grace: grace)
    while task.result == nil {
      if !scheduler.turn() { break }
    }
    return task
  }

  func operationText(_ script: String) throws -> String {
    let task = try operation(script)
    guard let result = task.result else { return "unsettled" }
    return try vm.tostring(try result.get()).description
  }
}

/// Runs each test twice: as it is, and in states that do without a mechanism, with the substitute for it.
struct AlsoWithout: SuiteTrait, TestTrait, TestScoping {
  let mechanism: LuaMechanisms
  let isRecursive = true

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await function()
    try await TestHost.$withheld.withValue(mechanism) { try await function() }
  }
}

extension Trait where Self == AlsoWithout {
  static func alsoWithout(_ mechanism: LuaMechanisms) -> Self { AlsoWithout(mechanism: mechanism) }
}

/// A Swift class whose living objects are counted.
final class Counted {
  final class Counter {
    var living = 0
  }

  let counter: Counter
  var name: String

  init(_ counter: Counter, name: String = "") {
    self.counter = counter
    self.name = name
    counter.living += 1
  }

  deinit { counter.living -= 1 }
}

/// Runs `body` on a thread of its own and waits for it.
func onThread(_ body: @escaping @Sendable () -> Void) {
  join(startThread(body))
}

private final class ThreadBody: Sendable {
  let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
  }
}

/// Hands something over to another thread, for tests of exactly that.
// Unchecked: the code that uses it sees to the order itself, or is meant to trap.
struct Handed<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) {
    self.value = value
  }
}

/// Whether the thread sanitizer watches, with which all is many times slower.
let isThreadSanitized = dlsym(nil, "__tsan_init") != nil

/// How often something is repeated that the thread sanitizer makes a hundred times slower.
func repetitions(_ count: Int) -> Int {
  isThreadSanitized ? count / 50 : count
}

/// Output of a stand-alone interpreter for a script; nil when it isn't installed.
func standardOutput(of command: String) -> String? {
  guard let stream = popen(command, "r") else { return nil }
  var bytes: [UInt8] = []
  var byte = fgetc(stream)
  while byte != EOF {
    bytes.append(UInt8(byte))
    byte = fgetc(stream)
  }
  return pclose(stream) == 0 ? String(decoding: bytes, as: UTF8.self) : nil
}

/// Starts a thread; `join` waits for it.
func startThread(_ body: @escaping @Sendable () -> Void) -> pthread_t {
  let box = Unmanaged.passRetained(ThreadBody(body))
  var thread = pthread_t()
  let error = pthread_create(
    &thread, nil,
    { argument in
      // Given over by startThread.
      if let argument {
        Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().body()
      }
      return nil
    }, box.toOpaque())
  precondition(error == 0)
  return thread
}

func join(_ thread: pthread_t) {
  pthread_join(thread, nil)
}
