@_spi(Scripting) import LuaVM
import Testing

@Suite("Bound classes", .alsoWithout(.freedObjects))
struct ClassTests {
  private func host() throws -> TestHost {
    let host = try TestHost()
    try host.vm.defineAnimals()
    try host.vm.definePoints()
    return host
  }

  /// The message of the error that a script raises.
  private func message(_ script: String, on host: TestHost) throws -> String {
    try host.text("local ok, e = pcall(function() \(script) end) return tostring(e)")
  }

  @Test("Initializers, properties, methods and functions")
  func members() throws {
    let host = try host()
    #expect(
      try host.texts(
        """
        local a, b = Animal("cat"), Animal.new "mouse"
        a.weight = 4
        a:feed(0.5)
        b.half = 3
        return a.name, a.weight, a.half, b.weight, a:outweighs(b), Animal.isName "",
          Animal.heavy("cow").weight, Animal.heavy("calf", 90).weight, a.unknown, a:feed(1)
        """) == ["cat", "4.5", "2.25", "6.0", "false", "false", "1000.0", "90.0", "nil"])
    #expect(
      try host.texts(
        "local w, n, none, list = Animal('cat'):sizes() return w, n, none, list[2], #list")
        == ["1.0", "cat", "nil", "2", "2"])
  }

  @Test("The same object is the same userdata, and a copy of a structure another one")
  func identity() throws {
    let host = try host()
    #expect(
      try host.texts(
        """
        local a = Animal "cat"
        local t = { [a] = "found" }
        return a == a:itself(), t[a:itself()], rawequal(Point(1, 2), Point(1, 2))
        """) == ["true", "found", "false"])
    let cat = Animal("cat")
    let same = try host.run("local cat = ... return cat", [try cat.luaValue(in: host.vm)])
    #expect(try host.vm.convert(try #require(same.first), to: Animal.self) === cat)
  }

  @Test("A structure is changed where the script has it")
  func structures() throws {
    let host = try host()
    #expect(
      try host.texts(
        """
        local p = Point(3, 4)
        local q = p
        p:move(1, 0)
        q.x = q.x + 1
        return tostring(p), #Point(3, 4), p.y
        """) == ["(5.0, 4.0)", "5.0", "4.0"])
    #expect(
      try host.texts(
        "local p = Point(3, 4) local ok, e = pcall(p.spoil, p, 'no') return ok, tostring(e), p.x")
        == ["false", "Refusal(reason: \"no\")", "3.0"])
  }

  @Test("Operators, and those that a type has by its conformances")
  func operators() throws {
    let host = try host()
    #expect(
      try host.texts(
        """
        local p, q = Point(3, 4), Point(1, 1)
        return tostring(p + q), p == Point(3, 4), p ~= q, q < p, p <= q, p >= Point(3, 4),
          (p * 2) == false, (2 * p) == true, p == Animal "cat"
        """) == [
          "(4.0, 5.0)", "true", "true", "true", "false", "true", "true", "true", "false",
        ])
    #expect(
      try message("return Point(1, 1) < 2", on: host)
        == "script:1: bad argument #2 to 'Point.__lt' (Point expected, got 2)")
    #expect(
      try message("return Point(1, 1) + {}", on: host)
        == "script:1: bad argument #2 to 'Point.__add' (Point expected, got table)")
  }

  @Test("A class has the members of the one above, and its objects are of both")
  func inheritance() throws {
    let host = try host()
    #expect(
      try host.texts(
        """
        local dog, cat = Dog "Rex", Animal "cat"
        dog:feed(3)
        local same, what = dog:itself()
        return dog.name, dog.weight, dog.tricks[2], dog:outweighs(cat), cat:outweighs(dog),
          same == dog, what, cat.tricks, Dog.heavy
        """) == ["Rex", "4.0", "roll", "true", "false", "true", "a dog", "nil", "nil"])
    // By its own class, though the type is the class above.
    let animal: Animal = Dog("Rex")
    #expect(
      try host.vm.call(
        host.load("local dog = ... return dog.tricks[1]"), animal, as: String.self) == "sit")
    // The nearest class that the state knows.
    #expect(
      try host.vm.call(
        host.load("local puppy = ... return puppy.name"), Puppy("Bo"), as: String.self)
        == "Bo")
    #expect(
      try message("Dog.new('Rex').itself(Animal 'cat')", on: host)
        == "script:1: calling 'Dog:itself' on bad self (Dog expected, got Animal)")
  }

  @Test(
    "Errors name the line, the member, the argument, and what was expected",
    arguments: [
      (
        "Animal('cat'):feed('much')",
        "bad argument #1 to 'Animal:feed' (number expected, got string)"
      ),
      ("Animal('cat'):feed()", "bad argument #1 to 'Animal:feed' (number expected, got no value)"),
      (
        "Animal('cat'):outweighs(Point(1, 2))",
        "bad argument #1 to 'Animal:outweighs' (Animal expected, got Point)"
      ),
      (
        "Animal('cat').feed(1)", "calling 'Animal:feed' on bad self (Animal expected, got 1)"
      ),
      (
        "Animal('cat').feed()",
        "calling 'Animal:feed' on bad self (Animal expected, got no value)"
      ),
      (
        "Animal('cat').feed(io.stdout)",
        "calling 'Animal:feed' on bad self (Animal expected, got FILE*)"
      ),
      (
        "Point(1, 2).move(Animal('cat'))",
        "calling 'Point:move' on bad self (Point expected, got Animal)"
      ),
      ("Animal(1)", "bad argument #1 to 'Animal.new' (string of UTF-8 expected, got 1)"),
      ("Animal('\\xff')", "bad argument #1 to 'Animal.new' (string of UTF-8 expected, got string)"),
      ("Point(1)", "bad argument #2 to 'Point.new' (number expected, got no value)"),
      (
        "Animal('cat').weight = 'much'",
        "bad value for 'Animal.weight' (number expected, got string)"
      ),
      ("Animal('cat').weight = nil", "bad value for 'Animal.weight' (number expected, got nil)"),
      ("Animal('cat').name = 'dog'", "'Animal.name' can't be set"),
      ("Animal('cat').feed = 1", "'Animal.feed' can't be set"),
      ("Animal('cat').wieght = 1", "Animal has no property 'wieght' to set"),
      ("Animal('cat')[{}] = 1", "Animal has no property of type table"),
      (
        "function Animal:feed() end",
        "'Animal:feed' is defined in Swift: a script can't replace it"
      ),
      ("Dog.feed = print", "'Dog:feed' is defined in Swift: a script can't replace it"),
      (
        "Animal.weight = 3",
        "'Animal.weight' is a property of objects: it can't be set for the class"
      ),
    ])
  func errors(script: String, expected: String) throws {
    let host = try host()
    #expect(try message("\n" + script, on: host) == "script:2: " + expected)
  }

  @Test("A script may add functions to the table of a class, and replace those")
  func ownFunctions() throws {
    let host = try host()
    #expect(
      try host.texts(
        """
        function Animal.twins(name) return Animal(name), Animal(name) end
        function Animal.isName() return "mine" end
        Animal[1] = "first"
        local a, b = Animal.twins "cat"
        return a.name, b.name, Animal.isName(), Animal[1], a.twins
        """) == ["cat", "cat", "mine", "first", "nil"])
  }

  @Test("A Swift error passes through Lua")
  func swiftErrors() throws {
    let host = try host()
    #expect(throws: Refusal(reason: "full")) { try host.run("Animal('cat'):refuse('full')") }
    #expect(throws: Refusal(reason: "negative")) { try host.run("Animal('cat').half = -1") }
    #expect(
      try host.text("return select(2, pcall(Animal('cat').refuse, Animal('cat'), 'full'))")
        == "Refusal(reason: \"full\")")
  }

  @Test("An object lives as long as Lua has it, and at most as long as the state")
  func lifetime() throws {
    let counter = Counted.Counter()
    let host = try host()
    let keep = try host.load("kept = ...")
    try host.vm.call(keep, Animal("cat", counter: counter), as: Void.self)
    try host.vm.collectGarbage()
    #expect(counter.living == 1)
    #expect(try host.text("return kept.name") == "cat")
    try host.run("kept = nil")
    try host.vm.collectGarbage()
    try host.vm.collectGarbage()
    #expect(counter.living == 0)
    try host.vm.call(keep, Animal("cat", counter: counter), as: Void.self)
    host.vm.close()
    #expect(counter.living == 0)
  }

  @Test("A closed state refuses, and keeps nothing")
  func closedState() throws {
    let counter = Counted.Counter()
    let host = try host()
    let cat = Animal("cat", counter: counter)
    let value = try cat.luaValue(in: host.vm)
    host.vm.close()
    #expect(throws: LuaError.self) { try host.vm.convert(value, to: Animal.self) }
    #expect(throws: LuaError.self) { try cat.luaValue(in: host.vm) }
    #expect(throws: LuaError.self) { try host.vm.makeFunction("f") {} }
    #expect(counter.living == 1)
  }

  @Test("Objects of a class that a state doesn't know are refused")
  func unknownClasses() throws {
    let host = try TestHost()
    let error = #expect(throws: LuaError.self) { try Animal("cat").luaValue(in: host.vm) }
    #expect(
      error?.description
        == "objects of Animal can't be passed to Lua before LuaVM.define has defined a class")
  }

  @Test("One description serves many states")
  func manyStates() throws {
    let points = LuaClass<Point>("Point") { $0.property("x", \.x) }
    for _ in 0..<3 {
      let host = try TestHost()
      let table = try host.vm.define(points, isGlobal: false)
      #expect(table.kind == .table)
      #expect(try host.text("return tostring(Point)") == "nil")
      #expect(
        try host.vm.call(
          host.load("local p = ... return p.x"), Point(x: 7, y: 0), as: Double.self) == 7)
    }
  }

  @Test("Errors in closures leave no objects behind", arguments: ["feed", "outweighs", "itself"])
  func errorsLeaveNothing(method: String) throws {
    let counter = Counted.Counter()
    let host = try host()
    let cat = Animal("cat", counter: counter)
    try host.vm.call(
      host.load(
        """
        local cat = ...
        for i = 1, 1000 do
          pcall(cat.\(method), cat, {}) pcall(cat.\(method), i) pcall(function() cat.weight = {} end)
        end
        """), cat, as: Void.self)
    #expect(counter.living == 1)
    #expect(host.vm.stackDepth == 0)
  }

  private struct Vector: LuaObject, Equatable {
    var elements: [Double]

    func scaled(by factor: Double) -> Vector { Vector(elements: elements.map { $0 * factor }) }
  }

  private func vectors(refusesUnknownMembers: Bool = true) throws -> TestHost {
    let host = try TestHost()
    try host.vm.define(
      LuaClass<Vector>("Vector", refusesUnknownMembers: refusesUnknownMembers) {
        $0.initializer { (elements: [Double]) in Vector(elements: elements) }
        $0.property("count", get: { $0.elements.count })
        $0.method("sum") { vector in vector.elements.reduce(0, +) }
        $0.index(get: { (vector, place: Int) in
          vector.elements.indices.contains(place - 1) ? vector.elements[place - 1] : nil
        }) { (vector: inout Vector, place: Int, value: Double?) in
          guard let value,
            place == vector.elements.count + 1 || vector.elements.indices.contains(place - 1)
          else { throw Refusal(reason: "no place \(place)") }
          if place > vector.elements.count {
            vector.elements.append(value)
          } else {
            vector.elements[place - 1] = value
          }
        }
        $0.metamethod(.multiply) { (vector: Vector, factor: Double) in vector.scaled(by: factor) }
        $0.metamethod(.multiply) { (factor: Double, vector: Vector) in vector.scaled(by: factor) }
        $0.metamethod(.length) { (vector: Vector) in vector.elements.count }
      })
    return host
  }

  @Test("Objects have elements by any key, which scripts read and set")
  func elements() throws {
    let host = try vectors()
    #expect(
      try host.texts(
        """
        local v = Vector { 1, 2 }
        v[2], v[3] = 5, 7
        local sum = 0
        for i, x in ipairs(v) do sum = sum + i * x end
        return v[1], v[2], v[3], tostring(v[4]), #v, v.count, v:sum(), sum
        """) == ["1.0", "5.0", "7.0", "nil", "3", "3", "13.0", "32.0"])
    #expect(throws: Refusal(reason: "no place 9")) { try host.run("Vector({})[9] = 1") }
    #expect(
      try message("\nVector({})[1] = 'x'", on: host)
        == "script:2: bad value for 'Vector.[]' (number expected, got string)")
    #expect(
      try message("\nVector({}).cuont = 1", on: host)
        == "script:2: Vector has no property 'cuont' to set")
  }

  @Test("A member that there isn't is nil, or an error that names the one that was meant")
  func unknownMembers() throws {
    let host = try vectors()
    #expect(
      try message("\nreturn Vector({}).cuont", on: host)
        == "script:2: Vector has no member 'cuont' (did you mean 'count'?)")
    #expect(
      try message("\nreturn Vector({}):summ()", on: host)
        == "script:2: Vector has no member 'summ' (did you mean 'sum'?)")
    #expect(
      try message("\nreturn Vector({})[{}]", on: host)
        == "script:2: Vector has no member of type table")
    #expect(
      try vectors(refusesUnknownMembers: false).texts(
        "local v = Vector { 3 } return tostring(v.cuont), tostring(v[{}]), v[1]") == [
          "nil", "nil", "3.0",
        ])
  }

  private final class Account: LuaObject {
    var notes: [String: String] = [:]
  }

  @Test("A property that can't be set stays so, whatever keys an object takes")
  func readOnly() throws {
    let host = try TestHost()
    try host.vm.define(
      LuaClass<Account>("Account") {
        $0.initializer { () in Account() }
        $0.property("balance", get: { _ in 7 })
        $0.method("close") { _ in 1 }
        $0.index(get: { (account, key: String) in account.notes[key] }) {
          (account: inout Account, key: String, note: String?) in account.notes[key] = note
        }
      })
    #expect(
      try host.texts("local a = Account() a.note = 'x' return a.note, a.balance") == ["x", "7"])
    for name in ["balance", "close"] {
      #expect(
        try message("\nAccount().\(name) = 'x'", on: host)
          == "script:2: 'Account.\(name)' can't be set")
    }
  }

  @Test("An operator takes an object on either side")
  func operands() throws {
    let host = try vectors()
    #expect(
      try host.texts("local v = Vector { 1, 2 } return (2 * v)[2], (v * 3)[1], 2 * v == v * 2")
        == ["4.0", "3.0", "true"])
    #expect(
      try message("\nreturn Vector({}) * {}", on: host)
        == "script:2: bad argument #2 to 'Vector.__mul' (number expected, got table)")
  }
}
