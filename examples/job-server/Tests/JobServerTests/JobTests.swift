import FlowEngine
import Glibc
import Testing

@testable import JobServer

/// Code that never waits. The thread sanitizer delays the signal that stops such code.
let busyScripts =
  dlsym(nil, "__tsan_init") != nil
  ? [] : ["while true do end", "while true do pcall(function() while true do end end) end"]

extension JobLimits {
  /// A time limit that no test reaches, also when other tests keep the machine busy.
  static let patient = JobLimits(time: .seconds(3600))
}

/// The events of a job, which a test can wait for.
final class Events: Sendable {
  private let (events, writer) = AsyncStream<JobEvent>.makeStream()
  private let seen = Locked<[JobEvent]>([])

  var report: @Sendable (JobEvent) -> Void {
    { [self] event in
      seen.withLock { $0.append(event) }
      writer.yield(event)
    }
  }

  var all: [JobEvent] { seen.withLock { $0 } }

  /// Returns once the script has printed something.
  func printed() async {
    for await event in events where event.kind == "print" { return }
  }
}

extension JobOutcome {
  var values: [FlowValue]? {
    guard case .succeeded(let values) = self else { return nil }
    return values.map(\.flowValue)
  }

  var error: FlowError? {
    guard case .failed(let error) = self else { return nil }
    return error
  }

  var refusal: String? {
    guard case .refused(let reason) = self else { return nil }
    return reason
  }
}

/// Each test has jobs of its own, and so they run in parallel.
@Suite("Jobs")
struct JobTests {
  static let order = """
    local flow = require "flow"
    local order = ...
    local basket = flow.new("order")
      :add_grouped(flow.ops.ReserveOp, { input = "lines", output = "reservations" })
      :add(flow.ops.PriceOp):add(flow.ops.InvoiceOp):add(flow.ops.NotifyOp(order.customer))
    local data = basket:start({ lines = order.lines }):await()
    local account = Account(order.customer)
    account:charge(data.cents)
    print(account.balance)
    return #data.reservations, data.cents, data.invoice
    """

  static func orderData(of customer: String, _ amount: Int) throws -> [String: PlainValue] {
    [
      "lines": try PlainValue(encoding: [
        OrderLine(article: "apples", amount: amount), OrderLine(article: "pears", amount: 2),
      ]),
      "customer": try PlainValue(encoding: customer),
    ]
  }

  @Test("A job uses all kinds of ops and an object of the program, and returns its results")
  func order() async throws {
    let events = Events()
    let (shop, log) = (Shop(), Events())
    let jobs = Jobs(shop, limits: .patient) { log.report(JobEvent(kind: $0)) }
    let trace = "0af7651916cd43dd8448eb211c80319c"
    let job = Job(
      id: "1", script: Self.order, data: try Self.orderData(of: "Ada", 3),
      traceparent: "00-\(trace)-b7ad6b7169203331-01")
    let outcome = await jobs.run(job, report: events.report)
    #expect(outcome.values?.prefix(2) == [2, 230])
    #expect(shop.balance(of: "Ada") == 9770)
    let finished = events.all.filter { $0.kind == "finish" && $0.message == "successfully" }
    for op in ["ReserveOp", "PriceOp", "InvoiceOp", "NotifyOp"] {
      #expect(finished.contains { $0.op == op })
    }
    #expect(events.all.last { $0.kind == "print" }?.message == "9770\n")
    // The log and the requests to other services belong to the trace of the client.
    #expect(log.all.contains { $0.kind == "info job=1 trace=\(trace) script: finished" })
    let traceparents = await shop.warehouse.traceparents
    #expect(traceparents.count == 2)
    #expect(traceparents.allSatisfy { $0?.contains(trace) == true })
  }

