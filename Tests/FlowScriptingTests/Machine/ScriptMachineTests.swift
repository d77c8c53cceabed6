@_spi(Scripting) import FlowEngine
import FlowScripting
@_spi(Scripting) import LuaVM
import Testing

@Suite("Machines between Swift and scripts")
struct ScriptMachineTests {
  private struct Doubling: TransitionNavigator, StateReducer, TransitionProvider {
    func navigate(
      _ transition: MachineTransition<String>, to step: String, state: Int, context: OpContext
    ) async throws -> Int {
      try await context.sleep(for: .seconds(1))
      return state
    }

    func reduce(_ state: Int, with result: Int) async throws -> Reduction<Int, Int> {
      .continue(state + result)
    }

    func transition(
      from step: String, result: Int, state: Int
    ) async throws -> MachineTransition<String>? {
      step == "once" ? .forward(to: "twice") : nil
    }
  }

  private func typed() throws -> MachineOp {
    try Machine(
      "typed", start: "once", navigator: Doubling(), reducer: Doubling(), provider: Doubling(),
      takingState: { data in
        guard let number = data.integer("n") else { throw FlowError(.error, "no n") }
        return Int(number)
      },
      givingData: { ["n": $0] }
    ).op
  }

  @Test("A script uses a Swift machine alone, in a flow and as a step")
  func writtenInSwift() throws {
    let program = try ScriptProgram()
    let texts = try program.run(
      """
      local typed = ...
      local alone = typed:run { n = 1 }
      local inner = flow.new("f"):data { n = 2 }:add(typed):run()
      local outer = flow.machine { name = "outer", start = "a",
        flow.step("a", { run = typed, flow.next(flow.forward "b") }),
        flow.step("b", { run = function(state) return state.n + 1 end }) }
      local without = typed:run()
      local wrong = typed:run(3)
      local _, refused = pcall(function() typed:continue("once", 1, 2) end)
      return alone.data.n, alone.result.n, inner.data.n, outer:run({ n = 3 }).result,
        without.error.message, wrong.error.message, tostring(typed), refused.kind,
        tostring(alone:summary():find("%[typed%] once %-> twice") ~= nil)
      """, program.host.value(of: try typed())
    ).map { try program.vm.tostring($0).description }
    #expect(
      texts == ["4", "4", "8", "13", "no n", "no n", "machine: typed", "usage", "true"])
  }

  @Test("A Swift program starts a Lua machine with its own state")
  func writtenInLua() throws {
    let program = try ScriptProgram()
    let value = try program.run(
      """
      return flow.machine { name = "m", start = "a",
        flow.step("a", { run = function(state) flow.sleep(1) state.n = state.n + 1 end,
          flow.next(flow.forward "b") }),
        flow.step("b", { run = function(state) return { n = state.n * 2 } end }) }
      """
    ).first
    let machine = try #require(program.host.op(in: value ?? .nil) as? MachineOp)
    let run = machine.start(on: program.loop, from: .opaque(MapValue([("n", .integer(4))])))
    try run.wait()
    let alone = run.data.integer("n")
    #expect(alone == 10)
    let dot = machine.dot().description
    #expect(dot.contains("a -> b"))
    let flow = Flow("f").data("n", 1).add(machine)
    let inFlow = flow.start(on: program.loop)
    try inFlow.wait()
    let number = inFlow.data.integer("n")
    #expect(number == 4)
  }

  @Test(
    "Closing the host and shutting down the loop release waiting machines",
    arguments: [
      "flow.step('a', { run = wait })", "flow.step('a', { run = idle }), emit = wait",
      "flow.step('a', { run = idle }), reduce = wait",
      "flow.step('a', { run = flow.ops.SleepOp(1000) })",
      "flow.step('a', { run = function() return flow.with_delay(1000) end })",
    ])
  func closing(_ definition: String) throws {
    weak var host: ScriptHost?
    do {
      let program = try ScriptProgram()
      host = program.host
      try program.run(
        """
        local function wait() flow.sleep(1000) end
        local function idle() end
        local machine = flow.machine { name = "m", start = "a", \(definition) }
        machine:start()
        flow.new("f"):add(machine):start()
        """)
    }
    let isGone = host == nil
    #expect(isGone)
  }

  @Test("Machines that nobody holds are collected with their functions")
  func collected() throws {
    let program = try ScriptProgram()
    let make = try program.load(
      """
      for i = 1, 100 do
        local big = {}
        flow.machine { name = "m", start = "a", emit = function() return big.x end,
          flow.step("a", { run = function() return big end }) }:run {}
      end
      """)
    func measure() throws -> (references: Int, memory: Int) {
      _ = try program.vm.call(make)
      try program.collect()
      return (program.vm.referenceCount, program.vm.memoryUsed)
    }
    for _ in 0..<3 { _ = try measure() }
    let before = try measure()
    for _ in 0..<5 { _ = try measure() }
    let after = try measure()
    #expect(after.references == before.references)
    // Userdata made in advance come and go by the batch; a function kept in each would be 60 kB more.
    #expect(after.memory <= before.memory + 16_000)
  }
}
