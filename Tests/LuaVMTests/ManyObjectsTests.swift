@_spi(Scripting) import LuaVM
import Testing

/// Objects of which there are so many that their userdata are made in advance.
@Suite("Large numbers of objects", .alsoWithout(.freedObjects))
struct ManyObjectsTests {
  private final class TypeBox {
    var type: LuaObjectType<Counted>?
  }

  /// A state with `X.new()`, and `X.numbered(i)`, which always gives the same object for a number: one
  /// that lives as long as the state.
  private struct Fixture {
    static let numberedCount = 1000
    let host: TestHost
    let counter = Counted.Counter()

    init(_ configuration: LuaConfiguration = LuaConfiguration()) throws {
      let host = try TestHost(configuration)
      let counter = counter
      self.host = host
      let box = TypeBox()
      let type = try host.vm.defineObjectType(
        "counted", of: Counted.self,
        methods: [
          "name": { call in
            guard let type = box.type, let object = call.object(1, type) else {
              throw LuaError(.argument, "counted expected")
            }
            return call.answer(.string(ByteString(object.name)))
          }
        ])
      box.type = type
      let numbered = (0..<Self.numberedCount).map { Counted(counter, name: String($0 + 1)) }
      try host.install(
        "X",
        [
          "new": { call in call.answer(Counted(counter, name: "new"), type) },
          "numbered": { call in
            guard let number = call.integer(1) else { throw LuaError(.argument, "no number") }
            return call.answer(numbered[Int(number) - 1], type)
          },
        ])
    }

    /// How many objects live that scripts alone hold.
    var ofScripts: Int { counter.living - Self.numberedCount }
  }

  @Test("Each of many objects keeps its userdata as long as Lua refers to it")
  func identity() throws {
    let fixture = try Fixture()
    for _ in 0..<3 {
      try fixture.host.run(
        """
        local made, n = {}, \(Fixture.numberedCount)
        for i = 1, n do made[i] = X.numbered(i) end
        local function check()
          for i = 1, n do
            local object = X.numbered(i)
            assert(object:name() == tostring(i))
            assert(made[i] == nil or rawequal(made[i], object))
          end
        end
        check()
        for i = 1, n, 2 do made[i] = nil end
        collectgarbage()
        check()
        """)
      try fixture.host.vm.collectGarbage()
    }
  }

  @Test("Unreachable objects are released, and the rest when the state closes")
  func release() throws {
    let fixture = try Fixture()
    try fixture.host.run("kept = {} for i = 1, 500 do kept[i] = X.new() X.new() end")
    for _ in 0..<4 { try fixture.host.vm.collectGarbage() }
    #expect(fixture.ofScripts == 500)
    fixture.host.vm.close()
    #expect(fixture.counter.living == 0)
  }

  @Test(
    "Finalizers may create objects while objects are being created",
    arguments: [
      "collectgarbage('incremental', 1, 400)", "collectgarbage('generational', 1, 1)",
    ])
  func finalizers(_ mode: String) throws {
    let fixture = try Fixture()
    try fixture.host.run(
      """
      \(mode)
      local finalized = 0
      local function litter()
        setmetatable({}, { __gc = function()
          finalized = finalized + 1
          for i = 1, 100 do assert(X.new():name() == "new") end
          assert(X.numbered(finalized):name() == tostring(finalized))
          if finalized < 500 then litter() end
        end })
      end
      litter()
      local kept = {}
      for i = 1, 20000 do kept[i % 300] = X.new() end
      for _, object in pairs(kept) do assert(object:name() == "new") end
      assert(finalized > 3)
      """)
    fixture.host.vm.close()
    #expect(fixture.counter.living == 0)
  }

  @Test("Whichever allocation fails, no object is lost or created twice")
  func eachAllocation() throws {
    var failures = 0
    var n: UInt64 = 0
    while true {
      n += isThreadSanitized ? 13 : 1
      let fixture = try Fixture()
      let make = try fixture.host.load("for i = 1, 200 do kept[i] = X.numbered(i) end")
      let check = try fixture.host.load(
        """
        for i = 1, 200 do
          local object = X.numbered(i)
          assert(object:name() == tostring(i) and rawequal(object, X.numbered(i)))
          assert(kept[i] == nil or rawequal(kept[i], object))
        end
        """)
      try fixture.host.run("kept = table.pack(table.unpack({}, 1, 200)) kept.n = nil")
      fixture.host.vm.failAllocation(n)
      var hasFailed = false
      do { _ = try fixture.host.vm.call(make) } catch {
        hasFailed = true
        #expect((error as? LuaError)?.code == .memory, "at allocation \(n): \(error)")
      }
      let left = fixture.host.vm.failAllocation(0)
      _ = try fixture.host.vm.call(check)
      #expect(fixture.host.vm.stackDepth == 0, "at allocation \(n)")
      fixture.host.vm.close()
      #expect(fixture.counter.living == 0, "at allocation \(n)")
      if hasFailed { failures += 1 }
      if left > 0 { break }
    }
    #expect(failures > (isThreadSanitized ? 10 : 100))
  }
}