  @Test("A job that fails names the line of its script, one of an op the op")
  func failures() async throws {
    let jobs = Jobs(limits: .patient)
    let raised = await jobs.run(Job(id: "1", script: "local x\nreturn x.y"))
    #expect(
      raised.error?.message.hasPrefix("1:2: attempt to index a nil value") == true)
    let poor = Job(id: "2", script: Self.order, data: try Self.orderData(of: "Bob", 3))
    #expect(await jobs.run(poor).error?.message.contains("Bob can't pay") == true)
    let unknown = await jobs.run(
      Job(
        id: "3",
        script: """
          local lines = { { article = "bread", amount = 1 } }
          require "flow".ops.PriceOp:start({ lines = lines }):await()
          """))
    #expect(unknown.error?.message == "there is no article 'bread'")
    #expect(unknown.error?.op == "PriceOp")
    let large = await jobs.run(
      Job(
        id: "4",
        script: """
          local lines = { { article = "apples", amount = math.maxinteger } }
          require "flow".ops.PriceOp:start({ lines = lines }):await()
          """))
    #expect(large.error?.message == "the order is too large")
    #expect(jobs.count == 0)
  }

  @Test(
    "A job that takes longer than its time limit is stopped",
    arguments: ["require 'flow'.sleep(3600)"] + busyScripts)
  func timeLimit(_ script: String) async {
    let jobs = Jobs(limits: JobLimits(time: .milliseconds(30)))
    #expect(await jobs.run(Job(id: "1", script: script)).error?.kind == .timeout)
  }

  @Test("A job that uses more memory than it may is stopped")
  func memoryLimit() async {
    let jobs = Jobs(limits: JobLimits(time: .seconds(3600), memory: 8 << 20))
    let outcome = await jobs.run(
      Job(id: "1", script: "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end"))
    #expect(outcome.error?.message.contains("not enough memory") == true)
    // The string takes a MiB in Lua, its copies in Swift would take a hundred.
    let copies = await jobs.run(
      Job(
        id: "2",
        script: "local t, x = {}, ('x'):rep(1 << 20) for i = 1, 100 do t[i] = x end return t"))
    #expect(copies.error?.message.contains("not enough memory") == true)
  }

  @Test(
    "A job can't reach what is outside of it",
    arguments: [
      ("os.execute 'date'", "os.execute isn't allowed"),
      ("io.open 'x'", "a nil value (global 'io')"),
      ("require 'flow'.exec 'date'", "allows no programs"),
      ("require 'flow'.read 'x'", "allows no files"), ("debug.getinfo(1)", "global 'debug'"),
      ("require 'lfs'", "module 'lfs' not found"), ("os.exit(1)", "os.exit"),
    ])
  func refusals(_ script: String, _ message: String) async {
    let outcome = await Jobs(limits: .patient).run(Job(id: "1", script: script))
    #expect(outcome.error?.message.contains(message) == true, "\(outcome)")
  }

  @Test(
    "A job is cancelled by its id, whether it waits or is busy",
    arguments: ["require 'flow'.sleep(3600)"] + busyScripts)
  func cancellation(_ code: String) async {
    let (jobs, events) = (Jobs(limits: .patient), Events())
    async let outcome = jobs.run(Job(id: "1", script: "print() " + code), report: events.report)
    await events.printed()
    #expect(await jobs.run(Job(id: "1", script: "")).refusal == "there is a job '1' already")
    #expect(jobs.cancel("1", reason: "not needed"))
    let error = await outcome.error
    #expect(error?.kind == .cancelled)
    #expect(error?.message == "cancelled: not needed")
    #expect(!jobs.cancel("1", reason: "again"))
  }

  @Test("A job can be cancelled as soon as it was started")
  func cancellationAtOnce() async {
    let jobs = Jobs(limits: .patient)
    let (outcomes, writer) = AsyncStream<JobOutcome>.makeStream()
    for number in 1...50 {
      let job = Job(id: "\(number % 2)/\(number)", script: "require 'flow'.sleep(3600)")
      jobs.start(job, report: { _ in }, end: { writer.yield($0) })
    }
    #expect(jobs.count == 50)
    jobs.cancelAll(of: "1/", reason: "gone")
    jobs.cancelAll(of: "0/", reason: "gone, too")
    var messages: [String] = []
    for await outcome in outcomes.prefix(50) {
      messages.append(outcome.error?.message.description ?? "")
    }
    #expect(Set(messages) == ["cancelled: gone", "cancelled: gone, too"])
    #expect(jobs.count == 0)
  }

  @Test("A script's line in the log of the server is one line")
  func logLines() async {
    let log = Events()
    let jobs = Jobs(limits: .patient) { log.report(JobEvent(kind: $0)) }
    let script = """
      local op = require "flow".op("LogOp", function(ctx) ctx:log "a\\nb" end)
      op:start():await()
      """
    #expect(await jobs.run(Job(id: "1", script: script)).values == [])
    #expect(log.all.contains { $0.kind.hasSuffix("a\\nb") })
    #expect(log.all.allSatisfy { !$0.kind.contains("\n") })
  }

  @Test("Jobs wait for their turn, can be cancelled there, and are refused when too many wait")
  func turns() async throws {
    let (jobs, events) = (Jobs(limits: .patient, mostRunning: 1, mostWaiting: 1), Events())
    let wait = "print() require 'flow'.sleep(3600)"
    async let first = jobs.run(Job(id: "1", script: wait), report: events.report)
    await events.printed()
    async let second = jobs.run(Job(id: "2", script: "return 2"))
    while jobs.count < 2 { await Task.yield() }
    #expect(await jobs.run(Job(id: "3", script: "")).refusal == "too many jobs")
    jobs.cancel("2", reason: "not needed")
    #expect(await second.error?.message == "cancelled: not needed")
    async let third = jobs.run(Job(id: "3", script: "return 3"))
    while jobs.count < 2 { await Task.yield() }
    jobs.cancel("1", reason: "not needed")
    #expect(await first.error?.kind == .cancelled)
    #expect(await third.values == [3])
  }

  @Test("64 jobs run at the same time, each with a state of its own")
  func many() async throws {
    let (jobs, events) = (Jobs(limits: .patient, mostRunning: 64), Events())
    await withTaskGroup(of: JobOutcome.self) { group in
      for number in 1...64 {
        let script = "mine = (mine or 0) + 1 print(mine) require 'flow'.sleep(3600)"
        group.addTask {
          await jobs.run(Job(id: String(number), script: script), report: events.report)
        }
      }
      // Each waits until all have begun.
      for _ in 1...64 { await events.printed() }
      for number in 1...64 { jobs.cancel(String(number), reason: "enough") }
      for await outcome in group { #expect(outcome.error?.message == "cancelled: enough") }
    }
    let printed = events.all.filter { $0.kind == "print" }
    #expect(printed.map(\.message) == Array(repeating: "1\n", count: 64))
  }

  @Test("Jobs share what the program lets them share")
  func sharedShop() async throws {
    let shop = Shop()
    let jobs = Jobs(shop, limits: .patient, mostRunning: 8)
    let data = try Self.orderData(of: "Ada", 1)
    await withTaskGroup(of: JobOutcome.self) { group in
      for number in 1...32 {
        group.addTask {
          await jobs.run(Job(id: String(number), script: Self.order, data: data))
        }
      }
      for await outcome in group { #expect(outcome.values?.prefix(2) == [2, 150], "\(outcome)") }
    }
    #expect(shop.balance(of: "Ada") == 10_000 - 32 * 150)
    #expect(await shop.warehouse.traceparents.count == 64)
  }

  @Test("A shutdown lets running jobs end, and refuses others")
  func shutdown() async throws {
    let (shop, events) = (Shop(), Events())
    let jobs = Jobs(shop, limits: .patient, mostRunning: 1)
    let script = """
      local account, flow = Account "Bob", require "flow"
      print "begun"
      while account.balance > 0 do flow.sleep(0.001) end
      return "done"
      """
    async let running = jobs.run(Job(id: "1", script: script), report: events.report)
    await events.printed()
    async let waiting = jobs.run(Job(id: "2", script: "return 2"))
    while jobs.count < 2 { await Task.yield() }
    async let end: Void = jobs.shutdown(grace: .seconds(3600))
    #expect(await waiting.error?.message == "cancelled: the server is shutting down")
    #expect(await jobs.run(Job(id: "3", script: "")).refusal == "the server is shutting down")
    try shop.charge(100, to: "Bob")
    #expect(await running.values == ["done"])
    await end
    #expect(jobs.count == 0)
  }

  @Test("A shutdown cancels jobs that run for longer than the grace; their cleanups run")
  func shutdownAfterTheGrace() async {
    let (jobs, events) = (Jobs(limits: .patient), Events())
    async let running = jobs.run(
      Job(
        id: "1",
        script: """
          local c <close> = setmetatable({}, { __close = function() print "closed" end })
          print "begun"
          require "flow".sleep(3600)
          """), report: events.report)
    await events.printed()
    await jobs.shutdown(grace: .milliseconds(20))
    #expect(await running.error?.message == "cancelled: the server is shutting down")
    #expect(events.all.last { $0.kind == "print" }?.message == "closed\n")
  }
}
